//! The roles as images: what `aro/<role>` means to the kubelets of this process.
//!
//! A role in a container is the same role as one alone. Its ports are bound on loopback wherever there is room; the
//! kubelet knows where. Its configuration is the process's own, and on top of it the container's environment
//! (`ARO_FRONTEND__…`) and a file mounted at `/etc/aro/config.toml`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use aro_base::SharedClock;
use aro_frontend::{AcceptAll, BuiltInCatalogue, Frontend, FrontendPorts};
use aro_kube::{ContainerSpec, Image, Images, Started};
use aro_runtime::config::Sources;
use aro_runtime::{Environment, Fault, Listener, Metrics, Readiness, Role as _, Scope, TaskKind};
use aro_store::SharedStore;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::AppConfig;
use crate::roles::launch_in;

/// Where images of this program come from.
pub const REPOSITORY: &str = "aro/";
/// The port on which the front end listens inside its pod.
pub const FRONTEND_PORT: u16 = 8443;
/// A container's own configuration, if it has one.
const CONFIG_FILE: &str = "/etc/aro/config.toml";

/// The roles of this program, ready to be started in containers.
#[derive(Clone)]
pub struct RoleImages {
    pub sources: Sources,
    pub store: SharedStore,
    pub clock: SharedClock,
    pub metrics: Metrics,
}

impl Images for RoleImages {
    fn find(&self, name: &str) -> Option<Arc<dyn Image>> {
        let role = name.strip_prefix(REPOSITORY)?;
        // A tag or digest says which build; there is one only.
        let role = role.split([':', '@']).next().unwrap_or(role);
        match role {
            Frontend::NAME => Some(Arc::new(FrontendImage(self.clone()))),
            _ => None,
        }
    }
}

struct FrontendImage(RoleImages);

impl Image for FrontendImage {
    fn start(&self, container: ContainerSpec, scope: Scope) -> BoxFuture<'static, Result<Started, Fault>> {
        let world = self.0.clone();
        async move {
            let config = world.config(&container)?;
            let (listener, addr) = bind(Frontend::NAME).await?;
            let readiness = Readiness::new();
            let metrics = world.metrics_of(&container);
            keep(metrics.clone(), &scope);
            let ports = FrontendPorts {
                listener,
                store: world.store.clone(),
                clock: world.clock.clone(),
                catalogue: Arc::new(BuiltInCatalogue),
                preflight: Arc::new(AcceptAll),
                metrics,
                readiness: readiness.clone(),
            };
            launch_in::<Frontend>(&scope, config.frontend, ports)?;
            Ok(Started { ports: [(FRONTEND_PORT, addr)].into(), readiness })
        }
        .boxed()
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

async fn bind(role: &'static str) -> Result<(Listener, SocketAddr), Fault> {
    let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), role).await;
    let listener = listener.map_err(|error| Fault::caused("bind a port", error))?;
    let addr = listener.local_addr();
    Ok((listener, addr))
}

impl RoleImages {
    /// The configuration of a role in a container.
    fn config(&self, container: &ContainerSpec) -> Result<AppConfig, Fault> {
        let mut sources = self.sources.clone();
        if let Some(file) = container.locate(Path::new(CONFIG_FILE)).filter(|file| file.is_file()) {
            sources.file = Some(file);
        }
        let own = container.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let environment: Environment = sources.environment.iter().chain(own).collect();
        sources.environment = environment;
        AppConfig::load(&sources).map_err(|error| Fault::caused("read the container's configuration", error))
    }

    fn metrics_of(&self, container: &ContainerSpec) -> Metrics {
        self.metrics.part(&[("namespace", &container.pod.namespace), ("pod", &container.pod.name)])
    }
}
