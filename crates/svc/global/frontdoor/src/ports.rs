//! Front Door's dependencies.

use std::sync::Arc;

use aro_base::SharedClock;
use aro_net::Resolve;

/// Front Door's dependencies, given when it is built.
pub struct FrontdoorPorts {
    pub listener: aro_runtime::Listener,
    /// How the origin's name is resolved.
    pub resolve: Arc<dyn Resolve>,
    pub clock: SharedClock,
    pub metrics: aro_runtime::Metrics,
    pub readiness: aro_runtime::Readiness,
}
