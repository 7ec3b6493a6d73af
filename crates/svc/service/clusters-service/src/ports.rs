//! What the role needs from outside.

use std::sync::Arc;

use aro_base::SharedClock;
use aro_net::Resolve;
use aro_role::CloudAccess;
use aro_runtime::{Listener, Metrics, Readiness};
use aro_store::SharedStore;

/// What the role needs from outside.
pub struct ClustersServicePorts {
    /// The listener of the REST API.
    pub http: Listener,
    /// The document store of the records.
    pub store: SharedStore,
    /// Resolves Maestro's name.
    pub resolve: Arc<dyn Resolve>,
    /// The cloud. Without it no cluster is provisioned, but for noop ones.
    pub cloud: Option<CloudAccess>,
    /// The wall clock.
    pub clock: SharedClock,
    /// The metrics registry.
    pub metrics: Metrics,
    /// The readiness registry.
    pub readiness: Readiness,
}
