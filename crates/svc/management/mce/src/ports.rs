//! What the role needs from outside.

use aro_base::SharedClock;
use aro_runtime::{Metrics, Readiness};
use kube::Client;

/// Everything handed to the role when it is built.
pub struct McePorts {
    /// Where ManifestWorks are.
    pub hub: Client,
    /// Where the hub is reached; names it in records unless configuration does.
    pub hub_address: String,
    /// Where their objects go.
    pub spoke: Client,
    /// Tells the time in conditions.
    pub clock: SharedClock,
    /// Counts.
    pub metrics: Metrics,
    /// Where the role says that it is ready.
    pub readiness: Readiness,
}
