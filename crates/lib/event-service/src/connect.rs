//! Reaching a server: by TCP, with TLS 1.3 and a certificate of our own where one is given.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use aro_base::SharedClock;
use aro_pki::{FileIdentity, IdentityPaths};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use crate::Client;

/// Where a server is, and who we are to it.
#[derive(Debug, Clone)]
pub struct Target {
    /// `host:port`.
    pub address: String,
    /// What we prove ourselves with, and whom we trust. Read anew for every connection. Without: a plain connection.
    pub credentials: Option<IdentityPaths>,
    /// The name in the server's certificate, when it is not the host of `address`.
    pub server_name: Option<String>,
}

/// How long connecting may take.
const DIAL: Duration = Duration::from_secs(5);
/// How often a silent connection is asked whether it lives.
const PING: Duration = Duration::from_secs(10);

trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

impl Client<Channel> {
    /// A client that connects when it is first used, and again whenever the connection is lost.
    pub fn to(target: Target, clock: SharedClock) -> Result<Self, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(format!("http://{}", target.address))?
            .connect_timeout(DIAL)
            .http2_keep_alive_interval(PING)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true);
        let target = Arc::new(target);
        let channel = endpoint.connect_with_connector_lazy(service_fn(move |_| {
            let (target, clock) = (target.clone(), clock.clone());
            async move { dial(&target, &clock).await.map(TokioIo::new) }
        }));
        Ok(Self::new(channel))
    }
}

async fn dial(target: &Target, clock: &SharedClock) -> io::Result<Box<dyn Bytes>> {
    let stream = TcpStream::connect(&target.address).await?;
    stream.set_nodelay(true)?;
    let Some(paths) = target.credentials.clone() else { return Ok(Box::new(stream)) };
    let now = clock.now();
    let identity = tokio::task::spawn_blocking(move || FileIdentity::load(paths, now)).await;
    let identity = Arc::new(identity.map_err(io::Error::other)?.map_err(io::Error::other)?);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(io::Error::other)?
        .dangerous()
        // Dangerous in name only: it verifies by the authorities in the files.
        .with_custom_certificate_verifier(identity.server_verifier());
    let mut config = config.with_client_cert_resolver(identity);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let host = target.address.rsplit_once(':').map_or(target.address.as_str(), |(host, _)| host);
    let name = target.server_name.clone().unwrap_or_else(|| host.trim_matches(['[', ']']).to_owned());
    let name =
        ServerName::try_from(name).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    Ok(Box::new(TlsConnector::from(Arc::new(config)).connect(name, stream).await?))
}
