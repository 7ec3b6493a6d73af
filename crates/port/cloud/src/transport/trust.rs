//! Which authorities the cloud's certificates are verified with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// Why no TLS configuration could be made.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file is missing, not readable or not PEM.
    #[error("read the authorities in `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// A certificate cannot be used.
    #[error("use the authorities in `{}`", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: rustls::Error,
    },
    /// There is no authority at all.
    #[error("no trusted authority: the platform has none, and cloud.ca_file names none")]
    Empty,
    /// The cryptography does not support the protocol versions.
    #[error("set up TLS")]
    Protocol(#[source] rustls::Error),
}

/// The TLS configuration of cloud connections: the authorities of a file, those of the platform, or both. Reads files.
pub fn client_config(ca_file: Option<&Path>, platform: bool) -> Result<Arc<ClientConfig>, TrustError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = ca_file {
        add_file(&mut roots, path)?;
    }
    if platform {
        // A platform's store often holds certificates that cannot be parsed; the others still count.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if roots.is_empty() {
        return Err(TrustError::Empty);
    }
    let config = ClientConfig::builder_with_provider(aro_pki::crypto_provider())
        .with_safe_default_protocol_versions()
        .map_err(TrustError::Protocol)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), TrustError> {
    let read = |source| TrustError::Read { path: path.to_owned(), source };
    for certificate in CertificateDer::pem_file_iter(path).map_err(read)? {
        let unusable = |source| TrustError::Unusable { path: path.to_owned(), source };
        roots.add(certificate.map_err(read)?).map_err(unusable)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_or_missing_file_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        let missing = client_config(Some(&path), false).unwrap_err();
        assert!(missing.to_string().contains("ca.pem"), "{missing}");
        std::fs::write(&path, "").unwrap();
        assert!(matches!(client_config(Some(&path), false), Err(TrustError::Empty)));
    }
}
