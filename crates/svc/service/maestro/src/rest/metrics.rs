//! Request metrics. Labels come from closed sets: a path is counted by its template.

use aro_runtime::Metrics;
use http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

use super::{OWN, ROOT};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    method: &'static str,
    path: &'static str,
    code: u16,
}

#[derive(Debug, Clone)]
pub(super) struct RestMetrics {
    /// A gauge by type only: the text format would add `_total` to the name of a counter, which dashboards do not
    /// expect here.
    requests: Family<Labels, Gauge>,
    durations: Family<Labels, Histogram, fn() -> Histogram>,
}

pub(super) struct Counted {
    metrics: RestMetrics,
    method: &'static str,
    path: &'static str,
    since: Instant,
}

impl RestMetrics {
    pub(super) fn register(metrics: &Metrics) -> Self {
        let this = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(aro_web::STANDARD_BUCKETS)),
        };
        metrics.register(|registry| {
            registry.register("rest_api_inbound_request_count", "Requests answered", this.requests.clone());
            registry.register(
                "rest_api_inbound_request_duration",
                "Seconds from the head of a request to the head of its answer",
                this.durations.clone(),
            );
        });
        this
    }

    pub(super) fn begin(&self, method: &Method, path: &str) -> Counted {
        let method = match *method {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            _ => "other",
        };
        Counted { metrics: self.clone(), method, path: template(path), since: Instant::now() }
    }
}

impl Counted {
    pub(super) fn end(self, status: StatusCode) {
        let labels = Labels { method: self.method, path: self.path, code: status.as_u16() };
        self.metrics.requests.get_or_create(&labels).inc();
        self.metrics.durations.get_or_create(&labels).observe(self.since.elapsed().as_secs_f64());
    }
}

/// The template of a path, with `-` for ids.
fn template(path: &str) -> &'static str {
    let parts = |rest: &str| rest.split('/').skip(1).map(str::to_owned).collect::<Vec<_>>();
    if let Some(own) = path.strip_prefix(OWN) {
        return match parts(own).iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["deliveries"] => "/api/aro/maestro/v1/deliveries",
            ["deliveries", _] => "/api/aro/maestro/v1/deliveries/-",
            ["consumers", _, "abandon"] => "/api/aro/maestro/v1/consumers/-/abandon",
            ["consumers", _, "trust"] => "/api/aro/maestro/v1/consumers/-/trust",
            _ => "other",
        };
    }
    let Some(known) = path.strip_prefix(ROOT) else { return "other" };
    match parts(known).iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => "/api/maestro",
        ["v1"] => "/api/maestro/v1",
        ["v1", "openapi"] => "/api/maestro/v1/openapi",
        ["v1", "errors"] => "/api/maestro/v1/errors",
        ["v1", "errors", _] => "/api/maestro/v1/errors/-",
        ["v1", "resource-bundles"] => "/api/maestro/v1/resource-bundles",
        ["v1", "resource-bundles", _] => "/api/maestro/v1/resource-bundles/-",
        ["v1", "consumers"] => "/api/maestro/v1/consumers",
        ["v1", "consumers", _] => "/api/maestro/v1/consumers/-",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_as_its_template() {
        for (path, expected) in [
            ("/api/maestro", "/api/maestro"),
            ("/api/maestro/v1/consumers/abc", "/api/maestro/v1/consumers/-"),
            ("/api/maestro/v1/resource-bundles/abc/x", "other"),
            ("/api/aro/maestro/v1/consumers/abc/abandon", "/api/aro/maestro/v1/consumers/-/abandon"),
            ("/whatever", "other"),
        ] {
            assert_eq!(template(path), expected, "{path}");
        }
    }
}
