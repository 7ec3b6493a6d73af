//! What the broker needs from outside.

use aro_base::SharedClock;

/// Everything handed to the broker when it is built.
pub struct BrokerPorts {
    pub listener: aro_runtime::Listener,
    pub clock: SharedClock,
    pub metrics: aro_runtime::Metrics,
    pub readiness: aro_runtime::Readiness,
}
