//! A certificate, its key and a bundle of authorities, in files that are rotated.
//!
//! Rotation swaps a link to a whole directory, or writes the files one after another. So a read may see a new certificate
//! beside an old key, or part of a file. New content is used only when all of it is consistent; until then the loaded
//! content stays in use, and [`FileIdentity::reload`] returns the reason.
//!
//! What it is not: it watches nothing and reads no clock. Its owner calls `reload` from time to time.

mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aro_base::Timestamp;
use parking_lot::RwLock;
use rustls::client::ResolvesClientCert;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig, SignatureScheme};
use x509_parser::prelude::FromDer as _;

use verify::Verifiers;

/// Attempts to read files that change during the read.
const ATTEMPTS: usize = 3;

/// The paths of the files. All are PEM.
#[derive(Debug, Clone)]
pub struct IdentityPaths {
    /// The certificate and its intermediates.
    pub certificate: PathBuf,
    /// The certificate's key.
    pub key: PathBuf,
    /// The authorities of peers.
    pub bundle: Option<PathBuf>,
}

/// Why files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The file is missing or not readable.
    #[error("read `{path}`")]
    Read {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file has other content, or is truncated.
    #[error("`{path}` holds no {what}, or only a part of it")]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The expected content.
        what: &'static str,
    },
    /// Certificate and key do not match.
    #[error("the key in `{key}` is not the one of the certificate in `{certificate}`")]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// The certificate has expired.
    #[error("the certificate in `{path}` expired at {at}")]
    Expired {
        /// The path.
        path: PathBuf,
        /// The expiry.
        at: Timestamp,
    },
    /// The certificate is not valid yet.
    #[error("the certificate in `{path}` is valid only from {at}")]
    NotYet {
        /// The path.
        path: PathBuf,
        /// The start of its validity.
        at: Timestamp,
    },
}

/// The content in use.
struct Loaded {
    digest: [u8; 32],
    certified: Arc<CertifiedKey>,
    expires: Timestamp,
    trust: Option<Trust>,
}

/// The authorities in use.
struct Trust {
    roots: Arc<RootCertStore>,
    verifiers: Verifiers,
}

/// An identity whose files may change. Give it to rustls as a resolver of certificates; handshakes use what is in use
/// when they happen.
pub struct FileIdentity {
    paths: IdentityPaths,
    provider: Arc<CryptoProvider>,
    loaded: RwLock<Arc<Loaded>>,
}

impl std::fmt::Debug for FileIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FileIdentity").field(&self.paths.certificate).finish()
    }
}

impl FileIdentity {
    /// Reads the files. Blocks on the disk.
    pub fn load(paths: IdentityPaths, now: Timestamp) -> Result<Self, FilesError> {
        let provider = crate::crypto_provider();
        let loaded = settled(&paths, &provider, now)?;
        Ok(Self { paths, provider, loaded: RwLock::new(Arc::new(loaded)) })
    }

    /// Takes over new content; tells whether there was any. After an error, what was in use still is. Blocks on the
    /// disk.
    pub fn reload(&self, now: Timestamp) -> Result<bool, FilesError> {
        if Content::read(&self.paths)?.digest() == self.loaded().digest {
            return Ok(false);
        }
        let loaded = settled(&self.paths, &self.provider, now)?;
        let mut current = self.loaded.write();
        let changed = current.digest != loaded.digest;
        *current = Arc::new(loaded);
        Ok(changed)
    }

    /// When the certificate in use expires.
    pub fn expires(&self) -> Timestamp {
        self.loaded().expires
    }

    /// The authorities in use, if there is a bundle.
    pub fn roots(&self) -> Option<Arc<RootCertStore>> {
        self.loaded().trust.as_ref().map(|trust| trust.roots.clone())
    }

    /// Verifies clients by the bundle in use. Without a bundle every client is rejected.
    ///
    /// It sends clients no authority names: those may change during a handshake.
    pub fn client_verifier(self: &Arc<Self>) -> Arc<dyn ClientCertVerifier> {
        Arc::new(verify::ByFiles(self.clone()))
    }

    /// Verifies servers by the bundle in use. Without a bundle every server is rejected.
    pub fn server_verifier(self: &Arc<Self>) -> Arc<dyn ServerCertVerifier> {
        Arc::new(verify::ByFiles(self.clone()))
    }

