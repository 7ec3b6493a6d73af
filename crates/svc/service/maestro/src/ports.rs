//! The server's dependencies.

use std::sync::Arc;

use aro_base::SharedClock;
use aro_net::Resolve;
use aro_runtime::{Listener, Metrics, Readiness};
use aro_store::SharedStore;

/// The server's dependencies.
pub struct MaestroPorts {
    /// The listener of the REST API.
    pub rest: Listener,
    /// The listener of the gRPC API.
    pub grpc: Listener,
    /// The document store of the rows.
    pub store: SharedStore,
    /// Resolves the broker's name.
    pub resolve: Arc<dyn Resolve>,
    /// The wall clock.
    pub clock: SharedClock,
    /// The metrics registry.
    pub metrics: Metrics,
    /// The readiness registry.
    pub readiness: Readiness,
}
