//! What is counted.

use aro_runtime::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
    class: &'static str,
}

/// Counts of one engine, or of several together.
#[derive(Debug, Clone, Default)]
pub struct ApplyMetrics {
    pub(crate) works: Gauge,
    pub(crate) applies: Counter,
    pub(crate) repairs: Counter,
    pub(crate) removals: Counter,
    pub(crate) reports: Counter,
    pub(crate) watches: Gauge,
    pub(crate) blind: Counter,
    failures: Family<Why, Counter>,
}

impl ApplyMetrics {
    /// Counts into a registry. Register once per process.
    pub fn new(metrics: &Metrics) -> Self {
        let counts = Self::default();
        metrics.register(|registry| {
            registry.register("aro_apply_works", "Works that are known", counts.works.clone());
            registry.register("aro_apply_writes", "Objects written", counts.applies.clone());
            let help = "Objects written because another client had changed or deleted them";
            registry.register("aro_apply_repairs", help, counts.repairs.clone());
            registry.register("aro_apply_removals", "Objects deleted", counts.removals.clone());
            registry.register("aro_apply_reports", "Statuses reported", counts.reports.clone());
            registry.register("aro_apply_watches", "Resources watched", counts.watches.clone());
            let help = "Looks at objects by reading them, because their resource cannot be watched";
            registry.register("aro_apply_unwatched_looks", help, counts.blind.clone());
            let help = "Manifests that could not be applied, by class of failure";
            registry.register("aro_apply_failures", help, counts.failures.clone());
        });
        counts
    }

    pub(crate) fn failed(&self, class: &'static str) {
        self.failures.get_or_create(&Why { class }).inc();
    }
}
