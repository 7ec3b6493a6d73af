//! Metrics of controllers.

use std::time::Duration;

use aro_runtime::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PassLabels {
    controller: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabel {
    controller: &'static str,
}

/// How a pass ended, as a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PassResult {
    /// Settled or requeued.
    Ok,
    /// Waits for another object, or for time to pass.
    Wait,
    /// Failed, and is retried.
    Error,
    /// Failed for good.
    Terminal,
    /// Planned only: the gate withheld the key.
    Preview,
}

impl PassResult {
    fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Wait => "wait",
            Self::Error => "error",
            Self::Terminal => "terminal",
            Self::Preview => "preview",
        }
    }
}

/// Upper bounds of the duration buckets, in seconds.
const BUCKETS: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// Passes by controller and result, their duration, and the depth of the queues. One for all controllers of a process:
/// controllers of the same name on several clusters add up.
#[derive(Debug, Clone)]
pub struct ReconcileMetrics {
    passes: Family<PassLabels, Counter>,
    durations: Family<ControllerLabel, Histogram>,
    depths: Family<ControllerLabel, Gauge>,
}

impl Default for ReconcileMetrics {
    /// Metrics that no registry exposes.
    fn default() -> Self {
        Self {
            passes: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            depths: Family::default(),
        }
    }
}

impl ReconcileMetrics {
    /// Metrics of a registry. Register once per process.
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
            let help = "Keys that wait for a pass, by controller";
            registry.register("aro_reconcile_queue_depth", help, counts.depths.clone());
        });
        counts
    }

    pub(crate) fn record(&self, controller: &'static str, duration: Duration, result: PassResult) {
        self.passes.get_or_create(&PassLabels { controller, result: result.label() }).inc();
        self.durations.get_or_create(&ControllerLabel { controller }).observe(duration.as_secs_f64());
    }

    pub(crate) fn depth(&self, controller: &'static str) -> Gauge {
        self.depths.get_or_create(&ControllerLabel { controller }).clone()
    }

    #[cfg(test)]
    pub(crate) fn count(&self, controller: &'static str, result: PassResult) -> u64 {
        self.passes.get_or_create(&PassLabels { controller, result: result.label() }).get()
    }
}
