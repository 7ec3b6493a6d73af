//! What the agent counts.

use aro_runtime::Metrics;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

/// The numbers of one agent.
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
                "Events that were not for this agent, not newer, or not events",
                own.dropped.clone(),
            );
            registry.register(
                "maestro_agent_bundles_refused",
                "Bundles that cannot be applied at all; their status says why",
                own.refused.clone(),
            );
            registry.register(
                "maestro_agent_statuses_sent",
                "Statuses the broker acknowledged",
                own.sent.clone(),
            );
            registry.register(
                "maestro_agent_statuses_failed",
                "Attempts to send a status that failed; they are repeated",
                own.failed.clone(),
            );
            registry.register("maestro_agent_works", "Works known", own.works.clone());
            registry.register(
                "maestro_agent_statuses_waiting",
                "Works whose status waits to be sent",
                own.waiting.clone(),
            );
        });
        own
    }
}
