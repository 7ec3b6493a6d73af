//! Counting requests: how many, how long, how many at once.

use std::hash::Hash;

use aro_runtime::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

/// The buckets of request durations, in seconds.
pub const STANDARD_BUCKETS: [f64; 12] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0];

type Durations<L> = Family<L, Histogram, fn() -> Histogram>;

/// The request metrics of one listener. `L` are the labels; keep them few and bounded.
///
/// Exposes `<prefix>_http_requests_total`, `<prefix>_http_requests_duration_seconds` and
/// `<prefix>_http_requests_in_flight`.
#[derive(Debug, Clone)]
pub struct RequestMetrics<L> {
    requests: Family<L, Counter>,
    durations: Durations<L>,
    in_flight: Gauge,
}

/// A request being served; dropping it without an end (the client left) still takes it out of the gauge.
#[derive(Debug)]
pub struct InFlight<L> {
    metrics: RequestMetrics<L>,
    since: Instant,
}

impl<L> RequestMetrics<L>
where
    L: EncodeLabelSet + Clone + Eq + Hash + Send + Sync + std::fmt::Debug + 'static,
{
    /// Registers the metrics under a prefix, for example `frontend`.
    pub fn register(metrics: &Metrics, prefix: &str) -> Self {
        let this = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(STANDARD_BUCKETS)),
            in_flight: Gauge::default(),
        };
        metrics.register(|registry| {
            let registry = registry.sub_registry_with_prefix(prefix);
            registry.register("http_requests", "Requests answered", this.requests.clone());
            registry.register(
                "http_requests_duration_seconds",
                "Time from the head of a request to the head of its answer",
                this.durations.clone(),
            );
            registry.register("http_requests_in_flight", "Requests being served", this.in_flight.clone());
        });
        this
    }

    /// A request begins.
    pub fn begin(&self) -> InFlight<L> {
        self.in_flight.inc();
        InFlight { metrics: self.clone(), since: Instant::now() }
    }
}

impl<L> InFlight<L>
where
    L: EncodeLabelSet + Clone + Eq + Hash,
{
    /// The request was answered. The labels are known only now (status, route).
    pub fn end(self, labels: &L) {
        self.metrics.requests.get_or_create(labels).inc();
        self.metrics.durations.get_or_create(labels).observe(self.since.elapsed().as_secs_f64());
    }
}

impl<L> Drop for InFlight<L> {
    fn drop(&mut self) {
        self.metrics.in_flight.dec();
    }
}
