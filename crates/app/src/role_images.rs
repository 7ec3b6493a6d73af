//! The roles as images: what `aro/<role>` means to the kubelets of this process.
//!
//! A role in a container is the same role as one alone. Its ports are bound on free loopback ports; the kubelet knows
//! which. Its configuration is the process's own, and on top of it the container's environment (`ARO_FRONTEND__…`) and a
//! file mounted at `/etc/aro/config.toml`; paths in the environment are the container's. Its permissions in its cluster
//! are those of its service account.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aro_base::SharedClock;
use aro_kube_apiserver::{ClusterService, Clusters, ContainerSpec, Image, Images, Started, User, Workload};
use aro_role::{CloudAccess, ClusterAccess, Need, REPOSITORY, RegionCluster, RoleContext, RoleDescriptor};
use aro_runtime::config::{Loaded, Sources};
use aro_runtime::{Environment, Fault, Listener, Metrics, Readiness, Scope, TaskKind};
use aro_store::SharedStore;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use tokio::sync::watch;

use crate::Registry;
use crate::config::schema;
use crate::region::SharedCloud;
use crate::service_resolver::ServiceResolver;

/// A container's own configuration, if it has one.
const CONFIG_FILE: &str = "/etc/aro/config.toml";

/// Variables with these first letters are configuration.
const PREFIX: &str = "ARO_";

/// The roles of this program, ready to be started in containers.
#[derive(Clone)]
pub(crate) struct RoleImages {
    pub registry: Registry,
    pub sources: Sources,
    pub store: SharedStore,
    pub data_dir: PathBuf,
    pub clock: SharedClock,
    pub metrics: Metrics,
    /// The names of the region's clusters, which its manifests are made for.
    pub region: Vec<String>,
    /// The clusters of this process, once they run.
    pub clusters: watch::Receiver<Option<Clusters>>,
    /// The region's cloud, once it has accounts.
    pub cloud: SharedCloud,
}

impl Images for RoleImages {
    fn find(&self, name: &str) -> Option<Arc<dyn Image>> {
        let role = name.strip_prefix(REPOSITORY)?;
        // A tag or digest selects a build; this process has one only.
        let role = self.registry.find(role.split([':', '@']).next().unwrap_or(role))?;
        Some(Arc::new(RoleImage { images: self.clone(), role }))
    }
}

struct RoleImage {
    images: RoleImages,
    role: &'static RoleDescriptor,
}

impl Image for RoleImage {
    /// A role acts with the process's store and configuration. Only the workloads that the region's own manifests name run it.
    fn allow(&self, workload: &Workload<'_>) -> Result<(), String> {
        if is_deployed_as(self.role, &self.images.region, workload) {
            return Ok(());
        }
        Err("it is reserved for the region's own workloads".to_owned())
    }

    fn start(&self, spec: ContainerSpec, scope: Scope) -> BoxFuture<'static, Result<Started, Fault>> {
        let (images, role) = (self.images.clone(), self.role);
        async move {
            let config = images.config(&spec)?;
            let metrics = images.metrics_of(&spec);
            keep(metrics.clone(), &scope);
            let (listeners, ports) = bind(role, &spec).await?;
            let readiness = Readiness::new();
            let needs = |need| role.needs(need);
            let context = RoleContext {
                scope,
                config: Arc::new(config),
                listeners,
                store: needs(Need::Store).then(|| images.store.clone()),
                cluster: needs(Need::Cluster).then(|| images.cluster(&spec)).transpose()?,
                cloud: if needs(Need::Cloud) { Some(images.cloud().await?) } else { None },
                resolve: Arc::new(ServiceResolver { clusters: images.clusters.clone() }),
                data_dir: images.data_dir.clone(),
                clock: images.clock.clone(),
                metrics,
                readiness: readiness.clone(),
            };
            (role.start)(context)?;
            Ok(Started { ports, readiness })
        }
        .boxed()
    }
}

/// Whether the manifests of a region with these clusters deploy a role as this workload.
fn is_deployed_as(role: &RoleDescriptor, region: &[String], workload: &Workload<'_>) -> bool {
    if !region.iter().any(|name| name == workload.cluster) {
        return false;
    }
    let deployment = (role.deployment)(&RegionCluster { name: workload.cluster, all: region });
    deployment.is_some_and(|deployment| {
        deployment.namespace == workload.namespace && role.name == workload.service_account
    })
}

/// Binds a loopback port for each of the role's listeners.
async fn bind(
    role: &RoleDescriptor,
    container: &ContainerSpec,
) -> Result<(HashMap<&'static str, Listener>, BTreeMap<u16, SocketAddr>), Fault> {
    let (mut listeners, mut ports) = (HashMap::new(), BTreeMap::new());
    for descriptor in role.listeners {
        let bound = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &container.name).await;
        let listener = bound.map_err(|error| Fault::caused("bind a port", error))?;
        ports.insert(descriptor.port, listener.local_addr());
        listeners.insert(descriptor.name, listener);
    }
    Ok((listeners, ports))
}

