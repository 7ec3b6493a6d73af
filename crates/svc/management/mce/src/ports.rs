//! The role's dependencies.

use aro_base::SharedClock;
use aro_runtime::{Metrics, Readiness};
use kube::Client;

/// The role's dependencies, given when it is built.
pub struct McePorts {
    /// The cluster with the ManifestWorks.
    pub hub: Client,
    /// The hub's address; names the hub in records unless it is configured.
    pub hub_address: String,
    /// The cluster their objects are applied to.
    pub spoke: Client,
    /// The clock of conditions.
    pub clock: SharedClock,
    /// The metrics registry.
    pub metrics: Metrics,
    /// The readiness registry.
    pub readiness: Readiness,
}
