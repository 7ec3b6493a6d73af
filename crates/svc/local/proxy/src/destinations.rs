//! Where a host and a port lead.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;

use crate::names::Names;
use crate::tunnels::Tunnels;
use aro_cloud_store::{AZURE_HOSTS, FRONT_DOOR_ADDRESS, is_azure_host};

/// The port of HTTPS.
const HTTPS: u16 = 443;

/// Why a host and a port lead nowhere.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The host is neither Azure's nor in a zone of the region.
    #[error("the host is not served in this region")]
    Host,
    /// The host is served, but not on this port or at this address.
    #[error("no listener of the region is configured for this port")]
    Port,
    /// The region's DNS server does not answer.
    #[error("the region's DNS server does not answer")]
    Names(#[source] std::io::Error),
}

impl Refusal {
    /// What the client reads: which host, why, and what is allowed instead.
    pub(crate) fn explain(&self, host: &str, port: u16) -> String {
        match self {
            Self::Host => format!(
                "{host} is not served here. This proxy relays only to Azure host names of the local cloud ({}) and to names in the region's DNS zones.\n",
                AZURE_HOSTS.join(", ")
            ),
            Self::Port => format!(
                "{host} is served here, but not on port {port}. Use port {HTTPS}, or map the port to a listener of the region in proxy.tunnels.\n"
            ),
            Self::Names(_) => format!("{host} cannot be looked up: {self}. Check proxy.dns.\n"),
        }
    }
}

/// Decides where a host and a port lead.
#[async_trait]
pub trait Destinations: Send + Sync + 'static {
    /// The address to connect to.
    async fn find(&self, host: &str, port: u16) -> Result<SocketAddr, Refusal>;
}

/// Azure host names lead to azure-local, names in the region's zones to the region's listeners.
pub struct RegionDestinations {
    azure_local: SocketAddr,
    front_door: Option<SocketAddr>,
    names: Arc<dyn Names>,
    tunnels: Tunnels,
}

impl RegionDestinations {
    /// The azure-local listener, the region's names, and the listeners behind their addresses.
    pub fn new(azure_local: SocketAddr, names: Arc<dyn Names>, tunnels: Tunnels) -> Self {
        Self { azure_local, front_door: None, names, tunnels }
    }

    /// The same with the listener of Front Door.
    pub fn with_front_door(self, front_door: Option<SocketAddr>) -> Self {
        Self { front_door, ..self }
    }

    /// The listener behind the first address that has one. An address that is not mapped is used as it is only on loopback.
    fn listener(&self, addresses: &[IpAddr], port: u16) -> Option<SocketAddr> {
        if addresses.contains(&IpAddr::V4(FRONT_DOOR_ADDRESS)) {
            return self.front_door.filter(|_| port == HTTPS);
        }
        let mapped = addresses.iter().find_map(|address| self.tunnels.find(*address, port));
        mapped.or_else(|| {
            let local = addresses.iter().find(|address| address.is_loopback() && port == HTTPS)?;
            Some(SocketAddr::new(*local, port))
        })
    }
}

#[async_trait]
impl Destinations for RegionDestinations {
    async fn find(&self, host: &str, port: u16) -> Result<SocketAddr, Refusal> {
        if host.parse::<IpAddr>().is_ok() {
            return Err(Refusal::Host);
        }
        if is_azure_host(host) {
            return if port == HTTPS { Ok(self.azure_local) } else { Err(Refusal::Port) };
        }
        let addresses = self.names.addresses(host).await.map_err(Refusal::Names)?.ok_or(Refusal::Host)?;
        self.listener(&addresses, port).ok_or(Refusal::Port)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// One zone with two names; `broken` fails.
    struct Zone;

    #[async_trait]
    impl Names for Zone {
        async fn addresses(&self, host: &str) -> io::Result<Option<Vec<IpAddr>>> {
            match host {
                "api.c1.example.com" => Ok(Some(vec!["20.0.0.1".parse().unwrap()])),
                "oic.example.com" => Ok(Some(vec![FRONT_DOOR_ADDRESS.into()])),
                "local.example.com" => Ok(Some(vec!["127.0.0.7".parse().unwrap()])),
                "broken" => Err(io::ErrorKind::TimedOut.into()),
                _ => Ok(None),
            }
        }
    }

    async fn find(tunnels: &[&str], host: &str, port: u16) -> Result<String, Refusal> {
        let tunnels =
            Tunnels::parse(&tunnels.iter().map(|&text| text.to_owned()).collect::<Vec<_>>()).unwrap();
        let azure_local = "127.0.0.1:8440".parse().unwrap();
        let region = RegionDestinations::new(azure_local, Arc::new(Zone), tunnels);
        let region = region.with_front_door(Some("127.0.0.1:8446".parse().unwrap()));
        region.find(host, port).await.map(|found| found.to_string())
    }

    #[tokio::test]
    async fn azure_hosts_lead_to_azure_local_on_https_only() {
        assert_eq!(find(&[], "management.azure.com", 443).await.unwrap(), "127.0.0.1:8440");
        assert!(matches!(find(&[], "management.azure.com", 80).await, Err(Refusal::Port)));
    }

    #[tokio::test]
    async fn names_of_the_region_lead_to_its_listeners() {
        let tunnels = ["443=127.0.0.1:6443", "22=127.0.0.1:2222"];
        assert_eq!(find(&tunnels, "api.c1.example.com", 443).await.unwrap(), "127.0.0.1:6443");
        assert_eq!(find(&tunnels, "api.c1.example.com", 22).await.unwrap(), "127.0.0.1:2222");
        assert!(matches!(find(&tunnels, "api.c1.example.com", 25).await, Err(Refusal::Port)));
        assert_eq!(find(&[], "local.example.com", 443).await.unwrap(), "127.0.0.7:443");
        assert!(matches!(find(&[], "local.example.com", 22).await, Err(Refusal::Port)));
    }

    #[tokio::test]
    async fn names_of_front_door_endpoints_lead_to_its_listener_on_https_only() {
        let tunnels = ["443=127.0.0.1:6443", "80=127.0.0.1:80"];
        assert_eq!(find(&tunnels, "oic.example.com", 443).await.unwrap(), "127.0.0.1:8446");
        assert!(matches!(find(&tunnels, "oic.example.com", 80).await, Err(Refusal::Port)));
    }

    #[tokio::test]
    async fn a_public_address_of_a_zone_is_never_dialled_itself() {
        assert!(matches!(find(&[], "api.c1.example.com", 443).await, Err(Refusal::Port)));
    }

    #[tokio::test]
    async fn everything_else_is_refused() {
        for host in ["example.org", "127.0.0.1", "::1", "20.0.0.1", "localhost", ""] {
            assert!(matches!(find(&["443=127.0.0.1:6443"], host, 443).await, Err(Refusal::Host)), "{host}");
        }
        assert!(matches!(find(&[], "broken", 443).await, Err(Refusal::Names(_))));
    }
}
