//! Stores the statuses of agents in their rows.

use std::sync::Arc;
use std::time::Duration;

use aro_base::{SharedClock, chain};
use aro_bundle::{Event, shortened};
use aro_decisions::Decisions;
use aro_runtime::LogLimiter;

use crate::decisions;
use crate::fault::Code;
use crate::metrics::ServerMetrics;
use crate::orphans::OrphanDeleter;
use crate::publish_times::PublishTimes;
use crate::rows::{Outcome, Rows};
use crate::spec_queue::SpecQueue;

/// The pauses between attempts to store a status.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Stores statuses and follows their outcomes.
pub struct StatusWriter {
    pub rows: Rows,
    pub times: Arc<PublishTimes>,
    pub queue: Arc<SpecQueue>,
    pub orphans: Arc<OrphanDeleter>,
    pub clock: SharedClock,
    pub metrics: ServerMetrics,
    pub log_limiter: Arc<LogLimiter>,
    pub decisions: Decisions,
}

impl StatusWriter {
    /// Stores one status, retrying until the store has accepted or rejected it.
    pub async fn store(&self, event: &Event) {
        let id = event.resource_id.as_deref().unwrap_or_default();
        let version = event.resource_version.unwrap_or_default();
        let mut pause = FIRST_PAUSE;
        loop {
            let published = self.times.find(id, version);
            match self.rows.record_status_of(event, published).await {
                Ok(outcome) => {
                    self.record_outcome(event, outcome);
                    if outcome == Outcome::Unknown {
                        self.orphans.delete_reported(event).await;
                    }
                    return;
                }
                Err(error) if !is_transient(&error) => {
                    let unreadable = error.code == Code::Unreadable;
                    self.metrics.refused(if unreadable { "unreadable_row" } else { "malformed" });
                    if let Some(suppressed) = self.log_limiter.permit() {
                        let bundle = shortened(id);
                        tracing::warn!(bundle, reason = %chain(&error), suppressed, "status dropped");
                    }
                    return;
                }
                Err(error) => {
                    if let Some(suppressed) = self.log_limiter.permit() {
                        tracing::warn!(bundle = shortened(id), error = %chain(&error), suppressed, "status not stored; retrying");
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    fn record_outcome(&self, event: &Event, outcome: Outcome) {
        let id = event.resource_id.as_deref().unwrap_or_default();
        self.metrics.status(outcome.label());
        match outcome {
            Outcome::Stored => {
                // Present until the first status of a version.
                if let Some(published) = self.times.remove(id) {
                    let now = self.clock.now();
                    if let Some(entry) = decisions::delivered(event, published, now) {
                        self.decisions.record(entry);
                    }
                    let latency = now.duration_since(published);
                    self.metrics.first_status.observe(latency.as_secs_f64().max(0.0));
                }
            }
            Outcome::Removed => {
                self.times.remove(id);
            }
            Outcome::Republish => self.queue.enqueue(id.into()),
            Outcome::WrongConsumer => {
                if let Some(suppressed) = self.log_limiter.permit() {
                    let consumer = event.cluster_name.as_str();
                    tracing::warn!(
                        bundle = shortened(id),
                        consumer,
                        suppressed,
                        "status for a bundle of another consumer dropped"
                    );
                }
            }
            _ => {}
        }
    }
}

/// Whether a retry may succeed: the store is unavailable, or other writers change the bundle. Any other rejection is final,
/// and a retry would block every status behind it.
fn is_transient(error: &crate::Fault) -> bool {
    matches!(error.code, Code::General | Code::Conflict)
}
