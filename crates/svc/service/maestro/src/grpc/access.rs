//! Who is at the other end, and for which sources they may speak.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use aro_base::{SharedClock, Timestamp, chain};
use aro_pki::{Bearer, FileIdentity, IdentityPaths};
use aro_runtime::{Fault, RunError, Scope, TaskKind, reached};
use aro_web::Handshake;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::Service;

/// How often the certificate's files are looked at.
const REREAD: Duration = Duration::from_secs(10);

/// What a caller's certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Its name.
    pub name: Arc<str>,
    /// Until when it may be believed.
    pub until: Timestamp,
}

/// Who may speak for which source.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// `(certificate name, source)`.
    granted: Vec<(String, String)>,
    /// Whether callers have names at all: without TLS nobody has one, and whoever reaches the door may speak.
    named: bool,
}

impl Grants {
    /// Reads grants as the configuration writes them.
    pub fn new(granted: &[String], named: bool) -> Self {
        let granted = granted.iter().filter_map(|grant| grant.split_once(':'));
        Self { granted: granted.map(|(name, source)| (name.to_owned(), source.to_owned())).collect(), named }
    }

    /// Whether a caller may speak for a source, or hear what is told to it.
    pub fn allow(&self, caller: Option<&Caller>, source: &str) -> bool {
        self.is_granted(caller, source) || caller.is_some_and(|caller| *caller.name == *source)
    }

    /// Whether it may by more than being of the source's name.
    pub fn is_granted(&self, caller: Option<&Caller>, source: &str) -> bool {
        if !self.named {
            return true;
        }
        let Some(Caller { name, .. }) = caller else { return false };
        let granted = |(who, what): &(String, String)| **who == **name && (what == "*" || what == source);
        self.granted.iter().any(granted)
    }
}

/// TLS 1.3 with certificates on both sides. A connection lasts no longer than the certificate it was made with.
#[derive(Clone)]
pub struct Mutual<S> {
    acceptor: TlsAcceptor,
    clock: SharedClock,
    inner: S,
}

impl<S> Mutual<S> {
    /// Reads the files, and goes on looking at them.
    pub fn new(paths: IdentityPaths, clock: SharedClock, inner: S, scope: &Scope) -> Result<Self, RunError> {
        let identity = FileIdentity::load(paths, clock.now())
            .map_err(|error| RunError::caused("read the certificate of the gRPC door", error))?;
        let identity = Arc::new(identity);
        let config = identity.server_config();
        let mut config = config.map_err(|error| RunError::caused("set up TLS", error))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        let own = clock.clone();
        scope.spawn(TaskKind::Helper, "certificate", async move {
            loop {
                tokio::time::sleep(REREAD).await;
                let (identity, now) = (identity.clone(), own.now());
                let read = tokio::task::spawn_blocking(move || identity.reload(now)).await;
                match read {
                    Ok(Ok(true)) => tracing::info!("the gRPC door has a new certificate"),
                    Ok(Err(error)) => {
                        tracing::warn!(error = %chain(&error), "the gRPC door keeps its certificate: the new one cannot be used");
                    }
                    _ => {}
                }
            }
            #[expect(unreachable_code, reason = "names the error type of a loop that never ends")]
            Ok::<(), Fault>(())
        });
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), clock, inner })
    }
}

impl<S: Clone + Send + Sync + 'static> Handshake for Mutual<S> {
    type Stream = TlsStream<TcpStream>;
    type Service = Named<S>;

    async fn shake(&self, stream: TcpStream, _: SocketAddr) -> io::Result<(Self::Stream, Named<S>)> {
        let stream = self.acceptor.accept(stream).await?;
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let bearer = certificate.and_then(|der| Bearer::of_certificate(der).ok());
        let Some(bearer) = bearer.filter(|bearer| !bearer.subject.common_name.is_empty()) else {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the certificate names nobody"));
        };
        let caller = Caller { name: bearer.subject.common_name.into(), until: bearer.until };
        Ok((stream, Named { caller, clock: self.clock.clone(), inner: self.inner.clone() }))
    }

    fn over(service: &Named<S>) -> BoxFuture<'static, ()> {
        let (clock, until) = (service.clock.clone(), service.caller.until);
        async move { reached(&clock, until).await }.boxed()
    }
}

/// A service whose requests say who made them.
#[derive(Clone)]
pub struct Named<S> {
    caller: Caller,
    clock: SharedClock,
    inner: S,
}

impl<S, B> Service<http::Request<B>> for Named<S>
where
    S: Service<http::Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<B>) -> S::Future {
        request.extensions_mut().insert(self.caller.clone());
        self.inner.call(request)
    }
}

#[cfg(test)]
impl Caller {
    /// Somebody of this name, for ever.
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), until: Timestamp::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_speaks_for_its_own_name_and_for_what_it_was_granted() {
        let grants = Grants::new(&["cs:clusters".to_owned(), "admin:*".to_owned()], true);
        let allowed = |name: &str, source: &str| grants.allow(Some(&Caller::named(name)), source);
        assert!(allowed("cs", "cs") && allowed("cs", "clusters") && allowed("admin", "anything"));
        assert!(!allowed("cs", "other") && !allowed("other", "clusters") && !allowed("cs", "*"));
        assert!(!grants.allow(None, "cs"));
        let granted = |name: &str, source: &str| grants.is_granted(Some(&Caller::named(name)), source);
        assert!(granted("cs", "clusters") && granted("admin", "cs") && !granted("cs", "cs"));
        assert!(Grants::new(&[], false).allow(None, "cs"), "without certificates nobody has a name");
    }
}
