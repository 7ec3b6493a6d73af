//! What the server needs from outside.

use std::sync::Arc;

use aro_base::SharedClock;
use aro_net::Resolve;
use aro_runtime::{Listener, Metrics, Readiness};
use aro_store::SharedStore;

/// What the server needs from outside.
pub struct MaestroPorts {
    /// Where REST is served.
    pub rest: Listener,
    /// Where gRPC is served.
    pub grpc: Listener,
    /// Where rows are.
    pub store: SharedStore,
    /// How the broker is found.
    pub resolve: Arc<dyn Resolve>,
    /// The wall clock.
    pub clock: SharedClock,
    /// Where counters go.
    pub metrics: Metrics,
    /// Where readiness is told.
    pub readiness: Readiness,
}
