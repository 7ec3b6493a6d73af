//! A proxy, a destination behind it, and a client that speaks just enough HTTP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use aro_proxy::{Names, Proxy, ProxyConfig, ProxyPorts, RegionDestinations, Tunnels};
use aro_runtime::{Listener, Metrics, Readiness, Scope, Section as _, launch};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub const DEADLINE: Duration = Duration::from_secs(10);

/// One name of the region.
struct OneName;

#[async_trait::async_trait]
impl Names for OneName {
    async fn addresses(&self, host: &str) -> io::Result<Option<Vec<IpAddr>>> {
        Ok((host == "api.c1.example.com").then(|| vec![IpAddr::V4(Ipv4Addr::new(20, 0, 0, 1))]))
    }
}

pub struct Fixture {
    pub address: SocketAddr,
    pub azure_local: TcpListener,
    pub ingress: TcpListener,
    pub metrics: Metrics,
    pub scope: Scope,
}

impl Fixture {
    pub async fn start(config: ProxyConfig) -> Result<Self> {
        let azure_local = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let ingress = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let tunnels = Tunnels::parse(&[format!("443={}", ingress.local_addr()?)])?;
        let destinations = RegionDestinations::new(azure_local.local_addr()?, Arc::new(OneName), tunnels);
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), "proxy.listen").await?;
        let (address, metrics, scope) = (listener.local_addr(), Metrics::new(), Scope::root("proxy"));
        let ports = ProxyPorts {
            listener,
            destinations: Arc::new(destinations),
            metrics: metrics.clone(),
            readiness: Readiness::new(),
        };
        launch::<Proxy>(&scope, config.check()?, ports)?;
        Ok(Self { address, azure_local, ingress, metrics, scope })
    }

    pub async fn connect(&self) -> Result<TcpStream> {
        Ok(TcpStream::connect(self.address).await?)
    }

    /// Asks for a tunnel; returns the connection and the response's head.
    pub async fn ask(&self, target: &str) -> Result<(TcpStream, String)> {
        let mut stream = self.connect().await?;
        stream.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes()).await?;
        let head = read_head(&mut stream).await?;
        Ok((stream, head))
    }

    /// Waits until the metrics hold a line.
    pub async fn until_metric(&self, line: &str) -> Result<()> {
        let wait = async {
            while !self.metrics.encode().contains(line) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, wait)
            .await
            .with_context(|| format!("{line} in {}", self.metrics.encode()))
    }
}

/// Reads up to the empty line, byte by byte, so that nothing of the tunnel is lost.
pub async fn read_head(stream: &mut TcpStream) -> Result<String> {
    let read = async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        Ok(String::from_utf8(head)?)
    };
    tokio::time::timeout(DEADLINE, read).await?
}

/// Reads a whole response with a body of known length.
pub async fn read_response(stream: &mut TcpStream) -> Result<(String, String)> {
    let head = read_head(stream).await?;
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.context("no content-length")?];
    stream.read_exact(&mut body).await?;
    Ok((head, String::from_utf8(body)?))
}
