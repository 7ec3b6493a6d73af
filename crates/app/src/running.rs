//! A stack that runs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aro_kube_apiserver::Clusters;
use aro_region_layout::AppliedLayout;
use aro_role::CloudAccess;
use aro_runtime::{Failure, Metrics, Readiness, Scope};
use aro_store::SharedStore;
use futures::future::select_all;
use tokio::sync::watch;

use crate::region::{SharedCloud, SharedLayout};
use crate::store::OpenStore;
use crate::{DataDir, Endpoint, StopError};

/// A stack that runs. Call [`RunningApp::stop`]; one that is merely dropped leaves its tasks to the runtime.
#[derive(Debug)]
pub struct RunningApp {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) root: Scope,
    pub(crate) roles: Vec<Scope>,
    pub(crate) store: OpenStore,
    pub(crate) metrics: Metrics,
    pub(crate) readiness: Readiness,
    pub(crate) kube: watch::Receiver<Option<Clusters>>,
    pub(crate) layout: SharedLayout,
    pub(crate) cloud: SharedCloud,
    pub(crate) grace: Duration,
    /// Declared last: an ephemeral directory goes after everything that used it.
    pub(crate) data: DataDir,
}

impl RunningApp {
    /// Where things listen.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// The address of one of them.
    pub fn addr(&self, name: &str) -> Option<SocketAddr> {
        self.endpoints.iter().find(|endpoint| endpoint.name == name).map(|endpoint| endpoint.addr)
    }

    /// The stack's store, as its roles see it.
    pub fn store(&self) -> SharedStore {
        self.store.shared()
    }

    /// The stack's metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The stack's readiness.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// The clusters of embedded Kubernetes, when it runs here.
    pub fn clusters(&self) -> Option<Clusters> {
        self.kube.borrow().clone()
    }

    /// The region's resources in its cloud, once they are laid out.
    pub fn cloud_layout(&self) -> Option<Arc<AppliedLayout>> {
        self.layout.borrow().clone()
    }

    /// The region's cloud, once it has accounts.
    pub fn cloud(&self) -> Option<CloudAccess> {
        self.cloud.borrow().clone()
    }

    /// Where its data is.
    pub fn data_dir(&self) -> &std::path::Path {
        self.data.path()
    }

    /// Returns when a role or the stack fails; never, if all goes well.
    pub async fn failed(&self) -> Arc<Failure> {
        let scopes = self.roles.iter().chain([&self.root]);
        select_all(scopes.map(|scope| Box::pin(scope.failed()))).await.0
    }

    /// Stops everything in order, the store last, within the configured grace period.
    pub async fn stop(self) -> Result<(), StopError> {
        let closed = self.root.close(self.grace).await;
        self.store.close().await;
        Ok(closed?)
    }
}
