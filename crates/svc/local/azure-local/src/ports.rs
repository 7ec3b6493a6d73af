//! What the role needs from outside.

use std::path::PathBuf;
use std::sync::Arc;

use aro_base::SharedClock;
use aro_net::Resolve;
use aro_runtime::{Listener, Metrics, Readiness};
use aro_store::SharedStore;

/// The ports of the role.
pub struct AzureLocalPorts {
    pub listener: Listener,
    pub store: SharedStore,
    /// How the hosts of resource providers are resolved.
    pub resolve: Arc<dyn Resolve>,
    pub clock: SharedClock,
    pub metrics: Metrics,
    pub readiness: Readiness,
    /// Where files are written if the configuration names no other directory.
    pub dir: PathBuf,
}
