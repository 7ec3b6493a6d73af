//! Front Door's metrics.

use aro_runtime::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// From the cache.
    Hit,
    /// From the origin.
    Miss,
    /// From the cache although too old, because the origin failed.
    Stale,
    /// The origin has no such document.
    Absent,
    /// The rule does not let it pass.
    Blocked,
    /// The origin failed, and the cache has nothing.
    Failed,
}

impl Outcome {
    fn label(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Stale => "stale",
            Self::Absent => "absent",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

/// The metrics of one Front Door.
#[derive(Debug, Clone, Default)]
pub(crate) struct FrontdoorMetrics {
    requests: Family<OutcomeLabel, Counter>,
    pub(crate) cache_bytes: Gauge,
    pub(crate) origin_requests: Counter,
}

impl FrontdoorMetrics {
    /// Registers them.
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let own = Self::default();
        metrics.register(|registry| {
            registry.register("frontdoor_requests", "Requests by outcome", own.requests.clone());
            registry.register(
                "frontdoor_cache_bytes",
                "Bytes of documents in the cache",
                own.cache_bytes.clone(),
            );
            registry.register(
                "frontdoor_origin_requests",
                "Requests to the origin",
                own.origin_requests.clone(),
            );
        });
        own
    }

    pub(crate) fn count(&self, outcome: Outcome) {
        self.requests.get_or_create(&OutcomeLabel { outcome: outcome.label() }).inc();
    }
}
