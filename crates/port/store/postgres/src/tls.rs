//! TLS to the server: with authorities to verify it by, always; otherwise never.

use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::OpenError;

/// Settles the mode and makes the connector. With authorities the server must speak TLS and show a certificate for the host
/// that the connection string names (`verify-full` of other clients). Without them nothing could be verified, so `prefer`
/// means plain then, and `require` is refused rather than weakened.
pub(crate) fn connector(config: &mut Config, ca_file: Option<&Path>) -> Result<MakeRustlsConnect, OpenError> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        Some(_) if config.get_ssl_mode() == SslMode::Disable => return Err(OpenError::PlainWithAuthorities),
        Some(path) => {
            let failed = |source: Box<dyn std::error::Error + Send + Sync>| OpenError::Authorities {
                path: path.to_owned(),
                source,
            };
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| failed(error.into()))? {
                let certificate = certificate.map_err(|error| failed(error.into()))?;
                roots.add(certificate).map_err(|error| failed(error.into()))?;
            }
            if roots.is_empty() {
                return Err(failed("it holds no certificate".into()));
            }
            // What `prefer` would do when the server refuses TLS, or when an attacker answers in its place.
            config.ssl_mode(SslMode::Require);
        }
        None if config.get_ssl_mode() == SslMode::Require => return Err(OpenError::NoAuthorities),
        None => drop(config.ssl_mode(SslMode::Disable)),
    }
    let provider = aro_pki::crypto_provider();
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(OpenError::connect)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(tls))
}
