//! The roles as images: what `aro/<role>` means to the kubelets of this process.
//!
//! A role in a container is the same role as one alone. Its ports are bound on loopback wherever there is room; the
//! kubelet knows where. Its configuration is the process's own, and on top of it the container's environment
//! (`ARO_FRONTEND__…`) and a file mounted at `/etc/aro/config.toml`; paths in the environment are the container's. What it
//! may do in its cluster is what its service account may.

mod broker;
mod frontend;
mod maestro;
mod mce;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use aro_base::SharedClock;
use aro_broker::Broker;
use aro_frontend::Frontend;
use aro_kube_apiserver::{ClusterService, Clusters, ContainerSpec, Image, Images, Started, User};
use aro_maestro::MaestroServer;
use aro_maestro_agent::MaestroAgent;
use aro_mce::Mce;
use aro_runtime::config::Sources;
use aro_runtime::{Environment, Fault, Listener, Metrics, Readiness, Role, Scope, TaskKind};
use aro_store::SharedStore;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use tokio::sync::watch;

use crate::AppConfig;
use crate::names::ServiceNames;
use crate::roles::launch_in;

/// Where images of this program come from.
pub const REPOSITORY: &str = "aro/";
/// The port on which the front end listens inside its pod.
pub const FRONTEND_PORT: u16 = 8443;
/// The port of the broker.
pub const BROKER_PORT: u16 = 8883;
/// The port of Maestro's REST API.
pub const MAESTRO_PORT: u16 = 8000;
/// The port of Maestro's gRPC door.
pub const MAESTRO_GRPC_PORT: u16 = 8090;
/// A container's own configuration, if it has one.
const CONFIG_FILE: &str = "/etc/aro/config.toml";

/// The roles of this program, ready to be started in containers.
#[derive(Clone)]
pub struct RoleImages {
    pub sources: Sources,
    pub store: SharedStore,
    pub clock: SharedClock,
    pub metrics: Metrics,
    /// The clusters of this process, once they are there.
    pub clusters: watch::Receiver<Option<Clusters>>,
}

impl Images for RoleImages {
    fn find(&self, name: &str) -> Option<Arc<dyn Image>> {
        let role = name.strip_prefix(REPOSITORY)?;
        // A tag or digest says which build; there is one only.
        let role = role.split([':', '@']).next().unwrap_or(role);
        match role {
            Frontend::NAME => Some(self.image(frontend::start)),
            Broker::NAME => Some(self.image(broker::start)),
            MaestroServer::NAME => Some(self.image(maestro::start_server)),
            MaestroAgent::NAME => Some(self.image(maestro::start_agent)),
            Mce::NAME => Some(self.image(mce::start)),
            _ => None,
        }
    }
}

/// How a role starts in a container.
type Starting = fn(Container) -> BoxFuture<'static, Result<Started, Fault>>;

struct RoleImage {
    world: RoleImages,
    start: Starting,
}

impl Image for RoleImage {
    fn start(&self, spec: ContainerSpec, scope: Scope) -> BoxFuture<'static, Result<Started, Fault>> {
        let (world, start) = (self.world.clone(), self.start);
        async move {
            let config = world.config(&spec)?;
            let metrics = world.metrics_of(&spec);
            keep(metrics.clone(), &scope);
            start(Container { world, spec, config, metrics, readiness: Readiness::new(), scope }).await
        }
        .boxed()
    }
}

/// What a role in a container has at hand.
pub struct Container {
    pub world: RoleImages,
    pub spec: ContainerSpec,
    pub config: AppConfig,
    pub metrics: Metrics,
    pub readiness: Readiness,
    pub scope: Scope,
}

impl Container {
    /// Binds a port for each of the container's, in order.
    pub async fn bind<const N: usize>(&self, ports: [u16; N]) -> Result<([Listener; N], Started), Fault> {
        let mut listeners = Vec::with_capacity(N);
        let mut addresses = BTreeMap::new();
        for port in ports {
            let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &self.spec.name).await;
            let listener = listener.map_err(|error| Fault::caused("bind a port", error))?;
            addresses.insert(port, listener.local_addr());
            listeners.push(listener);
        }
        let started = Started { ports: addresses, readiness: self.readiness.clone() };
        let listeners = <[Listener; N]>::try_from(listeners).map_err(|_| Fault::new("bind every port"))?;
        Ok((listeners, started))
    }

    /// Runs a role here.
    pub fn launch<R: Role>(
        &self,
        config: aro_runtime::Checked<R::Config>,
        ports: R::Ports,
    ) -> Result<(), Fault> {
        launch_in::<R>(&self.scope, config, ports)
    }

    /// A client of the container's own cluster that may do what its service account may.
    pub fn client(&self) -> Result<Client, Fault> {
        let clusters = self.world.clusters.borrow().clone();
        let cluster = clusters.and_then(|clusters| clusters.get(&self.spec.cluster));
        let cluster = cluster.ok_or_else(|| Fault::new("the pod's cluster is not in this process"))?;
        let (namespace, account) = (&self.spec.pod.namespace, &self.spec.service_account);
        let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        let user = User::authenticated(format!("system:serviceaccount:{namespace}:{account}"), groups);
        Ok(aro_kube::of_service(ClusterService::in_process(cluster, user)))
    }

    /// Finds services of the region by their names.
    pub fn names(&self) -> Arc<ServiceNames> {
        Arc::new(ServiceNames { clusters: self.world.clusters.clone() })
    }
}

/// Metrics are shown while somebody holds them: as long as the container runs.
fn keep(metrics: Metrics, scope: &Scope) {
    let inside = scope.clone();
    scope.spawn(TaskKind::Helper, "metrics", async move {
        inside.cancelled().await;
        drop(metrics);
        Ok::<_, Fault>(())
    });
}

impl RoleImages {
    fn image(&self, start: Starting) -> Arc<dyn Image> {
        Arc::new(RoleImage { world: self.clone(), start })
    }

    /// The configuration of a role in a container.
    fn config(&self, container: &ContainerSpec) -> Result<AppConfig, Fault> {
        let mut sources = self.sources.clone();
        if let Some(file) = container.locate(Path::new(CONFIG_FILE)).filter(|file| file.is_file()) {
            sources.file = Some(file);
        }
        let own: Vec<(String, String)> =
            container.env.iter().map(|(name, value)| (name.clone(), outside(container, value))).collect();
        let own = own.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let environment: Environment = sources.environment.iter().chain(own).collect();
        sources.environment = environment;
        AppConfig::load(&sources).map_err(|error| Fault::caused("read the container's configuration", error))
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

/// A path of the container is one of ours under another name; everything else means the same outside.
fn outside(container: &ContainerSpec, value: &str) -> String {
    let path = Path::new(value);
    let located = path.is_absolute().then(|| container.locate(path)).flatten();
    located.map_or_else(|| value.to_owned(), |path| path.display().to_string())
}
