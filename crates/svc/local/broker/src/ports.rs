//! The broker's dependencies.

use aro_base::SharedClock;

/// The broker's dependencies, given when it is built.
pub struct BrokerPorts {
    pub listener: aro_runtime::Listener,
    pub clock: SharedClock,
    pub metrics: aro_runtime::Metrics,
    pub readiness: aro_runtime::Readiness,
}
