//! Metrics of a link.

use aro_runtime::Metrics;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

/// The metrics of one link.
#[derive(Debug, Clone, Default)]
pub struct LinkMetrics {
    pub connected: Gauge,
    pub connects: Counter,
    pub published: Counter,
    pub publish_failures: Counter,
    pub received: Counter,
    pub dropped: Counter,
    pub refused_subscriptions: Counter,
}

impl LinkMetrics {
    /// Registers them.
    pub fn new(metrics: &Metrics) -> Self {
        let own = Self::default();
        metrics.register(|registry| {
            registry.register(
                "mqtt_link_connected",
                "Whether the broker is connected",
                own.connected.clone(),
            );
            registry.register("mqtt_link_connects", "Connects", own.connects.clone());
            registry.register(
                "mqtt_link_published",
                "Messages the broker acknowledged",
                own.published.clone(),
            );
            registry.register(
                "mqtt_link_publish_failures",
                "Messages rejected, too large, or unacknowledged when the connection was lost",
                own.publish_failures.clone(),
            );
            registry.register("mqtt_link_received", "Messages received", own.received.clone());
            registry.register(
                "mqtt_link_dropped",
                "Messages dropped: malformed, or QoS 0 with a full queue",
                own.dropped.clone(),
            );
            registry.register(
                "mqtt_link_refused_subscriptions",
                "Subscriptions the broker rejected",
                own.refused_subscriptions.clone(),
            );
        });
        own
    }
}
