//! Callers of the gRPC service, and the sources they may act for.

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

/// How often the certificate's files are checked.
const REREAD: Duration = Duration::from_secs(10);

/// The caller named in a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The common name.
    pub name: Arc<str>,
    /// When the certificate expires.
    pub until: Timestamp,
}

/// Which caller may act for which source.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// `(certificate name, source)`.
    granted: Vec<(String, String)>,
    /// Whether callers have names: without TLS they have none, and every caller may act for every source.
    named: bool,
}

impl Grants {
    /// Parses configured grants.
    pub fn new(granted: &[String], named: bool) -> Self {
        let granted = granted.iter().filter_map(|grant| grant.split_once(':'));
        Self { granted: granted.map(|(name, source)| (name.to_owned(), source.to_owned())).collect(), named }
    }

    /// Whether a caller may publish and subscribe for a source.
    pub fn allow(&self, caller: Option<&Caller>, source: &str) -> bool {
        self.is_granted(caller, source) || caller.is_some_and(|caller| *caller.name == *source)
    }

    /// Whether it may by a grant, not only by having the source's name.
    pub fn is_granted(&self, caller: Option<&Caller>, source: &str) -> bool {
        if !self.named {
            return true;
        }
        let Some(Caller { name, .. }) = caller else { return false };
        let granted = |(holder, granted): &(String, String)| {
            **holder == **name && (granted == "*" || granted == source)
        };
        self.granted.iter().any(granted)
    }
}

/// TLS 1.3 with certificates on both sides. A connection lasts no longer than the client's certificate.
#[derive(Clone)]
pub struct MutualTls<S> {
    acceptor: TlsAcceptor,
    clock: SharedClock,
    inner: S,
}

impl<S> MutualTls<S> {
    /// Loads the files, and reloads them when they change.
    pub fn new(paths: IdentityPaths, clock: SharedClock, inner: S, scope: &Scope) -> Result<Self, RunError> {
        let identity = FileIdentity::load(paths, clock.now())
            .map_err(|error| RunError::caused("read the certificate of the gRPC listener", error))?;
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
                    Ok(Ok(true)) => tracing::info!("gRPC certificate reloaded"),
                    Ok(Err(error)) => {
                        tracing::warn!(error = %chain(&error), "new gRPC certificate rejected; keeping the old one");
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

impl<S: Clone + Send + Sync + 'static> Handshake for MutualTls<S> {
    type Stream = TlsStream<TcpStream>;
    type Service = Named<S>;

    async fn shake(&self, stream: TcpStream, _: SocketAddr) -> io::Result<(Self::Stream, Named<S>)> {
        let stream = self.acceptor.accept(stream).await?;
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let bearer = certificate.and_then(|der| Bearer::of_certificate(der).ok());
        let Some(bearer) = bearer.filter(|bearer| !bearer.subject.common_name.is_empty()) else {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the certificate has no common name",
            ));
        };
        let caller = Caller { name: bearer.subject.common_name.into(), until: bearer.until };
        Ok((stream, Named { caller, clock: self.clock.clone(), inner: self.inner.clone() }))
    }

    fn over(service: &Named<S>) -> BoxFuture<'static, ()> {
        let (clock, until) = (service.clock.clone(), service.caller.until);
        async move { reached(&clock, until).await }.boxed()
    }
}

/// A service whose requests carry their caller.
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
    /// A caller of this name, without expiry.
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
        assert!(Grants::new(&[], false).allow(None, "cs"), "without certificates callers have no names");
    }
}
