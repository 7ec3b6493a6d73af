//! What is counted about passes.

use std::time::Duration;

use aro_runtime::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Passes {
    controller: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Controller {
    controller: &'static str,
}

/// Upper bounds of the duration buckets, in seconds.
const BUCKETS: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// Passes by controller: how many, how they ended, how long they took. One for all controllers of a process.
#[derive(Debug, Clone)]
pub struct ReconcileMetrics {
    passes: Family<Passes, Counter>,
    durations: Family<Controller, Histogram>,
}

impl Default for ReconcileMetrics {
    /// Counts, and tells nobody.
    fn default() -> Self {
        Self {
            passes: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
        }
    }
}

impl ReconcileMetrics {
    /// Counts into a registry. Register once per process.
    pub fn new(metrics: &Metrics) -> Self {
        let counts = Self::default();
        metrics.register(|registry| {
            registry.register(
                "aro_reconcile_passes",
                "Passes by controller and result",
                counts.passes.clone(),
            );
            let help = "Duration of passes, in seconds";
            registry.register("aro_reconcile_duration_seconds", help, counts.durations.clone());
        });
        counts
    }

    pub(crate) fn passed(&self, controller: &'static str, took: Duration, well: bool) {
        let result = if well { "ok" } else { "error" };
        self.passes.get_or_create(&Passes { controller, result }).inc();
        self.durations.get_or_create(&Controller { controller }).observe(took.as_secs_f64());
    }
}
