//! The agent's metrics.

use aro_runtime::Metrics;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

/// The metrics of one agent.
#[derive(Debug, Clone, Default)]
pub struct AgentMetrics {
    pub received: Counter,
    pub dropped: Counter,
    pub refused: Counter,
    pub sent: Counter,
    pub failed: Counter,
    pub works: Gauge,
    pub waiting: Gauge,
}

impl AgentMetrics {
    /// Registers them.
    pub fn new(metrics: &Metrics) -> Self {
        let own = Self::default();
        metrics.register(|registry| {
            registry.register("maestro_agent_events_received", "Events received", own.received.clone());
            registry.register(
                "maestro_agent_events_dropped",
                "Events dropped: not decodable, not for this consumer, or stale",
                own.dropped.clone(),
            );
            registry.register(
                "maestro_agent_bundles_refused",
                "Bundles rejected; their status carries the reason",
                own.refused.clone(),
            );
            registry.register(
                "maestro_agent_statuses_sent",
                "Statuses the broker acknowledged",
                own.sent.clone(),
            );
            registry.register(
                "maestro_agent_statuses_failed",
                "Failed publishes of a status; they are retried",
                own.failed.clone(),
            );
            registry.register("maestro_agent_works", "Works", own.works.clone());
            registry.register(
                "maestro_agent_statuses_waiting",
                "Works whose status waits to be published",
                own.waiting.clone(),
            );
        });
        own
    }
}
