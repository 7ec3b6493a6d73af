//! Publishes unconfirmed bundles again when their next attempt is due, and sets the backlog's gauges.

use std::sync::Arc;
use std::time::Duration;

use aro_base::{SharedClock, chain};
use aro_runtime::{Fault, Scope, TaskKind};

use crate::backlog::Backlog;
use crate::ledger;
use crate::metrics::ServerMetrics;
use crate::publisher::Publisher;
use crate::rows::{Bundle, Rows};
use crate::spec_queue::SpecQueue;

/// How often due attempts are looked up.
const INTERVAL: Duration = Duration::from_millis(250);

/// Claims due attempts in the store.
pub struct Retrier {
    pub rows: Rows,
    pub backlog: Arc<Backlog>,
    pub queue: Arc<SpecQueue>,
    pub publisher: Arc<Publisher>,
    pub clock: SharedClock,
    pub metrics: ServerMetrics,
    /// Bundles unconfirmed for longer than this count as undelivered.
    pub alarm: Duration,
}

impl Retrier {
    /// Retries until the scope closes.
    pub fn start(self, scope: &Scope) {
        scope.spawn(TaskKind::Helper, "retries", async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                ledger::set_gauges(&self.backlog, &self.metrics, self.clock.now(), self.alarm);
                if self.publisher.is_connected() {
                    self.retry_due().await;
                }
            }
            #[expect(unreachable_code, reason = "names the error type of a loop that never ends")]
            Ok::<(), Fault>(())
        });
    }

    /// Claims the attempts that are due, and enqueues the claimed bundles.
    async fn retry_due(&self) {
        for id in self.backlog.take_due(self.clock.now()) {
            match self.claim(&id).await {
                Ok(Some(row)) => {
                    self.metrics.republished.inc();
                    self.queue.enqueue_stored(row);
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(bundle = %id, error = %chain(&error), "publish attempt not claimed");
                    return;
                }
            }
        }
    }

    /// `None` if another replica has claimed the attempt, or the bundle is confirmed.
    async fn claim(&self, id: &str) -> Result<Option<Bundle>, crate::Fault> {
        let Some(row) = self.rows.find_bundle(id).await? else {
            // The feed may lack the deletion after a long interruption.
            self.backlog.update(id, None);
            return Ok(None);
        };
        // The backlog may be behind the row.
        if !row.value.delivery.is_due(self.clock.now()) {
            return Ok(None);
        }
        Ok(self.rows.claim_attempt(&row).await?.map(|row| row.value))
    }
}
