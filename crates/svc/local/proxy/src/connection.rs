//! One client connection: a request head, then a tunnel.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_net::{Connection, Dialer, Established, HostPort, Resolve};
use aro_runtime::Scope;
use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::uri::Authority;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::net::TcpStream;

use crate::destinations::{Destinations, Refusal};
use crate::metrics::{ProxyMetrics, Reason};
use crate::tunnel::{self, End, relay};

/// What every connection uses.
pub(crate) struct Shared {
    pub(crate) destinations: Arc<dyn Destinations>,
    pub(crate) dialer: Dialer,
    pub(crate) metrics: ProxyMetrics,
    pub(crate) limits: Limits,
}

/// Bounds of one connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) max_header: usize,
    pub(crate) header_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) drain: Duration,
}

/// Resolves addresses only: where a tunnel leads is decided before it is dialled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Literal;

#[async_trait]
impl Resolve for Literal {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<SocketAddr> {
        let address = host.parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(SocketAddr::new(address, port))
    }
}

/// What a successful CONNECT leaves behind: the client's bytes and the destination's.
type Opened = Arc<Mutex<Option<(OnUpgrade, Box<dyn Connection>)>>>;

/// Serves one connection until it ends or, once the scope is cancelled, its time to drain is over.
pub(crate) async fn run(stream: TcpStream, shared: Arc<Shared>, scope: Scope, _room: Established) {
    let limits = shared.limits;
    let serving = async {
        let Some((client, destination)) = negotiate(stream, &shared).await else { return };
        let _open = shared.metrics.open();
        let bytes =
            tunnel::Bytes { from_client: &shared.metrics.from_client, to_client: &shared.metrics.to_client };
        if relay(client, destination, limits.idle_timeout, bytes).await == End::Idle {
            tracing::debug!("tunnel idle for too long; closed");
        }
    };
    tokio::pin!(serving);
    tokio::select! {
        biased;
        () = serving.as_mut() => {}
        () = scope.cancelled() => {
            if tokio::time::timeout(limits.drain, serving).await.is_err() {
                tracing::debug!("tunnel did not end within the drain period; closed");
            }
        }
    }
}

/// Answers requests until one opens a tunnel. `None`: the client went away first.
async fn negotiate(
    stream: TcpStream,
    shared: &Arc<Shared>,
) -> Option<(TokioIo<hyper::upgrade::Upgraded>, Box<dyn Connection>)> {
    let opened = Opened::default();
    let (noting, answering) = (opened.clone(), shared.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let (opened, shared) = (noting.clone(), answering.clone());
        async move { Ok::<_, Infallible>(answer(request, &shared, &opened).await) }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(shared.limits.header_timeout)
        .max_buf_size(shared.limits.max_header);
    let served = builder.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
    if let Err(error) = served {
        tracing::debug!(%error, "proxy connection ended early");
    }
    let (upgrade, destination) = opened.lock().take()?;
    match upgrade.await {
        Ok(client) => Some((TokioIo::new(client), destination)),
        Err(error) => {
            tracing::debug!(%error, "client went away before its tunnel opened");
            None
        }
    }
}

async fn answer(mut request: Request<Incoming>, shared: &Shared, opened: &Opened) -> Response<Full<Bytes>> {
    if request.method() != Method::CONNECT {
        shared.metrics.refuse(Reason::Method);
        let mut response =
            text(StatusCode::METHOD_NOT_ALLOWED, "This proxy answers CONNECT only.\n".to_owned());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("CONNECT"));
        return response;
    }
    let Some((host, port)) = request.uri().authority().and_then(target_of) else {
        shared.metrics.refuse(Reason::Target);
        return text(StatusCode::BAD_REQUEST, "The target of CONNECT must be <host>:<port>.\n".to_owned());
    };
    let address = match shared.destinations.find(&host, port).await {
        Ok(address) => address,
        Err(refusal) => return refuse(&refusal, &host, port, shared),
    };
    let target = HostPort { host: address.ip().to_string(), port: address.port() };
    match shared.dialer.dial(&target, None).await {
        Ok(destination) => {
            *opened.lock() = Some((hyper::upgrade::on(&mut request), destination));
            Response::new(Full::default())
        }
        Err(error) => {
            shared.metrics.refuse(Reason::Unreachable);
            tracing::debug!(%host, port, error = %chain(&error), "destination not reached");
            let reason = format!("{host} is served here, but its listener at {address} cannot be reached.\n");
            text(StatusCode::BAD_GATEWAY, reason)
        }
    }
}

fn refuse(refusal: &Refusal, host: &str, port: u16, shared: &Shared) -> Response<Full<Bytes>> {
    let (status, reason) = match refusal {
        Refusal::Host => (StatusCode::FORBIDDEN, Reason::Host),
        Refusal::Port => (StatusCode::FORBIDDEN, Reason::Port),
        Refusal::Names(_) => (StatusCode::BAD_GATEWAY, Reason::Names),
    };
    shared.metrics.refuse(reason);
    tracing::debug!(%host, port, error = %chain(refusal), "tunnel refused");
    text(status, refusal.explain(host, port))
}

/// Host and port of a CONNECT target, the host in lower case and without brackets or a dot at the end.
fn target_of(authority: &Authority) -> Option<(String, u16)> {
    if authority.as_str().contains('@') {
        return None;
    }
    let port = authority.port_u16()?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    (!host.is_empty() && host.len() <= 253 && port != 0).then_some((host, port))
}

fn text(status: StatusCode, reason: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(reason));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_target_is_a_host_and_a_port() {
        for (text, expected) in [
            ("Management.Azure.com:443", Some(("management.azure.com", 443))),
            ("management.azure.com.:443", Some(("management.azure.com", 443))),
            ("[::1]:443", Some(("::1", 443))),
            ("management.azure.com", None),
            ("management.azure.com:0", None),
            ("user@management.azure.com:443", None),
            (".:443", None),
        ] {
            let authority: Authority = text.parse().unwrap();
            let target = target_of(&authority);
            assert_eq!(target.as_ref().map(|(host, port)| (host.as_str(), *port)), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_authority_panics(text in ".{0,80}") {
            if let Ok(authority) = text.parse::<Authority>() {
                let _ = target_of(&authority);
            }
        }
    }
}