/// Metrics are exported while a handle exists: as long as the container runs.
fn keep(metrics: Metrics, scope: &Scope) {
    let inside = scope.clone();
    scope.spawn(TaskKind::Helper, "metrics", async move {
        inside.cancelled().await;
        drop(metrics);
        Ok::<_, Fault>(())
    });
}

impl RoleImages {
    /// The configuration of a role in a container.
    fn config(&self, container: &ContainerSpec) -> Result<Loaded, Fault> {
        let mut sources = self.sources.clone();
        if let Some(file) = container.locate(Path::new(CONFIG_FILE)).filter(|file| file.is_file()) {
            sources.file = Some(file);
        }
        let own = container.env.iter().map(|(name, value)| {
            match host_path(container, value) {
                Some(value) => Ok((name.clone(), value)),
                // Not read as configuration.
                None if !name.starts_with(PREFIX) => Ok((name.clone(), value.clone())),
                None => Err(Fault::new(format!(
                    "{name} names a path that is in none of the container's mounts: {value}"
                ))),
            }
        });
        let own: Vec<(String, String)> = own.collect::<Result<_, Fault>>()?;
        let own = own.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let environment: Environment = sources.environment.iter().chain(own).collect();
        sources.environment = environment;
        let loaded = schema(self.registry).load(&sources);
        loaded.map_err(|error| Fault::caused("read the container's configuration", error))
    }

    /// A client of the container's own cluster with the permissions of its service account.
    fn client(&self, container: &ContainerSpec) -> Result<Client, Fault> {
        let clusters = self.clusters.borrow().clone();
        let cluster = clusters.and_then(|clusters| clusters.get(&container.cluster));
        let cluster = cluster.ok_or_else(|| Fault::new("the pod's cluster is not in this process"))?;
        let (namespace, account) = (&container.pod.namespace, &container.service_account);
        let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        let user = User::authenticated(format!("system:serviceaccount:{namespace}:{account}"), groups);
        Ok(aro_kube::of_service(ClusterService::in_process(cluster, user)))
    }

    fn cluster(&self, container: &ContainerSpec) -> Result<ClusterAccess, Fault> {
        // The cluster's name is stable; its address is not.
        Ok(ClusterAccess { client: self.client(container)?, address: container.cluster.clone() })
    }

    /// The region's cloud. It starts beside the clusters; a container that needs it waits.
    async fn cloud(&self) -> Result<CloudAccess, Fault> {
        let mut cloud = self.cloud.clone();
        let opened = cloud.wait_for(Option::is_some).await;
        let opened = opened.ok().and_then(|cloud| cloud.clone());
        opened.ok_or_else(|| Fault::new("the region has no local cloud"))
    }

    fn metrics_of(&self, container: &ContainerSpec) -> Metrics {
        let labels = [
            ("cluster", container.cluster.as_str()),
            ("namespace", &container.pod.namespace),
            ("pod", &container.pod.name),
        ];
        self.metrics.part(&labels)
    }
}

/// The value with a path in the container replaced by the same path on the host; other values unchanged. `None`: a path that
/// the container does not have. It must not become one of the host's.
fn host_path(container: &ContainerSpec, value: &str) -> Option<String> {
    let path = Path::new(value);
    if !path.is_absolute() {
        return Some(value.to_owned());
    }
    container.locate(path).map(|path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use aro_kube_node_api::PodIdentity;

    use super::*;

    fn region() -> Vec<String> {
        vec!["svc".to_owned(), "mgmt-1".to_owned()]
    }

    #[test]
    fn a_role_runs_only_as_the_workload_that_the_manifests_name() {
        let region = region();
        let mut deployed = 0;
        for role in Registry::ARO.iter() {
            for name in &region {
                let Some(deployment) = (role.deployment)(&RegionCluster { name, all: &region }) else {
                    continue;
                };
                deployed += 1;
                let own =
                    Workload { cluster: name, namespace: deployment.namespace, service_account: role.name };
                assert!(is_deployed_as(role, &region, &own), "{own:?}");
                for other in [
                    Workload { namespace: "tenant", ..own },
                    Workload { service_account: "default", ..own },
                    Workload { cluster: "tenant", ..own },
                    Workload { cluster: "", ..own },
                ] {
                    assert!(!is_deployed_as(role, &region, &other), "{} as {other:?}", role.name);
                }
            }
        }
        assert!(deployed > 1);
    }

    #[test]
    fn a_path_outside_of_the_mounts_does_not_become_one_of_the_host() {
        let mount =
            aro_kube_apiserver::Mount { path: "/etc/tls".into(), source: "/data/1".into(), read_only: true };
        let container = ContainerSpec {
            cluster: "svc".into(),
            pod: PodIdentity { namespace: "n".into(), name: "p".into(), uid: "u".into() },
            service_account: "default".into(),
            name: "c".into(),
            image: "aro/x".into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            mounts: vec![mount],
            ports: Vec::new(),
        };
        assert_eq!(host_path(&container, "/etc/tls/tls.crt").as_deref(), Some("/data/1/tls.crt"));
        assert_eq!(host_path(&container, "maestro-broker:8883").as_deref(), Some("maestro-broker:8883"));
        for path in ["/etc/passwd", "/etc/tls/../passwd", "/"] {
            assert_eq!(host_path(&container, path), None, "{path}");
        }
    }
}
