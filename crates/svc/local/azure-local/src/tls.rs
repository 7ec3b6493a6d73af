//! The certificates of the local cloud: one authority, made once, and leaves that are renewed while the process runs.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aro_base::{Secret, SharedClock, SignedDuration, Timestamp, chain};
use aro_cloud_store::AZURE_HOSTS;
use aro_pki::{Authority, FileIdentity, IdentityPaths, Leaf, Subject, Usage, Validity, crypto_provider};
use aro_runtime::{Fault, RunError, Scope, TaskKind};
use aro_web::Handshake;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::connection::{Cut, CuttableStream, PerConnection};

/// The authority's certificate, for the trust stores of clients.
pub(crate) const CA: &str = "ca.pem";
/// The files of the cloud's own leaf.
const OWN: &str = "tls";
/// How long a leaf is valid; it is replaced when a third of that is left.
const LEAF: SignedDuration = SignedDuration::from_hours(24 * 365);
/// How long the authority is valid.
const TEN_YEARS: SignedDuration = SignedDuration::from_hours(10 * 24 * 365);
/// How often leaves are checked.
const RENEWAL_CHECK: Duration = Duration::from_hours(1);

/// TLS before HTTP; clients prove who they are by tokens.
#[derive(Clone)]
pub(crate) struct TlsHandshake<S> {
    pub acceptor: TlsAcceptor,
    pub service: S,
}

impl<S: Clone + Send + Sync + 'static> Handshake for TlsHandshake<S> {
    type Stream = CuttableStream<TlsStream<TcpStream>>;
    type Service = PerConnection<S>;

    async fn shake(&self, stream: TcpStream, _: SocketAddr) -> io::Result<(Self::Stream, Self::Service)> {
        let (inner, cut) = (self.acceptor.accept(stream).await?, Cut::default());
        let service = PerConnection { service: self.service.clone(), cut: cut.clone() };
        Ok((CuttableStream { inner, cut }, service))
    }
}

/// The authority that clients of the cloud trust, in the cloud's directory. Its functions block on the disk.
pub struct CloudAuthority {
    dir: PathBuf,
    authority: Authority,
}

impl CloudAuthority {
    /// The name of the authority's certificate in the directory.
    pub const CERTIFICATE: &'static str = CA;

    /// The authority, as it was made before or made now. The certificate is public; its file is for its owner alone like all
    /// others.
    pub fn open(dir: &Path, now: Timestamp) -> io::Result<Self> {
        aro_files::take_dir(dir)?;
        let (certificate, key) = (dir.join(CA), dir.join("ca.key"));
        let stored = (std::fs::read_to_string(&certificate), std::fs::read_to_string(&key));
        let authority = if let (Ok(certificate), Ok(key)) = stored {
            Authority::load(&certificate, &Secret::new(key)).map_err(io::Error::other)?
        } else {
            let validity = Validity::from_now(now, TEN_YEARS);
            let made = Authority::generate("aro local cloud", validity).map_err(io::Error::other)?;
            aro_files::replace(&key, made.key().expose().as_bytes())?;
            aro_files::replace(&certificate, made.certificate().as_bytes())?;
            made
        };
        Ok(Self { dir: dir.to_owned(), authority })
    }

    /// The files of a server's certificate and key.
    pub fn files(dir: &Path, name: &str) -> (PathBuf, PathBuf) {
        (dir.join(format!("{name}.crt")), dir.join(format!("{name}.key")))
    }

    /// Issues a server's certificate, for these host names and this machine, into its files.
    pub fn issue(&self, name: &str, hosts: Vec<String>, now: Timestamp) -> io::Result<()> {
        let leaf = Leaf {
            subject: Subject::new(format!("azure-local {name}"), Vec::<String>::new()),
            dns_names: hosts.into_iter().chain(["localhost".to_owned()]).collect(),
            addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
            usage: Usage::Server,
            validity: Validity::from_now(now, LEAF),
        };
        let issued = self.authority.issue(&leaf).map_err(io::Error::other)?;
        let (certificate, key) = Self::files(&self.dir, name);
        let chain = format!("{}{}", issued.certificate, self.authority.certificate());
        aro_files::replace(&certificate, chain.as_bytes())?;
        aro_files::replace(&key, issued.key.expose().as_bytes())
    }

