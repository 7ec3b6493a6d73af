//! Publishes the agent's reports, and its versions after every connect.
//!
//! Reports are published side by side up to a limit. One that fails stops the flow for a pause: the others in flight fail
//! for the same reason.

use std::time::Duration;

use aro_bundle::{Event, MAX_PACKET, spec_pages};
use aro_mqtt::{Link, PublishError, Subscribers};
use aro_runtime::Scope;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;

use crate::agent::SharedAgent;
use crate::agent_state::Report;
use crate::encoder::Encoder;

/// The pause after a publish that a connected broker did not accept.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// The pause after a publish that matched no subscriber: the server reconnects soon.
const NO_SERVER_PAUSE: Duration = Duration::from_millis(300);

/// The pause when the connection was lost and is back already.
const RECONNECTED_PAUSE: Duration = Duration::from_millis(10);

/// Bytes of one page of a resync: the packet without its envelope.
const PAGE: usize = MAX_PACKET - 16 * 1024;

/// Why an event was not delivered.
#[derive(Debug, thiserror::Error)]
enum DeliveryError {
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The message is lost: without a session the broker keeps nothing for a server that is disconnected.
    #[error("no server is connected to the broker")]
    NoServer,
}

/// Publishes until the scope closes.
pub struct Publisher {
    pub agent: SharedAgent,
    pub link: Link,
    pub encoder: Encoder,
    /// Reports in flight at once.
    pub max_in_flight: usize,
}

impl Publisher {
    pub async fn run(self, stop: Scope) {
        let agent = &self.agent;
        let topic = agent.topics.from_agent(&agent.consumer);
        let mut in_flight = FuturesUnordered::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.link.connected() => {}
            }
            if agent.take_resync_request()
                && let Err(error) = self.publish_versions(&topic).await
            {
                tracing::debug!(%error, "versions not published; retrying");
                agent.request_resync();
                self.pause(&error, &stop).await;
                continue;
            }
            while in_flight.len() < self.max_in_flight {
                let next = agent.state.lock().next_report(agent.clock.now());
                let Some((id, report)) = next else { break };
                in_flight.push(self.publish(&topic, id, report));
            }
            let failed = tokio::select! {
                () = stop.cancelled() => return,
                () = agent.reports_queued.notified(), if in_flight.len() < self.max_in_flight => None,
                Some(published) = in_flight.next() => self.settle(published),
            };
            agent.update_gauges(&agent.state.lock());
            if let Some(error) = failed {
                while let Some(published) = tokio::select! {
                    () = stop.cancelled() => return,
                    published = in_flight.next() => published,
                } {
                    self.settle(published);
                }
                self.pause(&error, &stop).await;
            }
        }
    }

    async fn publish(&self, topic: &str, id: String, report: Report) -> Published {
        let result = match self.encoder.report(&report, self.agent.clock.now()) {
            Ok(event) => self.deliver(topic, &event).await,
            Err(error) => {
                tracing::error!(id, %error, "report cannot be encoded; dropped");
                // A retry would fail alike.
                Ok(())
            }
        };
        Published { id, report, result }
    }

    async fn deliver(&self, topic: &str, event: &Event) -> Result<(), DeliveryError> {
        match self.link.publish_matching(topic, aro_bundle::mqtt::write(event)).await? {
            Subscribers::Matched => Ok(()),
            Subscribers::None => Err(DeliveryError::NoServer),
        }
    }

    /// Records the outcome of a publish. Returns the error after which the flow pauses.
    fn settle(&self, published: Published) -> Option<DeliveryError> {
        let Published { id, report, result } = published;
        let mut state = self.agent.state.lock();
        match result {
            Ok(()) => {
                self.agent.metrics.sent.inc();
                state.ack(&id, &report);
                self.agent.records_changed.notify_one();
                None
            }
            Err(DeliveryError::Publish(PublishError::TooLarge(reason))) => {
                // A retry would fail alike.
                tracing::error!(id, reason, "report too large to publish; dropped");
                self.agent.metrics.failed.inc();
                state.ack(&id, &report);
                None
            }
            Err(error) => {
                self.agent.metrics.failed.inc();
                state.nack(&id, &report);
                Some(error)
            }
        }
    }

    /// Waits after a failed publish. After a lost connection, [`Link::connected`] is the wait.
    async fn pause(&self, error: &DeliveryError, stop: &Scope) {
        let pause = match error {
            DeliveryError::Publish(PublishError::Down | PublishError::Lost) if !self.link.is_connected() => {
                return;
            }
            DeliveryError::Publish(PublishError::Down | PublishError::Lost) => RECONNECTED_PAUSE,
            DeliveryError::Publish(_) => RETRY_PAUSE,
            DeliveryError::NoServer => NO_SERVER_PAUSE,
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }

    /// Publishes a spec resync request: the versions the agent has, in pages.
    async fn publish_versions(&self, topic: &str) -> Result<(), DeliveryError> {
        let unclaimed = self.agent.engine.get().map(aro_work_engine::Engine::unclaimed).unwrap_or_default();
        let versions = self.agent.state.lock().versions(unclaimed);
        let works = versions.len();
        let pages = spec_pages(versions, PAGE);
        tracing::debug!(works, pages = pages.len(), "publishing versions");
        for (range, page) in pages {
            match self.encoder.resync(&range, &page, self.agent.clock.now()) {
                Ok(event) => self.deliver(topic, &event).await?,
                Err(error) => tracing::error!(%error, "versions cannot be encoded"),
            }
        }
        Ok(())
    }
}

/// A report and the outcome of publishing it.
struct Published {
    id: String,
    report: Report,
    result: Result<(), DeliveryError>,
}
