//! Names of services, as roles in pods use them.
//!
//! `<service>.<namespace>.svc` is a Service of the region's service cluster, wherever its pods listen at the moment; every
//! other name is the operating system's to find.

use std::io;
use std::net::SocketAddr;

use aro_kube_apiserver::Clusters;
use aro_mqtt::{Resolve, SystemResolve};
use tokio::sync::watch;

use crate::region::{Door, SERVICE_CLUSTER, client};

/// Finds services of the region.
pub struct ServiceNames {
    pub clusters: watch::Receiver<Option<Clusters>>,
}

/// The service and the namespace in a name, if it is one of a service.
fn service(host: &str) -> Option<(&str, &str)> {
    let host = host.strip_suffix(".cluster.local").unwrap_or(host);
    let (service, namespace) = host.strip_suffix(".svc")?.split_once('.')?;
    (!service.is_empty() && !namespace.is_empty() && !namespace.contains('.')).then_some((service, namespace))
}

#[async_trait::async_trait]
impl Resolve for ServiceNames {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<SocketAddr> {
        let Some((service, namespace)) = service(host) else {
            return SystemResolve.resolve(host, port).await;
        };
        let clusters = self.clusters.borrow().clone();
        let cluster = clusters.and_then(|clusters| clusters.get(SERVICE_CLUSTER));
        let cluster =
            cluster.ok_or_else(|| io::Error::new(io::ErrorKind::NotConnected, "no service cluster"))?;
        let door = Door::named(&cluster, &client(&cluster), namespace, service);
        door.address(port).await.map_err(|why| io::Error::new(io::ErrorKind::NotFound, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_services_are_services() {
        assert_eq!(service("maestro-broker.maestro.svc"), Some(("maestro-broker", "maestro")));
        assert_eq!(service("maestro-broker.maestro.svc.cluster.local"), Some(("maestro-broker", "maestro")));
        for other in ["localhost", "a.svc", "a.b.c.svc", ".b.svc", "a..svc", "svc", "broker.example.com"] {
            assert_eq!(service(other), None, "{other}");
        }
    }
}
