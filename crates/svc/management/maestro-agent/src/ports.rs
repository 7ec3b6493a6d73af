//! The agent's dependencies.

use std::sync::Arc;

use aro_base::SharedClock;
use aro_net::Resolve;
use aro_store::SharedStore;

/// The agent's dependencies, given when it is built.
pub struct MaestroAgentPorts {
    /// The cluster that bundles are applied to.
    pub client: kube::Client,
    /// The document store of its records, in a container of its own.
    pub store: SharedStore,
    /// Resolves the broker's name.
    pub resolve: Arc<dyn Resolve>,
    pub clock: SharedClock,
    pub metrics: aro_runtime::Metrics,
    pub readiness: aro_runtime::Readiness,
}