    /// The TLS configuration of a server: TLS 1.3, clients verified by the bundle in use.
    ///
    /// Sessions are not resumed. A resumed session would rest on its first certificate, even if that or its authority was
    /// replaced since.
    pub fn server_config(self: &Arc<Self>) -> Result<ServerConfig, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(self.client_verifier())
            .with_cert_resolver(self.clone());
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    fn loaded(&self) -> Arc<Loaded> {
        self.loaded.read().clone()
    }
}

impl ResolvesServerCert for FileIdentity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.loaded().certified.clone())
    }
}

impl ResolvesClientCert for FileIdentity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.loaded().certified.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// The files as read.
#[derive(PartialEq)]
struct Content {
    certificate: Vec<u8>,
    key: Vec<u8>,
    bundle: Option<Vec<u8>>,
}

impl Content {
    fn read(paths: &IdentityPaths) -> Result<Self, FilesError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|source| FilesError::Read { path: path.to_owned(), source })
        };
        Ok(Self {
            certificate: read(&paths.certificate)?,
            key: read(&paths.key)?,
            bundle: paths.bundle.as_deref().map(read).transpose()?,
        })
    }

    /// Its fingerprint, so that no second copy of the key is kept.
    fn digest(&self) -> [u8; 32] {
        let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
        for part in [Some(&self.certificate), Some(&self.key), self.bundle.as_ref()].into_iter().flatten() {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut digest = [0; 32];
        digest.copy_from_slice(context.finish().as_ref());
        digest
    }

    fn check(
        self,
        paths: &IdentityPaths,
        provider: &Arc<CryptoProvider>,
        now: Timestamp,
    ) -> Result<Loaded, FilesError> {
        let chain = certificates(&self.certificate, &paths.certificate)?;
        let validity = chain.first().and_then(|first| validity(first));
        let (from, until) = validity.ok_or_else(|| unreadable(&paths.certificate, CERTIFICATE))?;
        if now > until {
            return Err(FilesError::Expired { path: paths.certificate.clone(), at: until });
        }
        if now < from {
            return Err(FilesError::NotYet { path: paths.certificate.clone(), at: from });
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|_| unreadable(&paths.key, KEY))?;
        let key = provider.key_provider.load_private_key(key).map_err(|_| unreadable(&paths.key, KEY))?;
        let certified = CertifiedKey::new(chain, key);
        certified.keys_match().map_err(|_| FilesError::Mismatch {
            certificate: paths.certificate.clone(),
            key: paths.key.clone(),
        })?;
        let trust = match (&self.bundle, &paths.bundle) {
            (Some(text), Some(path)) => Some(trust(text, path, provider)?),
            _ => None,
        };
        Ok(Loaded { digest: self.digest(), certified: Arc::new(certified), expires: until, trust })
    }
}

const CERTIFICATE: &str = "certificate";
const KEY: &str = "private key";

/// Parses consistent content. If it is inconsistent and the files have changed since, they were read during a rotation.
fn settled(
    paths: &IdentityPaths,
    provider: &Arc<CryptoProvider>,
    now: Timestamp,
) -> Result<Loaded, FilesError> {
    let mut content = Content::read(paths)?;
    for _ in 1..ATTEMPTS {
        let digest = content.digest();
        let failed = match content.check(paths, provider, now) {
            Ok(loaded) => return Ok(loaded),
            Err(failed) => failed,
        };
        content = Content::read(paths)?;
        if content.digest() == digest {
            return Err(failed);
        }
    }
    content.check(paths, provider, now)
}

fn unreadable(path: &Path, what: &'static str) -> FilesError {
    FilesError::Unreadable { path: path.to_owned(), what }
}

fn certificates(text: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, FilesError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or_else(|| unreadable(path, CERTIFICATE))
}

fn trust(text: &[u8], path: &Path, provider: &Arc<CryptoProvider>) -> Result<Trust, FilesError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(text, path)? {
        roots.add(certificate).map_err(|_| unreadable(path, CERTIFICATE))?;
    }
    let roots = Arc::new(roots);
    let verifiers = Verifiers::new(&roots, provider).map_err(|_| unreadable(path, CERTIFICATE))?;
    Ok(Trust { roots, verifiers })
}

/// When a certificate (PEM) expires; `None` if it is not one.
pub fn expires(pem: &str) -> Option<Timestamp> {
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
    validity(&certificate).map(|(_, until)| until)
}

fn validity(certificate: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let (_, parsed) = x509_parser::certificate::X509Certificate::from_der(certificate).ok()?;
    let moment = |at: x509_parser::time::ASN1Time| Timestamp::from_second(at.timestamp()).ok();
    Some((moment(parsed.validity().not_before)?, moment(parsed.validity().not_after)?))
}

#[cfg(test)]
mod tests;
