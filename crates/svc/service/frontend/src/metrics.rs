//! Metrics of the frontend beside those of its requests.

use aro_runtime::Metrics;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

/// Health and background work.
#[derive(Debug, Clone, Default)]
pub struct FrontendMetrics {
    pub health: Gauge,
    pub cascades: Counter,
}

impl FrontendMetrics {
    pub fn new(metrics: &Metrics) -> Self {
        let frontend = Self::default();
        metrics.register(|registry| {
            registry.register("frontend_health", "1 while the front end can serve", frontend.health.clone());
            registry.register(
                "frontend_cascade_batches",
                "Batches written to continue large deletions",
                frontend.cascades.clone(),
            );
        });
        frontend
    }
}
