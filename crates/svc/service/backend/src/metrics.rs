//! Metrics of the backend beside those of its controllers.

use aro_arm::hcp::operation::{Operation, Request};
use aro_arm::operation::ProvisioningState;
use aro_base::Timestamp;
use aro_runtime::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndLabels {
    operation_type: &'static str,
    resource_type: String,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

/// Upper bounds of the durations of operations, in seconds: from an update at once to a deletion that waits for hours.
const BUCKETS: [f64; 11] = [0.1, 0.5, 1.0, 5.0, 30.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 43_200.0];

/// Operations: how many are under way, how old the oldest is, how long those took that ended.
#[derive(Debug, Clone)]
pub struct BackendMetrics {
    durations: Family<EndLabels, Histogram>,
    under_way: Family<StateLabel, Gauge>,
    oldest: Family<StateLabel, Gauge>,
    events: Counter,
    orphans: Counter,
}

impl BackendMetrics {
    /// Metrics of a registry.
    pub fn new(metrics: &Metrics) -> Self {
        let backend = Self {
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            under_way: Family::default(),
            oldest: Family::default(),
            events: Counter::default(),
            orphans: Counter::default(),
        };
        metrics.register(|registry| {
            let help = "Duration of ended operations by type, resource type and final state, in seconds";
            registry.register("backend_operation_duration_seconds", help, backend.durations.clone());
            let help = "Operations under way, by state";
            registry.register("backend_operations", help, backend.under_way.clone());
            let help = "Age of the oldest operation under way, by state, in seconds";
            registry.register("backend_operation_oldest_seconds", help, backend.oldest.clone());
            let help = "Events received from Clusters Service";
            registry.register("backend_clusters_service_events", help, backend.events.clone());
            let help = "Clusters without a resource that were deleted in Clusters Service";
            registry.register("backend_orphaned_clusters", help, backend.orphans.clone());
        });
        backend
    }

    /// An operation ended.
    pub fn operation_ended(&self, operation: &Operation) {
        let labels = EndLabels {
            operation_type: request_name(operation.request),
            resource_type: operation.external_id.resource_type(),
            state: operation.status.as_str(),
        };
        let took = operation.last_transition_time.duration_since(operation.start_time).as_secs_f64();
        self.durations.get_or_create(&labels).observe(took.max(0.0));
    }

    /// The operations in a state, and when the oldest of them started.
    pub fn operations(
        &self,
        state: ProvisioningState,
        count: u64,
        oldest: Option<Timestamp>,
        now: Timestamp,
    ) {
        let label = StateLabel { state: state.as_str() };
        self.under_way.get_or_create(&label).set(i64::try_from(count).unwrap_or(i64::MAX));
        let age = oldest.map_or(0, |oldest| now.duration_since(oldest).as_secs().max(0));
        self.oldest.get_or_create(&label).set(age);
    }

    /// Events arrived.
    pub fn events_received(&self, count: usize) {
        self.events.inc_by(count as u64);
    }

    /// A cluster without a resource was deleted.
    pub fn orphan_deleted(&self) {
        self.orphans.inc();
    }
}

/// The name of a request in metrics and in the journal.
pub const fn request_name(request: Request) -> &'static str {
    match request {
        Request::Create => "create",
        Request::Update => "update",
        Request::Delete => "delete",
        Request::RequestCredential => "request-credential",
        Request::RevokeCredentials => "revoke-credentials",
    }
}
