//! What a role gets when it is started.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use aro_base::SharedClock;
use aro_net::Resolve;
use aro_runtime::config::Loaded;
use aro_runtime::{BuildError, Fault, Listener, Metrics, Readiness, Role, Scope};
use aro_store::SharedStore;
use kube::Client;

use crate::cloud::CloudAccess;

/// The Kubernetes cluster that a role works on.
#[derive(Clone)]
pub struct ClusterAccess {
    /// A client with the role's own permissions.
    pub client: Client,
    /// Identifies the cluster in records; the same for as long as the cluster exists.
    pub address: String,
}

/// Everything a role may need; built by the composition.
pub struct RoleContext {
    /// The role's own scope.
    pub scope: Scope,
    /// The merged configuration.
    pub config: Arc<Loaded>,
    /// The bound listeners, by the names in the descriptor.
    pub listeners: HashMap<&'static str, Listener>,
    /// The document store, if the descriptor needs it.
    pub store: Option<SharedStore>,
    /// The cluster, if the descriptor needs it.
    pub cluster: Option<ClusterAccess>,
    /// The cloud, if the descriptor needs it.
    pub cloud: Option<CloudAccess>,
    /// How host names are resolved.
    pub resolve: Arc<dyn Resolve>,
    /// Where the process keeps its data; a role uses a directory of its own name below it.
    pub data_dir: PathBuf,
    /// The wall clock.
    pub clock: SharedClock,
    /// Where metrics are registered.
    pub metrics: Metrics,
    /// Where readiness is reported.
    pub readiness: Readiness,
}

impl RoleContext {
    /// Takes a listener by the name in the descriptor.
    pub fn listener(&mut self, name: &'static str) -> Result<Listener, BuildError> {
        self.listeners.remove(name).ok_or_else(|| Fault::new(format!("no listener `{name}` is bound")))
    }

    /// The document store.
    pub fn store(&self) -> Result<SharedStore, BuildError> {
        self.store.clone().ok_or_else(|| Fault::new("the role's descriptor does not need the store"))
    }

    /// The cluster.
    pub fn cluster(&self) -> Result<ClusterAccess, BuildError> {
        self.cluster.clone().ok_or_else(|| Fault::new("the role's descriptor does not need a cluster"))
    }

    /// The cloud.
    pub fn cloud(&self) -> Result<CloudAccess, BuildError> {
        self.cloud.clone().ok_or_else(|| Fault::new("the role's descriptor does not need the cloud"))
    }

    /// Builds a role from its section and its ports, and runs it in the context's scope.
    pub fn launch<R: Role>(self, ports: R::Ports) -> Result<(), BuildError> {
        let config = self.config.section::<R::Config>();
        let config = config.map_err(|error| Fault::caused("read the role's configuration", error))?;
        aro_runtime::launch::<R>(&self.scope, config, ports)
    }
}
