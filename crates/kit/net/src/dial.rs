//! Opening connections: resolve, connect, TLS handshake, all within one deadline.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::resolve::Resolve;

/// A connection, plain or TLS.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Where to connect: a host name or address, and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// The host name, or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl HostPort {
    /// Parses `host:port`; an IPv6 address stands in brackets.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().ok()?;
        (!host.is_empty()).then(|| Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// TLS of one connection.
#[derive(Debug, Clone)]
pub struct Tls {
    /// Trusted authorities and the client's certificate.
    pub config: Arc<ClientConfig>,
    /// The name in the server's certificate, if it is not the host.
    pub server_name: Option<String>,
}

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The name has no address.
    #[error("resolve `{0}`")]
    Resolve(HostPort, #[source] io::Error),
    /// No TCP connection.
    #[error("connect to {0}")]
    Connect(HostPort, #[source] io::Error),
    /// The server's name cannot stand in a certificate.
    #[error("`{0}` is not a server name")]
    ServerName(String),
    /// The TLS handshake failed.
    #[error("TLS handshake with {0}")]
    Tls(HostPort, #[source] io::Error),
    /// The deadline passed first.
    #[error("connecting to {0} took longer than {1:?}")]
    Deadline(HostPort, Duration),
}

impl From<DialError> for io::Error {
    fn from(error: DialError) -> Self {
        let kind = match &error {
            DialError::Resolve(_, source) | DialError::Connect(_, source) | DialError::Tls(_, source) => {
                source.kind()
            }
            DialError::ServerName(_) => io::ErrorKind::InvalidInput,
            DialError::Deadline(..) => io::ErrorKind::TimedOut,
        };
        Self::new(kind, error)
    }
}

/// Opens connections. Cloning is cheap.
#[derive(Clone)]
pub struct Dialer {
    resolve: Arc<dyn Resolve>,
    deadline: Duration,
}

impl Dialer {
    /// One that gives each connection this much time, from the name to the end of the handshake.
    pub fn new(resolve: Arc<dyn Resolve>, deadline: Duration) -> Self {
        Self { resolve, deadline }
    }

    /// Opens a connection; with TLS if it is given.
    pub async fn dial(&self, target: &HostPort, tls: Option<Tls>) -> Result<Box<dyn Connection>, DialError> {
        let dialled = tokio::time::timeout(self.deadline, self.open(target, tls)).await;
        dialled.unwrap_or_else(|_| Err(DialError::Deadline(target.clone(), self.deadline)))
    }

    async fn open(&self, target: &HostPort, tls: Option<Tls>) -> Result<Box<dyn Connection>, DialError> {
        let resolved = self.resolve.resolve(&target.host, target.port).await;
        let address = resolved.map_err(|error| DialError::Resolve(target.clone(), error))?;
        let refused = |error| DialError::Connect(target.clone(), error);
        let stream = TcpStream::connect(address).await.map_err(refused)?;
        stream.set_nodelay(true).map_err(refused)?;
        let Some(tls) = tls else { return Ok(Box::new(stream)) };
        let name = tls.server_name.unwrap_or_else(|| target.host.clone());
        let name = ServerName::try_from(name.clone()).map_err(|_| DialError::ServerName(name))?;
        let shaken = TlsConnector::from(tls.config).connect(name, stream).await;
        Ok(Box::new(shaken.map_err(|error| DialError::Tls(target.clone(), error))?))
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Resolves every name to one address; with no address it never answers.
    struct Fixed(Option<SocketAddr>);

    #[async_trait::async_trait]
    impl Resolve for Fixed {
        async fn resolve(&self, _: &str, _: u16) -> io::Result<SocketAddr> {
            match self.0 {
                Some(address) => Ok(address),
                None => std::future::pending().await,
            }
        }
    }

    fn target() -> HostPort {
        HostPort { host: "maestro-broker.maestro.svc".to_owned(), port: 8883 }
    }

    #[test]
    fn host_and_port_are_read_and_written_alike() {
        for (text, expected) in [
            ("maestro-mqtt.maestro:8883", Some(("maestro-mqtt.maestro", 8883))),
            ("127.0.0.1:1883", Some(("127.0.0.1", 1883))),
            ("[::1]:1883", Some(("::1", 1883))),
            ("broker", None),
            (":1883", None),
            ("broker:70000", None),
        ] {
            let parsed = HostPort::parse(text);
            assert_eq!(parsed.as_ref().map(|of| (of.host.as_str(), of.port)), expected, "{text}");
            if let Some(parsed) = parsed {
                assert_eq!(parsed.to_string(), text);
            }
        }
    }

    #[tokio::test]
    async fn a_name_leads_to_the_address_that_the_resolver_gives() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let resolve = Arc::new(Fixed(Some(listener.local_addr().unwrap())));
        let dialer = Dialer::new(resolve, Duration::from_secs(5));
        let target = target();
        let (dialled, accepted) = tokio::join!(dialer.dial(&target, None), listener.accept());
        dialled.unwrap().write_all(b"hello").await.unwrap();
        let mut read = [0; 5];
        accepted.unwrap().0.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"hello");
    }

    #[tokio::test(start_paused = true)]
    async fn a_resolver_that_never_answers_ends_at_the_deadline() {
        let dialer = Dialer::new(Arc::new(Fixed(None)), Duration::from_secs(5));
        let error = dialer.dial(&target(), None).await.err().unwrap();
        assert!(matches!(error, DialError::Deadline(..)), "{error}");
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_refused_connection_names_the_target() {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let dialer = Dialer::new(Arc::new(Fixed(Some(address))), Duration::from_secs(5));
        let error = dialer.dial(&target(), None).await.err().unwrap();
        assert_eq!(error.to_string(), "connect to maestro-broker.maestro.svc:8883");
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::ConnectionRefused);
    }
}
