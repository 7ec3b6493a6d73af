//! What the agent needs from outside.

use std::sync::Arc;

use aro_base::SharedClock;
use aro_net::Resolve;
use aro_store::SharedStore;

/// Everything handed to the agent when it is built.
pub struct MaestroAgentPorts {
    /// The cluster that bundles are applied to.
    pub client: kube::Client,
    /// Where it remembers what it knows; a container of its own.
    pub store: SharedStore,
    /// Finds the broker.
    pub resolve: Arc<dyn Resolve>,
    pub clock: SharedClock,
    pub metrics: aro_runtime::Metrics,
    pub readiness: aro_runtime::Readiness,
}
