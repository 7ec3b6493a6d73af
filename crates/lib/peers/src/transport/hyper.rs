//! The transport on sockets: HTTP/1.1 with a pool of kept connections.

use std::sync::Arc;
use std::time::Duration;

use aro_net::{Dialer, Resolve};
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::connector::Connector;
use super::{MAX_REPLY, Transport, TransportError};

/// Opening a connection takes at most this long.
const DIAL_DEADLINE: Duration = Duration::from_secs(2);
/// A peer that restarts leaves dead connections behind; short-lived ones are not used again.
const IDLE: Duration = Duration::from_secs(20);
const IDLE_PER_HOST: usize = 32;

/// Sends requests over connections that it keeps. Cloning is cheap.
#[derive(Clone)]
pub struct HyperTransport {
    client: Client<Connector, Full<Bytes>>,
}

impl std::fmt::Debug for HyperTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HyperTransport")
    }
}

impl HyperTransport {
    /// Connections go where the resolver leads.
    pub fn new(resolve: Arc<dyn Resolve>) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .pool_timer(TokioTimer::new())
            .build(Connector(Dialer::new(resolve, DIAL_DEADLINE)));
        Self { client }
    }

    async fn exchange(&self, request: Request<Bytes>, host: &str) -> Result<Response<Bytes>, TransportError> {
        let reply = self.client.request(request.map(Full::new)).await;
        let (head, body) = reply.map_err(|error| not_received(host, error))?.into_parts();
        match Limited::new(body, MAX_REPLY).collect().await {
            Ok(body) => Ok(Response::from_parts(head, body.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => {
                Err(TransportError::TooLarge { host: host.to_owned() })
            }
            Err(source) => Err(TransportError::Lost { host: host.to_owned(), source }),
        }
    }
}

fn not_received(host: &str, error: ClientError) -> TransportError {
    let host = host.to_owned();
    match error.is_connect() {
        true => TransportError::Unreachable { host, source: error.into() },
        false => TransportError::Lost { host, source: error.into() },
    }
}

#[async_trait]
impl Transport for HyperTransport {
    async fn send(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> Result<Response<Bytes>, TransportError> {
        let host = request.uri().host().ok_or(TransportError::Invalid("its URI has no host"))?.to_owned();
        match tokio::time::timeout(within, self.exchange(request, &host)).await {
            Ok(reply) => reply,
            Err(_) => Err(TransportError::Late { host, within }),
        }
    }
}
