//! The client side of TLS, rebuilt from files that rotate.

use std::sync::Arc;

use aro_base::SharedClock;
use aro_pki::{FileIdentity, FilesError};
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::options::Credentials;

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IdentityError {
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error("the {0} given inline cannot be read")]
    Inline(&'static str),
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
}

/// The credentials of a link. Files are read when first needed and again when they change.
pub(crate) struct Identity {
    credentials: Credentials,
    clock: SharedClock,
    loaded: Mutex<Option<Arc<FileIdentity>>>,
}

impl Identity {
    pub fn new(credentials: Credentials, clock: SharedClock) -> Self {
        Self { credentials, clock, loaded: Mutex::new(None) }
    }

    /// The configuration of the next handshake. Blocks on the disk.
    pub fn config(&self) -> Result<ClientConfig, IdentityError> {
        let provider = aro_pki::crypto_provider();
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?;
        match &self.credentials {
            Credentials::Files(paths) => {
                let now = self.clock.now();
                let mut loaded = self.loaded.lock();
                let identity = match &*loaded {
                    Some(identity) => {
                        identity.reload(now)?;
                        identity.clone()
                    }
                    None => loaded.insert(Arc::new(FileIdentity::load(paths.clone(), now)?)).clone(),
                };
                Ok(builder
                    .dangerous()
                    .with_custom_certificate_verifier(identity.server_verifier())
                    .with_client_cert_resolver(identity))
            }
            Credentials::Inline { certificate, key, authorities } => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(authorities).ok_or(IdentityError::Inline("authority"))? {
                    roots.add(authority)?;
                }
                let chain = certificates(certificate).ok_or(IdentityError::Inline("certificate"))?;
                let key = PrivateKeyDer::from_pem_slice(key.expose().as_bytes())
                    .map_err(|_| IdentityError::Inline("private key"))?;
                Ok(builder.with_root_certificates(roots).with_client_auth_cert(chain, key)?)
            }
        }
    }

    /// Re-reads the files. Returns whether the connection has to be replaced. Blocks on the disk.
    pub fn changed(&self) -> bool {
        let Some(identity) = self.loaded.lock().clone() else { return false };
        match identity.reload(self.clock.now()) {
            Ok(changed) => changed,
            Err(error) => {
                tracing::warn!(error = %aro_base::chain(&error), "new certificate files rejected; keeping the old ones");
                false
            }
        }
    }
}

fn certificates(text: &str) -> Option<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    found.ok().filter(|found| !found.is_empty())
}
