//! TLS of the listener and towards the origin.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aro_base::SharedClock;
use aro_pki::{FileIdentity, IdentityPaths, crypto_provider};
use aro_runtime::{Fault, RunError, Scope, TaskKind};
use aro_web::Handshake;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// TLS before HTTP; clients need no certificate, the documents are public.
#[derive(Clone)]
pub(crate) struct TlsHandshake<S> {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) service: S,
}

impl<S: Clone + Send + Sync + 'static> Handshake for TlsHandshake<S> {
    type Stream = TlsStream<TcpStream>;
    type Service = S;

    async fn shake(&self, stream: TcpStream, _: SocketAddr) -> io::Result<(Self::Stream, S)> {
        Ok((self.acceptor.accept(stream).await?, self.service.clone()))
    }
}

/// An acceptor on certificate files that are reloaded when they change.
pub(crate) async fn acceptor(
    paths: IdentityPaths,
    clock: SharedClock,
    reread: Duration,
    scope: &Scope,
) -> Result<TlsAcceptor, RunError> {
    const WHAT: &str = "read Front Door's certificate";
    let now = clock.now();
    let loaded = tokio::task::spawn_blocking(move || FileIdentity::load(paths, now)).await;
    let identity = loaded.map_err(|error| RunError::caused(WHAT, error))?;
    let identity = Arc::new(identity.map_err(|error| RunError::caused(WHAT, error))?);
    let mut config = ServerConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| RunError::caused("set up TLS", error))?
        .with_no_client_auth()
        .with_cert_resolver(identity.clone());
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    scope.spawn(TaskKind::Helper, "certificates", async move {
        loop {
            tokio::time::sleep(reread).await;
            let (identity, now) = (identity.clone(), clock.now());
            match tokio::task::spawn_blocking(move || identity.reload(now)).await {
                Ok(Ok(true)) => tracing::info!("Front Door certificate reloaded"),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(error = %aro_base::chain(&error), "new certificate files rejected; keeping the old ones");
                }
                Err(error) => return Err(Fault::caused("reread Front Door's certificate", error)),
            }
        }
    });
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// TLS towards an origin whose authorities are in a file.
pub(crate) async fn client_config(ca_file: &Path) -> Result<Arc<ClientConfig>, RunError> {
    let what = || format!("read `{}` (`frontdoor.ca_file`)", ca_file.display());
    let text = tokio::fs::read(ca_file).await.map_err(|error| RunError::caused(what(), error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| RunError::caused(what(), error))?;
        roots.add(certificate).map_err(|error| RunError::caused(what(), error))?;
    }
    if roots.is_empty() {
        return Err(RunError::new(format!(
            "`{}` (`frontdoor.ca_file`) holds no certificate",
            ca_file.display()
        )));
    }
    let config = ClientConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| RunError::caused("set up TLS", error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
