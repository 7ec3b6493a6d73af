//! The client for sources.

use aro_bundle::grpc::{self, CloudEvent, HEARTBEAT, PublishRequest, SubscriptionRequest};
use aro_bundle::{DATA_TYPE, Event, EventError};
use tonic::client::{Grpc, GrpcService};
use tonic::codegen::{Body, Bytes, StdError};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::{PUBLISH, SUBSCRIBE};

/// Publishes and subscribes.
#[derive(Debug, Clone)]
pub struct Client<T> {
    grpc: Grpc<T>,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server rejected the call, or was unreachable.
    #[error("the event service returned {}: {}", .0.code(), .0.message())]
    Refused(#[from] Status),
    /// The connection is not ready.
    #[error("the event service cannot be reached: {0}")]
    Unreachable(String),
    /// The server sent something that is not an event.
    #[error(transparent)]
    Event(#[from] EventError),
}

impl<T> Client<T>
where
    T: GrpcService<tonic::body::Body>,
    T::Error: Into<StdError>,
    T::ResponseBody: Body<Data = Bytes> + Send + 'static,
    <T::ResponseBody as Body>::Error: Into<StdError> + Send,
{
    /// A client on a connection.
    pub fn new(inner: T) -> Self {
        Self { grpc: Grpc::new(inner).max_decoding_message_size(usize::MAX) }
    }

    /// Publishes one event; it is stored when this returns.
    pub async fn publish(&mut self, event: &Event) -> Result<(), ClientError> {
        self.publish_raw(grpc::write(event)).await
    }

    /// Publishes a message as it is.
    pub async fn publish_raw(&mut self, event: CloudEvent) -> Result<(), ClientError> {
        self.ready().await?;
        let request = Request::new(PublishRequest { event: Some(event) });
        let codec: ProstCodec<PublishRequest, ()> = ProstCodec::default();
        self.grpc.unary(request, PUBLISH.parse().map_err(unreachable)?, codec).await?;
        Ok(())
    }

    /// Subscribes to the events of a source. When this returns, every later event is delivered.
    pub async fn subscribe(&mut self, source: &str) -> Result<Subscription, ClientError> {
        self.ready().await?;
        let request = SubscriptionRequest {
            source: source.to_owned(),
            data_type: DATA_TYPE.to_owned(),
            ..SubscriptionRequest::default()
        };
        let codec: ProstCodec<SubscriptionRequest, CloudEvent> = ProstCodec::default();
        let path = SUBSCRIBE.parse().map_err(unreachable)?;
        let answer = self.grpc.server_streaming(Request::new(request), path, codec).await?;
        let id = answer.metadata().get(crate::SUBSCRIPTION_ID).and_then(|id| id.to_str().ok());
        Ok(Subscription { id: id.map(str::to_owned), events: answer.into_inner() })
    }

    async fn ready(&mut self) -> Result<(), ClientError> {
        self.grpc.ready().await.map_err(|error| ClientError::Unreachable(error.into().to_string()))
    }
}

fn unreachable(error: http::uri::InvalidUri) -> ClientError {
    ClientError::Unreachable(error.to_string())
}

/// A stream of events.
#[derive(Debug)]
pub struct Subscription {
    /// The server's id of the subscription.
    pub id: Option<String>,
    events: Streaming<CloudEvent>,
}

impl Subscription {
    /// The next event; `Ok(None)` for a heartbeat, so that the caller can check liveness.
    ///
    /// The stream ends with an error: a server does not end it without one.
    pub async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        match self.events.message().await? {
            None => Err(ClientError::Unreachable("the server ended the stream".to_owned())),
            Some(event) if event.r#type == HEARTBEAT => Ok(None),
            Some(event) => Ok(Some(grpc::read(event)?)),
        }
    }
}
