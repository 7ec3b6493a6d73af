//! What the backend needs from outside.

use aro_base::SharedClock;
use aro_peers::ClustersService;
use aro_runtime::{Metrics, Readiness};
use aro_store::SharedStore;

/// Everything handed to the backend when it is built.
pub struct BackendPorts {
    /// The store with the resource provider's documents.
    pub store: SharedStore,
    /// The client of Clusters Service.
    pub clusters_service: ClustersService,
    /// The wall clock.
    pub clock: SharedClock,
    /// Where metrics are registered.
    pub metrics: Metrics,
    /// Where readiness is reported.
    pub readiness: Readiness,
}
