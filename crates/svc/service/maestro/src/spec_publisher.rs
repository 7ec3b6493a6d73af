//! Publishes the specs of bundles to their agents.
//!
//! A stored row is a promise: it is published until its agent has confirmed it. The replica that stored it publishes at
//! once. If it ends before, or the message is lost, every replica has the row in its [`crate::backlog::Backlog`]; when the
//! next attempt is due, the replica that claims it in the store publishes again ([`crate::retry`]). There is no second
//! place that could disagree with the row.

use std::sync::Arc;

use aro_base::SharedClock;
use aro_control::{Outcome, Reconcile};
use aro_mqtt::PublishError;
use aro_runtime::Fault;

use crate::encoder::AgentEncoder;
use crate::publish_times::PublishTimes;
use crate::publisher::Publisher;
use crate::rows::{Bundle, Rows};
use crate::spec_queue::SpecQueue;

/// The controller of the [`SpecQueue`].
pub struct SpecPublisher {
    pub rows: Rows,
    pub queue: Arc<SpecQueue>,
    pub publisher: Arc<Publisher>,
    pub encoder: AgentEncoder,
    pub times: Arc<PublishTimes>,
    pub clock: SharedClock,
}

impl SpecPublisher {
    /// The row to publish: the one just stored, or the store's. A deletion is always read again: it may have waited while
    /// another replica removed the bundle and stored a new one with the same id, which must not be deleted.
    async fn find_row(&self, id: &str) -> Result<Option<Bundle>, Fault> {
        if let Some(row) = self.queue.take_row(id).filter(|row| !row.is_deleting()) {
            return Ok(Some(row));
        }
        let row = self.rows.find_bundle(id).await;
        Ok(row.map_err(|error| Fault::caused("read a bundle", error))?.map(|row| row.value))
    }
}

impl Reconcile for SpecPublisher {
    type Key = Arc<str>;
    type Error = Fault;
    const NAME: &'static str = "maestro-publish";

    async fn reconcile(&self, id: &Arc<str>) -> Result<Outcome, Fault> {
        if !self.publisher.is_connected() {
            // The next connect enqueues the whole backlog.
            self.queue.take_row(id);
            return Ok(Outcome::Settled);
        }
        let row = self.find_row(id).await?;
        let Some(row) = row.filter(Bundle::is_undelivered) else { return Ok(Outcome::Settled) };
        let now = self.clock.now();
        let event = self.encoder.spec(&row, false);
        let event = event.map_err(|error| Fault::caused("decode a stored bundle", error))?;
        match self.publisher.publish(&row.consumer_name, &event).await {
            Ok(()) => {
                self.times.record(id, row.version, now);
                Ok(Outcome::Settled)
            }
            // An immediate retry would fail alike. The bundle stays in the backlog, and the alarm reports it.
            Err(error @ (PublishError::TooLarge(_) | PublishError::Refused(_))) => {
                tracing::error!(bundle = %id, consumer = row.consumer_name, %error, "bundle cannot be published");
                Ok(Outcome::Settled)
            }
            Err(PublishError::Down) => Ok(Outcome::Settled),
            Err(error) => Err(Fault::caused("publish a bundle", error)),
        }
    }
}
