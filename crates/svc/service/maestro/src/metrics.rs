//! The server's metrics. Labels are few and come from code, never from input.

use std::sync::Arc;

use aro_bundle::EventType;
use aro_runtime::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabels {
    subresource: &'static str,
    action: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodLabels {
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    method: &'static str,
    code: &'static str,
}

/// A gRPC call under way.
#[derive(Debug)]
pub struct Call {
    method: &'static str,
    since: Instant,
}

/// The metrics of a server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ServerMetrics(Arc<Inner>);

/// The counters themselves.
#[derive(Debug)]
pub struct Inner {
    sent: Family<EventLabels, Counter>,
    send_failures: Counter,
    received: Family<EventLabels, Counter>,
    refused: Family<ReasonLabels, Counter>,
    statuses: Family<ReasonLabels, Counter>,
    calls: Family<MethodLabels, Counter>,
    rpcs: Family<CodeLabels, Counter>,
    rpc_seconds: Family<CodeLabels, Histogram, fn() -> Histogram>,
    /// Messages of sources: events and subscription requests.
    messages: Family<MethodLabels, Counter>,
    /// Open subscriptions of sources.
    pub subscribers: Gauge,
    /// Subscriptions ended because their reader was too slow.
    pub slow_subscribers: Counter,
    /// Events sent to sources.
    pub source_events: Counter,
    /// Bundles published again because no agent confirmed them.
    pub republished: Counter,
    /// Bundles that no agent has confirmed.
    pub unconfirmed: Gauge,
    /// Bundles unconfirmed for longer than the alarm's age.
    pub undelivered: Gauge,
    /// Consumers for which orphan deletion is blocked.
    pub disputed: Gauge,
    /// Age of the oldest unconfirmed bundle, in seconds.
    pub oldest: Gauge<f64, std::sync::atomic::AtomicU64>,
    /// From the publish of a version to its first status.
    pub first_status: Histogram,
    /// Duration of responses to agents' spec resyncs.
    pub spec_resync: Histogram,
}

impl std::ops::Deref for ServerMetrics {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl ServerMetrics {
    /// Registers everything.
    pub fn new(metrics: &Metrics) -> Self {
        let seconds = || Histogram::new([0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0]);
        let inner = Inner {
            sent: Family::default(),
            send_failures: Counter::default(),
            received: Family::default(),
            refused: Family::default(),
            statuses: Family::default(),
            calls: Family::default(),
            rpcs: Family::default(),
            rpc_seconds: Family::new_with_constructor(|| Histogram::new(aro_web::STANDARD_BUCKETS)),
            messages: Family::default(),
            subscribers: Gauge::default(),
            slow_subscribers: Counter::default(),
            source_events: Counter::default(),
            republished: Counter::default(),
            unconfirmed: Gauge::default(),
            undelivered: Gauge::default(),
            disputed: Gauge::default(),
            oldest: Gauge::default(),
            first_status: seconds(),
            spec_resync: seconds(),
        };
        metrics.register(|registry| {
            registry.register("cloudevents_sent", "Events published to agents", inner.sent.clone());
            registry.register("cloudevents_send_failures", "Events that could not be published", inner.send_failures.clone());
            registry.register("cloudevents_received", "Events received from agents", inner.received.clone());
            registry.register(
                "cloudevents_refused",
                "Agent messages dropped: malformed, or not permitted",
                inner.refused.clone(),
            );
            registry.register("maestro_statuses", "Status events by outcome", inner.statuses.clone());
            registry.register("grpc_server_called", "Calls started by sources", inner.calls.clone());
            registry.register("grpc_server_processed", "Calls of sources answered", inner.rpcs.clone());
            registry.register(
                "grpc_server_processed_duration_seconds",
                "Duration of a source's call; for a subscription, until its start",
                inner.rpc_seconds.clone(),
            );
            registry.register("grpc_server_message_received", "Messages of sources", inner.messages.clone());
            registry.register("grpc_server_registered_source_clients", "Open subscriptions", inner.subscribers.clone());
            registry.register(
                "maestro_slow_subscribers",
                "Subscriptions ended because their reader was too slow",
                inner.slow_subscribers.clone(),
            );
            registry.register("grpc_server_message_sent", "Events sent to sources", inner.source_events.clone());
            registry.register(
                "spec_controller_undelivered_resources_republished",
                "Bundles published again because no agent confirmed them",
                inner.republished.clone(),
            );
            registry.register("maestro_bundles_unconfirmed", "Bundles no agent has confirmed", inner.unconfirmed.clone());
            registry.register(
                "maestro_bundles_undelivered",
                "Bundles unconfirmed for longer than maestro.undelivered_alarm; alarm above 0",
                inner.undelivered.clone(),
            );
            registry.register(
                "maestro_consumers_disputed",
                "Consumers whose agents report bundles missing from the store, with deletion blocked; alarm above 0",
                inner.disputed.clone(),
            );
            registry.register(
                "spec_controller_event_oldest_unreconciled_age_seconds",
                "Age of the oldest unconfirmed bundle",
                inner.oldest.clone(),
            );
            registry.register(
                "resource_first_status_latency_seconds",
                "From the publish of a version to its first status",
                inner.first_status.clone(),
            );
            registry.register(
                "resources_spec_resync_duration_seconds",
                "Duration of the response to an agent's spec resync",
                inner.spec_resync.clone(),
            );
        });
        Self(Arc::new(inner))
    }

    /// Counts a publish.
    pub fn sent(&self, kind: EventType, succeeded: bool) {
        if succeeded {
            self.sent.get_or_create(&labels(kind)).inc();
        } else {
            self.send_failures.inc();
        }
    }

    /// Counts a received event.
    pub fn received(&self, kind: EventType) {
        self.received.get_or_create(&labels(kind)).inc();
    }

    /// Counts a dropped message.
    pub fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// Counts the outcome of a status.
    pub fn status(&self, reason: &'static str) {
        self.statuses.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// Starts a call; both kinds of calls carry one message.
    pub fn called(&self, method: &'static str) -> Call {
        self.calls.get_or_create(&MethodLabels { method }).inc();
        self.messages.get_or_create(&MethodLabels { method }).inc();
        Call { method, since: Instant::now() }
    }

    /// Ends a call.
    pub fn answered(&self, call: &Call, code: tonic::Code) {
        let code = match code {
            tonic::Code::Ok => "OK",
            tonic::Code::AlreadyExists => "AlreadyExists",
            tonic::Code::Aborted => "Aborted",
            tonic::Code::InvalidArgument => "InvalidArgument",
            tonic::Code::NotFound => "NotFound",
            tonic::Code::PermissionDenied => "PermissionDenied",
            tonic::Code::Unauthenticated => "Unauthenticated",
            tonic::Code::ResourceExhausted => "ResourceExhausted",
            tonic::Code::FailedPrecondition => "FailedPrecondition",
            tonic::Code::Internal => "Internal",
            tonic::Code::Unknown => "Unknown",
            tonic::Code::Unavailable => "Unavailable",
            _ => "Other",
        };
        let labels = CodeLabels { method: call.method, code };
        self.rpc_seconds.get_or_create(&labels).observe(call.since.elapsed().as_secs_f64());
        self.rpcs.get_or_create(&labels).inc();
    }
}

fn labels(kind: EventType) -> EventLabels {
    EventLabels { subresource: kind.subresource.word(), action: kind.action.word() }
}
