//! Request metrics. Labels come from closed sets: a path is counted by its template.

use aro_runtime::Metrics;
use http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    method: &'static str,
    path: &'static str,
    code: u16,
}

#[derive(Debug, Clone)]
pub(super) struct ApiMetrics {
    /// A gauge by type only: the text format would add `_total` to the name of a counter, and alerts expect the plain name.
    requests: Family<Labels, Gauge>,
    durations: Family<Labels, Histogram, fn() -> Histogram>,
}

/// A request that is being served.
pub(super) struct Counted {
    metrics: ApiMetrics,
    method: &'static str,
    path: &'static str,
    since: Instant,
}

impl ApiMetrics {
    pub(super) fn register(metrics: &Metrics) -> Self {
        let this = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(aro_web::STANDARD_BUCKETS)),
        };
        metrics.register(|registry| {
            registry.register("api_inbound_request_count", "Requests answered", this.requests.clone());
            registry.register(
                "api_inbound_request_duration",
                "Seconds from the head of a request to the head of its answer",
                this.durations.clone(),
            );
        });
        this
    }

    pub(super) fn begin(&self, method: &Method, path: &'static str) -> Counted {
        let method = match *method {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            _ => "other",
        };
        Counted { metrics: self.clone(), method, path, since: Instant::now() }
    }
}

impl Counted {
    /// Counts the answer. Returns the seconds it took.
    pub(super) fn end(self, status: StatusCode) -> f64 {
        let seconds = self.since.elapsed().as_secs_f64();
        let labels = Labels { method: self.method, path: self.path, code: status.as_u16() };
        self.metrics.requests.get_or_create(&labels).inc();
        self.metrics.durations.get_or_create(&labels).observe(seconds);
        seconds
    }
}
