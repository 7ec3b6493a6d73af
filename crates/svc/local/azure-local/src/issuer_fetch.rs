//! Documents of federated token issuers, fetched over HTTPS.
//!
//! An issuer is named by a federated credential that a customer wrote, so that what is dialled must not be the customer's
//! choice: Azure's host names lead to this cloud's own listener, every other name goes through the region's CONNECT proxy, which
//! relays to the region's zones and to nothing else. Only with `fetch_from_internet` other names are resolved and dialled, and
//! then public addresses only. Redirects are not followed.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aro_azure_local_directory::{Fetch, FetchError};
use aro_base::chain;
use aro_cloud_store::is_azure_host;
use aro_net::{Connection, Dialer, HostPort, Resolve, SystemResolve, Tls};
use aro_runtime::{Fault, Scope, TaskKind};
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;
use url::{Host, Url};

/// Opening a connection takes at most this long; the caller limits the whole.
const DIAL_DEADLINE: Duration = Duration::from_secs(5);
/// The largest head of the proxy's answer.
const MOST_HEAD: usize = 8 * 1024;
const HTTPS: u16 = 443;

/// Fetches documents where the rules of this module lead.
pub(crate) struct IssuerFetch {
    own: SocketAddr,
    proxy: Option<SocketAddr>,
    internet: bool,
    tls: Arc<ClientConfig>,
    dialer: Dialer,
    scope: Scope,
}

/// The part of the configuration that decides where a fetch may lead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    /// The listener of this cloud.
    pub own: SocketAddr,
    /// The region's proxy.
    pub proxy: Option<SocketAddr>,
    /// Whether public addresses may be dialled.
    pub internet: bool,
}

impl IssuerFetch {
    /// Trusts the authority in a file; with the internet in reach, the platform's, too. Reads files.
    pub(crate) async fn new(reach: Reach, ca_file: PathBuf, scope: Scope) -> Result<Self, Fault> {
        const WHAT: &str = "load the authorities that issuers are verified with";
        let loaded = tokio::task::spawn_blocking(move || trust(&ca_file, reach.internet)).await;
        let tls = loaded
            .map_err(|error| Fault::caused(WHAT, error))?
            .map_err(|error| Fault::caused(WHAT, error))?;
        let Reach { own, proxy, internet } = reach;
        let dialer = Dialer::new(Arc::new(SystemResolve), DIAL_DEADLINE);
        Ok(Self { own, proxy, internet, tls, dialer, scope })
    }

