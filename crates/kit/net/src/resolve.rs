//! From a host name to an address.

use std::io;
use std::net::SocketAddr;

use async_trait::async_trait;

/// Resolves host names. Called before every connection, because addresses move: inside a region the name of a Service
/// leads to a loopback port that the role got when its pod started.
#[async_trait]
pub trait Resolve: Send + Sync + 'static {
    /// The address of a port of a host.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<SocketAddr>;
}

/// The resolver of the operating system.
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

/// The Service and the namespace in a cluster-local name (`<service>.<namespace>.svc`, also with `.cluster.local`); `None`
/// for every other host name.
pub fn service_name(host: &str) -> Option<(&str, &str)> {
    let host = host.strip_suffix(".cluster.local").unwrap_or(host);
    let (service, namespace) = host.strip_suffix(".svc")?.split_once('.')?;
    (!service.is_empty() && !namespace.is_empty() && !namespace.contains('.')).then_some((service, namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cluster_local_names_are_services() {
        assert_eq!(service_name("maestro-broker.maestro.svc"), Some(("maestro-broker", "maestro")));
        let long = "maestro-broker.maestro.svc.cluster.local";
        assert_eq!(service_name(long), Some(("maestro-broker", "maestro")));
        for other in ["localhost", "a.svc", "a.b.c.svc", ".b.svc", "a..svc", "svc", "broker.example.com"] {
            assert_eq!(service_name(other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn the_system_resolves_loopback() {
        let address = SystemResolve.resolve("127.0.0.1", 80).await.unwrap();
        assert_eq!(address, SocketAddr::from(([127, 0, 0, 1], 80)));
    }
}
