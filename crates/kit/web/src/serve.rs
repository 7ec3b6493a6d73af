//! The server: accept, bound, serve, drain.

mod connection;
mod upgrade;

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use aro_net::{Admission, AdmissionLimits};
use aro_runtime::{Fault, Listener, LogLimiter, Phase, Scope, TaskKind};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tower::Service;

pub use upgrade::{Upgradable, Upgrade, UpgradedIo};

/// Bounds of one listener.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The listener's name in scopes and logs.
    pub name: &'static str,
    /// Most connections at once; further ones wait in a handshake slot, for at most `header_timeout`.
    pub max_connections: usize,
    /// Most connections whose handshake is not done; a further one evicts the oldest of them.
    pub max_handshakes: usize,
    /// Most connections of one peer's address; further ones are closed.
    pub max_connections_per_peer: usize,
    /// The same for a loopback address, which many clients of one machine share.
    pub max_loopback_connections: usize,
    /// Most requests at once on one HTTP/2 connection.
    pub max_streams: u32,
    /// How long a client may take to send a request's head; also how long an idle HTTP/1 connection is kept.
    pub header_timeout: Duration,
    /// How long connections may go on after they were told to finish.
    pub drain: Duration,
}

impl ServeOptions {
    /// Sensible bounds for a listener of this name.
    pub fn named(name: &'static str) -> Self {
        Self {
            name,
            max_connections: 4096,
            max_handshakes: 512,
            max_connections_per_peer: 1024,
            max_loopback_connections: 4096,
            max_streams: 256,
            header_timeout: Duration::from_secs(30),
            drain: Duration::from_secs(20),
        }
    }

    fn admission(&self) -> Admission {
        Admission::new(AdmissionLimits {
            connections: self.max_connections,
            handshakes: self.max_handshakes,
            per_peer: self.max_connections_per_peer,
            per_loopback_peer: self.max_loopback_connections,
        })
    }
}

/// A running server. It lives in its scope; this only tells where it listens.
#[derive(Debug, Clone, Copy)]
pub struct Server {
    addr: SocketAddr,
}

impl Server {
    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.addr
    }
}

/// The peer's address, in every request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// What happens between accepting a connection and its first request: TLS, usually.
pub trait Handshake: Clone + Send + Sync + 'static {
    /// What requests are read from.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// What answers this connection's requests; it may know who is at the other end.
    type Service;

    /// Runs in the connection's own task, and must end within the listener's `header_timeout`.
    fn shake(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
    ) -> impl Future<Output = io::Result<(Self::Stream, Self::Service)>> + Send;

    /// Returns when a connection must end although neither side asks for it: its credential is no longer valid. It is asked to
    /// finish what it is doing, and cut after the listener's `drain`. By default that never happens.
    fn over(_service: &Self::Service) -> BoxFuture<'static, ()> {
        std::future::pending().boxed()
    }
}

/// No handshake: plain HTTP, one service for everybody.
#[derive(Debug, Clone)]
struct Plain<S>(S);

impl<S: Clone + Send + Sync + 'static> Handshake for Plain<S> {
    type Stream = TcpStream;
    type Service = S;

    async fn shake(&self, stream: TcpStream, _peer: SocketAddr) -> io::Result<(TcpStream, S)> {
        Ok((stream, self.0.clone()))
    }
}

/// Serves plain HTTP; see [`serve_after`].
pub fn serve<S, B>(listener: Listener, service: S, scope: &Scope, options: ServeOptions) -> Server
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    serve_after(listener, Plain(service), scope, options)
}

/// Serves HTTP/1.1 and HTTP/2 (prior knowledge) on a bound listener until the scope is closed.
///
/// Returns at once; the accept loop and the connections are tasks of children of `scope`. The service is cloned
/// per request. A panic in it answers 500 and leaves the connection alive; to answer in a dialect of your own,
/// put a [`crate::CatchPanicLayer`] into the service. An answer can take over an HTTP/1.1 connection: [`Upgrade`].
pub fn serve_after<H, S, B>(listener: Listener, handshake: H, scope: &Scope, options: ServeOptions) -> Server
where
    H: Handshake<Service = S>,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let addr = listener.local_addr();
    let accepting = scope.child(Phase::Listeners, options.name);
    let requests = scope.child(Phase::Requests, options.name);
    let admission = options.admission();
    let log_limiter = LogLimiter::every(Duration::from_secs(1));
    let socket = listener.into_inner();
    let stop = accepting.clone();
    accepting.spawn(TaskKind::Listener, "accept", async move {
        loop {
            let (stream, peer) = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = aro_net::accept(&socket) => accepted,
            };
            // A peer with too many connections is closed at once: waiting would keep the others from being accepted.
            let Some(pending) = admission.admit(peer.ip()) else {
                if let Some(suppressed) = log_limiter.permit() {
                    tracing::warn!(listener = options.name, peer = %peer.ip(), suppressed, "connection limit of a peer reached; connection closed");
                }
                continue;
            };
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY was refused");
            }
            let connection =
                connection::run(stream, peer, pending, handshake.clone(), requests.clone(), options.clone());
            requests.spawn(TaskKind::Connection, "connection", async move {
                connection.await;
                Ok::<_, Fault>(())
            });
        }
        Ok::<_, Fault>(())
    });
    Server { addr }
}
