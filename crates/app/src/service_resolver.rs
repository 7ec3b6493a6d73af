//! Host names inside a region: `<service>.<namespace>.svc` is a Service of the service cluster; DNS answers for the rest.

use std::io;
use std::net::SocketAddr;

use aro_kube_apiserver::Clusters;
use aro_net::{Resolve, SystemResolve, service_name};
use aro_role::SERVICE_CLUSTER;
use tokio::sync::watch;

use crate::region::{ServiceEndpoints, admin_client};

/// Resolves Services to the loopback address of a ready pod.
pub(crate) struct ServiceResolver {
    pub clusters: watch::Receiver<Option<Clusters>>,
}

#[async_trait::async_trait]
impl Resolve for ServiceResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<SocketAddr> {
        let Some((service, namespace)) = service_name(host) else {
            return SystemResolve.resolve(host, port).await;
        };
        let clusters = self.clusters.borrow().clone();
        let cluster = clusters.and_then(|clusters| clusters.get(SERVICE_CLUSTER));
        let cluster =
            cluster.ok_or_else(|| io::Error::new(io::ErrorKind::NotConnected, "no service cluster"))?;
        let endpoints = ServiceEndpoints::of(&cluster, &admin_client(&cluster), namespace, service);
        endpoints.address(port).await.map_err(|error| io::Error::new(io::ErrorKind::NotFound, error))
    }
}