    /// A TLS connection to the host of a URL.
    async fn connect(&self, host: &str, port: u16) -> Result<Box<dyn Connection>, String> {
        let text = |error: &(dyn std::error::Error + 'static)| chain(error).to_string();
        if is_azure_host(host) {
            if port != HTTPS {
                return Err(format!("{host} is served on port {HTTPS} only"));
            }
            return self.dial(self.own, host).await;
        }
        if let Some(proxy) = self.proxy {
            let tunnelled = self.tunnel(proxy, host, port).await;
            if tunnelled.is_ok() || !self.internet {
                return tunnelled;
            }
        }
        if !self.internet {
            return Err(format!("{host} is served neither by the local cloud nor by the region"));
        }
        let address = SystemResolve.resolve(host, port).await.map_err(|error| text(&error))?;
        if port != HTTPS || !is_public(address.ip()) {
            return Err(format!("{host} has no public address"));
        }
        self.dial(address, host).await
    }

    async fn dial(&self, address: SocketAddr, host: &str) -> Result<Box<dyn Connection>, String> {
        let target = HostPort { host: address.ip().to_string(), port: address.port() };
        let tls = Tls { config: self.tls.clone(), server_name: Some(host.to_owned()) };
        self.dialer.dial(&target, Some(tls)).await.map_err(|error| chain(&error).to_string())
    }

    /// A tunnel through the region's proxy, then TLS with the host.
    async fn tunnel(&self, proxy: SocketAddr, host: &str, port: u16) -> Result<Box<dyn Connection>, String> {
        let target = HostPort { host: proxy.ip().to_string(), port: proxy.port() };
        let mut stream = self.dialer.dial(&target, None).await.map_err(|error| chain(&error).to_string())?;
        let ask = format!("CONNECT {host}:{port} HTTP/1.1\r\nhost: {host}:{port}\r\n\r\n");
        stream.write_all(ask.as_bytes()).await.map_err(|error| error.to_string())?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= MOST_HEAD {
                return Err("the proxy's answer is too large".to_owned());
            }
            // One byte at a time: what follows the head belongs to the tunnel.
            head.push(stream.read_u8().await.map_err(|error| error.to_string())?);
        }
        if !head.starts_with(b"HTTP/1.1 200") {
            return Err(format!("{host} is served neither by the local cloud nor by the region"));
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let shaken = TlsConnector::from(self.tls.clone()).connect(name, stream).await;
        shaken.map(|stream| Box::new(stream) as Box<dyn Connection>).map_err(|error| error.to_string())
    }

    async fn get(&self, url: &Url, most_bytes: usize) -> Result<Bytes, String> {
        // An address or `localhost` would make this cloud a client of whatever listens on the machine.
        let Some(Host::Domain(host)) = url.host() else { return Err("an address is no issuer".to_owned()) };
        let port = url.port_or_known_default().filter(|_| url.scheme() == "https");
        let port = port.ok_or("documents of issuers are at https URLs")?;
        let stream = self.connect(host, port).await?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| error.to_string())?;
        self.scope.spawn(TaskKind::Connection, "fetch-issuer", async move {
            // The end of the connection is seen by the request that uses it.
            let _ = connection.await;
            Ok::<_, Fault>(())
        });
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let request = Request::get(path)
            .header(header::HOST, host)
            .header(header::ACCEPT, "application/json")
            .body(Empty::<Bytes>::new())
            .map_err(|error| error.to_string())?;
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        if response.status() != StatusCode::OK {
            return Err(format!("{url} answered with status {}", response.status().as_u16()));
        }
        let body = Limited::new(response.into_body(), most_bytes).collect().await;
        Ok(body.map_err(|error| format!("the document at {url} cannot be read: {error}"))?.to_bytes())
    }
}

#[async_trait]
impl Fetch for IssuerFetch {
    async fn fetch(&self, url: &Url, most_bytes: usize) -> Result<Bytes, FetchError> {
        self.get(url, most_bytes).await.map_err(FetchError)
    }
}

/// The authorities that issuers' certificates are verified with.
fn trust(ca_file: &std::path::Path, platform: bool) -> std::io::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca_file).map_err(std::io::Error::other)? {
        roots.add(certificate.map_err(std::io::Error::other)?).map_err(std::io::Error::other)?;
    }
    if platform {
        // A platform's store often holds certificates that cannot be parsed; the others still count.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let config = ClientConfig::builder_with_provider(aro_pki::crypto_provider())
        .with_safe_default_protocol_versions()
        .map_err(std::io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Whether an address is one of the internet: not of this machine, a private network, a link, a document or a group.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            let shared = first == 100 && (64..128).contains(&second);
            let benchmark = first == 198 && (second == 18 || second == 19);
            !(address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_documentation()
                || address.is_multicast()
                || address.is_broadcast()
                || first == 0
                || first >= 240
                || shared
                || benchmark)
        }
        // Global unicast is 2000::/3; 2001:db8::/32 is for documents.
        IpAddr::V6(address) => {
            let [first, second, ..] = address.segments();
            first & 0xe000 == 0x2000 && !(first == 0x2001 && second == 0xdb8)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for (address, expected) in [
            ("8.8.8.8", true),
            ("2606:4700::1111", true),
            ("127.0.0.1", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("198.18.0.1", false),
            ("0.0.0.0", false),
            ("255.255.255.255", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }
}
