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
use rustls::ClientConfig;
use tokio::sync::Semaphore;

use super::connector::Connector;
use super::{MAX_BODY, Transport, TransportError};

/// Opening a connection takes at most this long.
const DIAL_DEADLINE: Duration = Duration::from_secs(10);
/// Azure closes idle connections after some minutes; closing first avoids lost replies.
const IDLE: Duration = Duration::from_mins(1);
const IDLE_PER_HOST: usize = 16;
/// Requests under way. With [`MAX_BODY`] it bounds the memory of replies.
const MAX_IN_FLIGHT: usize = 64;

/// Sends requests over connections that it keeps. Cloning is cheap.
#[derive(Clone)]
pub struct HyperTransport {
    client: Client<Connector, Full<Bytes>>,
    in_flight: Arc<Semaphore>,
}

impl std::fmt::Debug for HyperTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HyperTransport")
    }
}

impl HyperTransport {
    /// Connections go where the resolver leads, and are verified by this TLS configuration.
    pub fn new(resolve: Arc<dyn Resolve>, tls: Arc<ClientConfig>) -> Self {
        let connector = Connector::new(Dialer::new(resolve, DIAL_DEADLINE), tls);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Self { client, in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)) }
    }

    async fn exchange(&self, request: Request<Bytes>, host: &str) -> Result<Response<Bytes>, TransportError> {
        let reply = self.client.request(request.map(Full::new)).await;
        let (head, body) = reply.map_err(|error| not_received(host, error))?.into_parts();
        match Limited::new(body, MAX_BODY).collect().await {
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
        let began = tokio::time::Instant::now();
        let Ok(Ok(_permit)) = tokio::time::timeout(within, self.in_flight.acquire()).await else {
            return Err(TransportError::Busy { host });
        };
        let left = within.saturating_sub(began.elapsed());
        match tokio::time::timeout(left, self.exchange(request, &host)).await {
            Ok(reply) => reply,
            Err(_) => Err(TransportError::Late { host, within }),
        }
    }
}
