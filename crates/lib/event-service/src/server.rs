//! The server side.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use aro_bundle::grpc::{CloudEvent, PublishRequest, SubscriptionRequest};
use futures::Stream;
use futures::future::BoxFuture;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, ServerStreamingService, UnaryService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::Service;

use crate::{PUBLISH, SERVICE, SUBSCRIBE};

/// The header that names a subscription; clients fail without it.
pub const SUBSCRIPTION_ID: &str = "subscription-id";

/// The stream of a subscriber.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<CloudEvent, Status>> + Send>>;

/// The handler of both calls.
pub trait CloudEvents: Send + Sync + 'static {
    /// Accepts one event. When it returns, the event is stored.
    fn publish(&self, request: Request<PublishRequest>) -> BoxFuture<'_, Result<(), Status>>;

    /// Opens a stream. The response must carry the header [`SUBSCRIPTION_ID`].
    fn subscribe(
        &self,
        request: Request<SubscriptionRequest>,
    ) -> BoxFuture<'_, Result<Response<EventStream>, Status>>;
}

/// Makes a service of a handler, with a message size limit.
pub fn serve<S: CloudEvents>(events: Arc<S>, max_message: usize) -> CloudEventServer<S> {
    CloudEventServer { events, max_message }
}

/// The service, for a `tonic` router or any HTTP/2 server.
#[derive(Debug)]
pub struct CloudEventServer<S> {
    events: Arc<S>,
    max_message: usize,
}

impl<S> Clone for CloudEventServer<S> {
    fn clone(&self) -> Self {
        Self { events: self.events.clone(), max_message: self.max_message }
    }
}

impl<S> NamedService for CloudEventServer<S> {
    const NAME: &'static str = SERVICE;
}

struct Publish<S>(Arc<S>);
struct Subscribe<S>(Arc<S>);

impl<S: CloudEvents> UnaryService<PublishRequest> for Publish<S> {
    type Response = ();
    type Future = BoxFuture<'static, Result<Response<()>, Status>>;

    fn call(&mut self, request: Request<PublishRequest>) -> Self::Future {
        let events = self.0.clone();
        Box::pin(async move { events.publish(request).await.map(Response::new) })
    }
}

impl<S: CloudEvents> ServerStreamingService<SubscriptionRequest> for Subscribe<S> {
    type Response = CloudEvent;
    type ResponseStream = EventStream;
    type Future = BoxFuture<'static, Result<Response<EventStream>, Status>>;

    fn call(&mut self, request: Request<SubscriptionRequest>) -> Self::Future {
        let events = self.0.clone();
        Box::pin(async move { events.subscribe(request).await })
    }
}

impl<S, B> Service<http::Request<B>> for CloudEventServer<S>
where
    S: CloudEvents,
    B: tonic::codegen::Body + Send + 'static,
    B::Error: Into<tonic::codegen::StdError> + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let Self { events, max_message } = self.clone();
        Box::pin(async move {
            Ok(match request.uri().path() {
                PUBLISH => {
                    let codec: ProstCodec<(), PublishRequest> = ProstCodec::default();
                    let mut grpc = Grpc::new(codec).max_decoding_message_size(max_message);
                    grpc.unary(Publish(events), request).await
                }
                SUBSCRIBE => {
                    let codec: ProstCodec<CloudEvent, SubscriptionRequest> = ProstCodec::default();
                    let mut grpc = Grpc::new(codec).max_encoding_message_size(usize::MAX);
                    grpc.server_streaming(Subscribe(events), request).await
                }
                _ => Status::unimplemented("there is no such method").into_http(),
            })
        })
    }
}
