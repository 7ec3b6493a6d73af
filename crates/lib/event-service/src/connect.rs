//! Connecting to a server: TCP, with TLS 1.3 and a client certificate where one is configured.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use aro_base::SharedClock;
use aro_net::{Connection, Dialer, HostPort, Resolve, Tls};
use aro_pki::{FileIdentity, IdentityPaths};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use crate::Client;

/// The address of a server, and the identity of the client.
#[derive(Debug, Clone)]
pub struct Target {
    /// `host:port`.
    pub address: String,
    /// The client certificate and the trusted authorities; read again for every connection. Without them the connection is
    /// plain.
    pub credentials: Option<IdentityPaths>,
    /// The name in the server's certificate, if it is not the host of `address`.
    pub server_name: Option<String>,
}

/// The deadline of a connect.
const DIAL: Duration = Duration::from_secs(5);
/// The interval of keep-alive pings on an idle connection.
const PING: Duration = Duration::from_secs(10);

impl Client<Channel> {
    /// A client that connects when it is first used, and again whenever the connection is lost.
    pub fn to(
        target: Target,
        resolve: Arc<dyn Resolve>,
        clock: SharedClock,
    ) -> Result<Self, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(format!("http://{}", target.address))?
            .connect_timeout(DIAL)
            .http2_keep_alive_interval(PING)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true);
        let target = Arc::new(target);
        let dialer = Dialer::new(resolve, DIAL);
        let channel = endpoint.connect_with_connector_lazy(service_fn(move |_| {
            let (target, dialer, clock) = (target.clone(), dialer.clone(), clock.clone());
            async move { dial(&target, &dialer, &clock).await.map(TokioIo::new) }
        }));
        Ok(Self::new(channel))
    }
}

async fn dial(target: &Target, dialer: &Dialer, clock: &SharedClock) -> io::Result<Box<dyn Connection>> {
    let address = HostPort::parse(&target.address).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("`{}` is not host:port", target.address))
    })?;
    let tls = match target.credentials.clone() {
        Some(paths) => {
            let config = Arc::new(client_config(paths, clock).await?);
            Some(Tls { config, server_name: target.server_name.clone() })
        }
        None => None,
    };
    Ok(dialer.dial(&address, tls).await?)
}

/// TLS 1.3 with the certificate and the authorities in the files, as they are now.
async fn client_config(paths: IdentityPaths, clock: &SharedClock) -> io::Result<ClientConfig> {
    let now = clock.now();
    let identity = tokio::task::spawn_blocking(move || FileIdentity::load(paths, now)).await;
    let identity = Arc::new(identity.map_err(io::Error::other)?.map_err(io::Error::other)?);
    let provider = aro_pki::crypto_provider();
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(io::Error::other)?
        .dangerous()
        // The verifier checks against the authorities in the files.
        .with_custom_certificate_verifier(identity.server_verifier());
    let mut config = config.with_client_cert_resolver(identity);
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}
