//! The proxy's dependencies.

use std::sync::Arc;

use crate::destinations::Destinations;

/// The proxy's dependencies, given when it is built.
pub struct ProxyPorts {
    pub listener: aro_runtime::Listener,
    /// Where hosts lead; [`crate::RegionDestinations`] by configuration.
    pub destinations: Arc<dyn Destinations>,
    pub metrics: aro_runtime::Metrics,
    pub readiness: aro_runtime::Readiness,
}
