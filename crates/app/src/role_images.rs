//! The roles as images: what `aro/<role>` means to the kubelets of this process.
//!
//! A role in a container is the same role as one alone. Its ports are bound on free loopback ports; the kubelet knows
//! which. Its configuration is the process's own, and on top of it the container's environment (`ARO_FRONTEND__…`) and a
//! file mounted at `/etc/aro/config.toml`; paths in the environment are the container's. Its permissions in its cluster
//! are those of its service account.

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use aro_base::SharedClock;
use aro_kube_apiserver::{ClusterService, Clusters, ContainerSpec, Image, Images, Started, User};
use aro_role::{ClusterAccess, Need, REPOSITORY, RoleContext, RoleDescriptor};
use aro_runtime::config::{Loaded, Sources};
use aro_runtime::{Environment, Fault, Listener, Metrics, Readiness, Scope, TaskKind};
use aro_store::SharedStore;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use tokio::sync::watch;

use crate::Registry;
use crate::config::schema;
use crate::service_resolver::ServiceResolver;

/// A container's own configuration, if it has one.
const CONFIG_FILE: &str = "/etc/aro/config.toml";

/// The roles of this program, ready to be started in containers.
#[derive(Clone)]
pub(crate) struct RoleImages {
    pub registry: Registry,
    pub sources: Sources,
    pub store: SharedStore,
    pub clock: SharedClock,
    pub metrics: Metrics,
    /// The clusters of this process, once they run.
    pub clusters: watch::Receiver<Option<Clusters>>,
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
                resolve: Arc::new(ServiceResolver { clusters: images.clusters.clone() }),
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
        let own: Vec<(String, String)> =
            container.env.iter().map(|(name, value)| (name.clone(), host_path(container, value))).collect();
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

    fn metrics_of(&self, container: &ContainerSpec) -> Metrics {
        let labels = [
            ("cluster", container.cluster.as_str()),
            ("namespace", &container.pod.namespace),
            ("pod", &container.pod.name),
        ];
        self.metrics.part(&labels)
    }
}

/// The value with a path in the container replaced by the same path on the host; other values unchanged.
fn host_path(container: &ContainerSpec, value: &str) -> String {
    let path = Path::new(value);
    let located = path.is_absolute().then(|| container.locate(path)).flatten();
    located.map_or_else(|| value.to_owned(), |path| path.display().to_string())
}