    /// Issues it again if a third of its time or less is left; returns whether it did.
    pub fn renew(&self, name: &str, hosts: Vec<String>, now: Timestamp) -> io::Result<bool> {
        let (certificate, _) = Self::files(&self.dir, name);
        let third = SignedDuration::from_secs(LEAF.as_secs() / 3);
        let expires = std::fs::read_to_string(&certificate).ok().and_then(|text| aro_pki::expires(&text));
        if expires.is_some_and(|at| at.duration_since(now) > third) {
            return Ok(false);
        }
        self.issue(name, hosts, now).map(|()| true)
    }
}

fn azure_hosts() -> Vec<String> {
    AZURE_HOSTS.iter().map(|host| (*host).to_owned()).collect()
}

/// An acceptor with a certificate for Azure's host names and this machine, which is renewed while the scope lives.
pub(crate) async fn acceptor(
    dir: &Path,
    clock: &SharedClock,
    scope: &Scope,
) -> Result<TlsAcceptor, RunError> {
    const WHAT: &str = "make the certificate of the local cloud";
    let (dir, now) = (dir.to_owned(), clock.now());
    let made = tokio::task::spawn_blocking(move || OwnCertificate::make(&dir, now)).await;
    let own =
        made.map_err(|error| Fault::caused(WHAT, error))?.map_err(|error| Fault::caused(WHAT, error))?;
    let own = Arc::new(own);
    let mut config = ServerConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| Fault::caused("set up TLS", error))?
        .with_no_client_auth()
        .with_cert_resolver(own.identity.clone());
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let clock = clock.clone();
    scope.spawn(TaskKind::Helper, "certificate", async move {
        loop {
            tokio::time::sleep(RENEWAL_CHECK).await;
            let (own, now) = (own.clone(), clock.now());
            match tokio::task::spawn_blocking(move || own.renew(now)).await {
                Ok(Ok(true)) => tracing::info!("certificate of the local cloud renewed"),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => {
                    tracing::warn!(error = %chain(&error), "certificate renewal failed; retrying later");
                }
                Err(error) => return Err(Fault::caused("renew the certificate of the local cloud", error)),
            }
        }
    });
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The certificate that the listener presents.
struct OwnCertificate {
    authority: CloudAuthority,
    identity: Arc<FileIdentity>,
}

impl OwnCertificate {
    /// A new one with every start: a new version may answer for more hosts.
    fn make(dir: &Path, now: Timestamp) -> io::Result<Self> {
        let authority = CloudAuthority::open(dir, now)?;
        authority.issue(OWN, azure_hosts(), now)?;
        let (certificate, key) = CloudAuthority::files(dir, OWN);
        let paths = IdentityPaths { certificate, key, bundle: None };
        let identity = FileIdentity::load(paths, now).map_err(io::Error::other)?;
        Ok(Self { authority, identity: Arc::new(identity) })
    }

    fn renew(&self, now: Timestamp) -> io::Result<bool> {
        let renewed = self.authority.renew(OWN, azure_hosts(), now)?;
        // Also after a reload that failed: the files are newer than what is in use.
        Ok(self.identity.reload(now).map_err(io::Error::other)? || renewed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leaf_is_replaced_while_it_is_in_use_and_the_authority_stays() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("cloud");
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let after = |days: i64| now.saturating_add(SignedDuration::from_hours(24 * days)).unwrap();
        let own = OwnCertificate::make(&dir, now).unwrap();
        let (first, ca) = (own.identity.expires(), std::fs::read(dir.join(CA)).unwrap());
        assert!(!own.renew(after(200)).unwrap());
        assert_eq!(own.identity.expires(), first);
        assert!(own.renew(after(250)).unwrap());
        assert!(own.identity.expires() > first, "handshakes use the new one");
        assert!(!own.renew(after(251)).unwrap());
        let again = OwnCertificate::make(&dir, after(251)).unwrap();
        assert!(again.identity.expires() > own.identity.expires());
        assert_eq!(std::fs::read(dir.join(CA)).unwrap(), ca);
    }
}
