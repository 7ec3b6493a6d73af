//! From a broker's name to an address.

use std::io;
use std::net::SocketAddr;

use async_trait::async_trait;

/// Finds a broker. Asked before every connect, since addresses move: in a region a service's name leads to a port on
/// loopback that the role got when it started.
#[async_trait]
pub trait Resolve: Send + Sync + 'static {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<SocketAddr>;
}

/// Asks the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolve;

#[async_trait]
impl Resolve for SystemResolve {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<SocketAddr> {
        let mut found = tokio::net::lookup_host((host, port)).await?;
        found
            .next()
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("`{host}` has no address")))
    }
}
