//! Publishes events to agents over the broker connection.

use aro_bundle::{Event, Topics, mqtt};
use aro_mqtt::{Link, PublishError};
use aro_runtime::Fault;
use futures::StreamExt as _;
use tokio::sync::OnceCell;

use crate::metrics::ServerMetrics;

/// Events in flight at once, per call of [`Publisher::publish_all`].
const CONCURRENCY: usize = 64;

/// The outgoing side of the broker connection.
pub struct Publisher {
    /// Set once the connection is started: its receiving side needs parts that publish.
    link: OnceCell<Link>,
    topics: Topics,
    metrics: ServerMetrics,
}

impl Publisher {
    pub fn new(topics: Topics, metrics: ServerMetrics) -> Self {
        Self { link: OnceCell::new(), topics, metrics }
    }

    /// Sets the connection. A second call has no effect.
    pub fn attach(&self, link: Link) {
        let _ = self.link.set(link);
    }

    pub fn is_connected(&self) -> bool {
        self.link.get().is_some_and(Link::is_connected)
    }

    /// Publishes one event to a consumer's agent. Resolves when the broker has acknowledged it.
    pub async fn publish(&self, consumer: &str, event: &Event) -> Result<(), PublishError> {
        let link = self.link.get().ok_or(PublishError::Down)?;
        let result = link.publish(&self.topics.to_agent(consumer), mqtt::write(event)).await;
        self.metrics.sent(event.kind, result.is_ok());
        result
    }

    /// Publishes events to a consumer's agent concurrently. An event the broker cannot take is logged and skipped, so that
    /// it does not block the others. Returns how many there were.
    pub async fn publish_all(&self, consumer: &str, events: Vec<Event>) -> Result<usize, Fault> {
        let count = events.len();
        let mut results = futures::stream::iter(events)
            .map(|event| async move { (self.publish(consumer, &event).await, event.resource_id) })
            .buffer_unordered(CONCURRENCY);
        while let Some((result, id)) = results.next().await {
            match result {
                Ok(()) => {}
                Err(error @ (PublishError::TooLarge(_) | PublishError::Refused(_))) => {
                    tracing::error!(bundle = id.as_deref(), consumer, %error, "bundle cannot be published");
                }
                Err(error) => return Err(Fault::caused("publish", error)),
            }
        }
        Ok(count)
    }
}
