//! One connection, from the first byte to the last.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;

use aro_net::Pending;
use aro_runtime::{Fault, Scope, TaskKind};
use bytes::Bytes;
use futures::FutureExt as _;
use http::header::UPGRADE;
use http::{Request, Response, Version};
use http_body::Body;
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt as _};

use super::upgrade::{Switch, Upgradable};
use super::{Handshake, Peer, ServeOptions};
use crate::panics;

/// Serves one connection until it ends, or until its scope is cancelled or its time is over, and it has finished what it
/// was doing.
pub(super) async fn run<H, S, B>(
    stream: TcpStream,
    peer: SocketAddr,
    mut pending: Pending,
    handshake: H,
    scope: Scope,
    options: ServeOptions,
) where
    H: Handshake<Service = S>,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let deadline = Instant::now() + options.header_timeout;
    let shaken = tokio::select! {
        biased;
        () = scope.cancelled() => return,
        shaken = tokio::time::timeout_at(deadline, handshake.shake(stream, peer)) => shaken,
        () = pending.evicted() => {
            return tracing::debug!(%peer, "a connection was cut in its handshake: newer ones needed the slot");
        }
    };
    let (stream, service) = match shaken {
        Ok(Ok(shaken)) => shaken,
        Ok(Err(error)) => return tracing::debug!(%peer, %error, "a connection's handshake failed"),
        Err(_) => {
            return tracing::debug!(%peer, "a connection did not finish its handshake in time and was cut");
        }
    };
    let established = tokio::select! {
        biased;
        () = scope.cancelled() => return,
        established = tokio::time::timeout_at(deadline, pending.establish()) => established,
    };
    // Held until the connection ends.
    let Ok(Some(_established)) = established else {
        return tracing::debug!(%peer, "a connection was cut: the listener has as many as it may have");
    };
    let mut over = H::over(&service);
    // Set by the first request.
    let spoke = CancellationToken::new();
    let seen = spoke.clone();
    let switch = Switch::default();
    let noting = switch.clone();
    let answer = service_fn(move |mut request: Request<Incoming>| {
        if !seen.is_cancelled() {
            seen.cancel();
        }
        request.extensions_mut().insert(Peer(peer));
        let wanted = request.version() == Version::HTTP_11 && request.headers().contains_key(UPGRADE);
        let io = wanted.then(|| hyper::upgrade::on(&mut request));
        if wanted {
            request.extensions_mut().insert(Upgradable);
        }
        let switch = noting.clone();
        let response = AssertUnwindSafe(service.clone().oneshot(request)).catch_unwind();
        async move {
            match response.await {
                Ok(Ok(mut response)) => {
                    switch.note(response.status(), response.extensions_mut(), io);
                    Ok::<_, Infallible>(response.map(Either::Left))
                }
                Ok(Err(never)) => match never {},
                Err(panic) => {
                    tracing::error!(panic = panics::text(&*panic), "a request panicked");
                    Ok(panics::plain_answer().map(Either::Right))
                }
            }
        }
    });
    let mut builder = Builder::new(Streams(scope.clone()));
    builder.http1().timer(TokioTimer::new()).header_read_timeout(options.header_timeout);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(options.header_timeout)
        .max_concurrent_streams(options.max_streams);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), answer);
    tokio::pin!(connection);

    // The protocol is guessed from the first bytes, and until then hyper has no time-out of its own: a client that
    // never gets as far as a request is cut here. Every arm polls by reference and is cancel-safe.
    let silent = tokio::time::sleep(options.header_timeout);
    tokio::pin!(silent);
    let ended = loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => break Some(ended),
            () = scope.cancelled() => break None,
            () = &mut over => break None,
            () = silent.as_mut(), if !spoke.is_cancelled() => {
                if !spoke.is_cancelled() {
                    return tracing::debug!(%peer, "a connection sent no request in time and was cut");
                }
            }
        }
    };
    let ended = if let Some(ended) = ended {
        ended
    } else {
        connection.as_mut().graceful_shutdown();
        match tokio::time::timeout(options.drain, connection).await {
            Ok(ended) => ended,
            Err(_) => return tracing::warn!(%peer, "a connection did not drain in time and was cut"),
        }
    };
    if let Err(error) = ended {
        // The client went away or sent nonsense; its business, not ours.
        return tracing::debug!(%peer, %error, "a connection ended early");
    }
    let switched = switch.run(scope.token().clone());
    tokio::pin!(switched);
    tokio::select! {
        () = switched.as_mut() => {}
        () = scope.cancelled() => {
            if tokio::time::timeout(options.drain, switched).await.is_err() {
                tracing::warn!(%peer, "a connection that switched protocols did not end in time and was cut");
            }
        }
    }
}

/// Runs HTTP/2 streams as tasks of the scope, so that draining waits for them, too.
#[derive(Clone)]
struct Streams(Scope);

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
{
    fn execute(&self, stream: F) {
        self.0.spawn(TaskKind::Connection, "stream", async move {
            stream.await;
            Ok::<_, Fault>(())
        });
    }
}
