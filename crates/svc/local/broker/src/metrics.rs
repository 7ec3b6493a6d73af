//! The broker's metrics.

use aro_runtime::Metrics;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

/// The metrics of one broker.
#[derive(Debug, Clone, Default)]
pub struct BrokerMetrics {
    pub connections: Gauge,
    pub received: Counter,
    pub delivered: Counter,
    pub refused: Counter,
    pub dropped: Counter,
    pub failed_handshakes: Counter,
    pub slow: Counter,
}

impl BrokerMetrics {
    /// Registers them.
    pub fn new(metrics: &Metrics) -> Self {
        let own = Self::default();
        metrics.register(|registry| {
            registry.register("broker_connections", "Clients connected", own.connections.clone());
            registry.register("broker_messages_received", "Messages published", own.received.clone());
            registry.register(
                "broker_messages_delivered",
                "Messages queued for a subscriber",
                own.delivered.clone(),
            );
            registry.register("broker_refused", "Publishes and subscriptions rejected", own.refused.clone());
            registry.register(
                "broker_messages_dropped",
                "Messages dropped: subscriber too slow, packet limit too small, or disconnected",
                own.dropped.clone(),
            );
            registry.register(
                "broker_failed_handshakes",
                "Connections that ended before CONNECT was accepted",
                own.failed_handshakes.clone(),
            );
            registry.register(
                "broker_slow_clients",
                "Clients disconnected because they did not keep up",
                own.slow.clone(),
            );
        });
        own
    }
}
