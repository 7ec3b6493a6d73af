//! Observability of requests: metrics under upstream's names, and one log line for each 5xx.
//!
//! All labels come from closed sets: a caller cannot make metrics grow.

use std::time::Duration;

use aro_runtime::Metrics;
use http::{Method, Uri};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::cluster::Cluster;
use crate::http::options::Query;
use crate::http::target::Target;
use crate::rest;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: &'static str,
    resource: String,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabels {
    verb: &'static str,
}

/// Upper bounds of the duration buckets, in seconds.
const BUCKETS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// The metrics of all clusters of a process.
#[derive(Debug, Clone)]
pub struct Observer {
    requests: Family<RequestLabels, Counter>,
    durations: Family<VerbLabels, Histogram>,
    pub clusters: Gauge,
    pub watches: Gauge,
    /// Clusters whose workload controllers run.
    pub active: Gauge,
}

impl Observer {
    pub fn new(metrics: &Metrics) -> Self {
        let observer = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            clusters: Gauge::default(),
            watches: Gauge::default(),
            active: Gauge::default(),
        };
        metrics.register(|registry| {
            registry.register(
                "apiserver_request",
                "Requests by verb, resource and code",
                observer.requests.clone(),
            );
            let help = "Duration of requests but watches, in seconds";
            registry.register("apiserver_request_duration_seconds", help, observer.durations.clone());
            registry.register("aro_kube_clusters", "Logical clusters that answer", observer.clusters.clone());
            let help = "Logical clusters whose workload controllers run";
            registry.register("aro_kube_attended_clusters", help, observer.active.clone());
            registry.register(
                "apiserver_longrunning_requests",
                "Watches that are open",
                observer.watches.clone(),
            );
        });
        observer
    }

    /// Records one answer.
    pub fn answered(&self, cluster: &Cluster, method: &Method, uri: &Uri, code: u16, took: Duration) {
        let (verb, resource) = name(cluster, method, uri);
        if verb != "watch" {
            self.durations.get_or_create(&VerbLabels { verb }).observe(took.as_secs_f64());
        }
        if code == 500 {
            tracing::error!(cluster = cluster.name(), %method, path = uri.path(), "a request could not be answered");
        }
        self.requests.get_or_create(&RequestLabels { verb, resource, code }).inc();
    }
}

/// What a request is called: its verb, and its resource if there is one.
fn name(cluster: &Cluster, method: &Method, uri: &Uri) -> (&'static str, String) {
    let Target::Resource(path) = Target::parse(uri.path()) else { return ("get", String::new()) };
    let watching = path.watch || Query::parse(uri.query()).flag("watch");
    let verb = rest::verb(method, !path.name.is_empty(), watching);
    let known = cluster.types().find(path.group, path.version, path.resource).is_some();
    (verb, if known { path.resource.to_owned() } else { String::new() })
}

/// Counts a watch for as long as it lasts.
#[derive(Debug)]
pub struct Watching(Gauge);

impl Watching {
    pub fn new(observer: &Observer) -> Self {
        observer.watches.inc();
        Self(observer.watches.clone())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.dec();
    }
}
