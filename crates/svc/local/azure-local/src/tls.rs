//! The certificate of the local cloud: one authority, made once, and a leaf for Azure's host names, renewed with every start.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aro_base::{Secret, SignedDuration, Timestamp};
use aro_cloud_store::AZURE_HOSTS;
use aro_pki::{Authority, FileIdentity, IdentityPaths, Leaf, Subject, Usage, Validity, crypto_provider};
use aro_runtime::{Fault, RunError};
use aro_web::Handshake;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The authority's certificate, for the trust stores of clients.
pub(crate) const CA: &str = "ca.pem";

/// TLS before HTTP; clients prove who they are by tokens.
#[derive(Clone)]
pub(crate) struct TlsHandshake<S> {
    pub acceptor: TlsAcceptor,
    pub service: S,
}

impl<S: Clone + Send + Sync + 'static> Handshake for TlsHandshake<S> {
    type Stream = TlsStream<TcpStream>;
    type Service = S;

    async fn shake(&self, stream: TcpStream, _: SocketAddr) -> io::Result<(Self::Stream, S)> {
        Ok((self.acceptor.accept(stream).await?, self.service.clone()))
    }
}

/// An acceptor with a certificate for Azure's host names and this machine.
pub(crate) async fn acceptor(dir: &Path, now: Timestamp) -> Result<TlsAcceptor, RunError> {
    const WHAT: &str = "make the certificate of the local cloud";
    let dir = dir.to_owned();
    let identity = tokio::task::spawn_blocking(move || certify(&dir, now)).await;
    let identity =
        identity.map_err(|error| Fault::caused(WHAT, error))?.map_err(|error| Fault::caused(WHAT, error))?;
    let mut config = ServerConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| Fault::caused("set up TLS", error))?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(identity));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

const YEAR: SignedDuration = SignedDuration::from_hours(24 * 365);

fn certify(dir: &Path, now: Timestamp) -> io::Result<FileIdentity> {
    let authority = authority(dir, now)?;
    let names = AZURE_HOSTS.iter().map(|host| (*host).to_owned()).chain(["localhost".to_owned()]);
    let leaf = Leaf {
        subject: Subject::new("azure-local", Vec::<String>::new()),
        dns_names: names.collect(),
        addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
        usage: Usage::Server,
        validity: Validity::from_now(now, YEAR),
    };
    let issued = authority.issue(&leaf).map_err(io::Error::other)?;
    let (certificate, key) = (dir.join("tls.crt"), dir.join("tls.key"));
    aro_files::replace(
        &certificate,
        format!("{}{}", issued.certificate, authority.certificate()).as_bytes(),
    )?;
    aro_files::replace(&key, issued.key.expose().as_bytes())?;
    FileIdentity::load(IdentityPaths { certificate, key, bundle: None }, now).map_err(io::Error::other)
}

/// The authority, as it was made before or made now. The certificate is public; its file is for its owner alone like all others.
fn authority(dir: &Path, now: Timestamp) -> io::Result<Authority> {
    aro_files::take_dir(dir)?;
    let (certificate, key): (PathBuf, PathBuf) = (dir.join(CA), dir.join("ca.key"));
    if let (Ok(certificate), Ok(key)) = (std::fs::read_to_string(&certificate), std::fs::read_to_string(&key))
    {
        return Authority::load(&certificate, &Secret::new(key)).map_err(io::Error::other);
    }
    let validity = Validity::from_now(now, YEAR * 10);
    let authority = Authority::generate("aro local cloud", validity).map_err(io::Error::other)?;
    aro_files::replace(&key, authority.key().expose().as_bytes())?;
    aro_files::replace(&certificate, authority.certificate().as_bytes())?;
    Ok(authority)
}
