//! Publishes unconfirmed bundles again when their next attempt is due, and sets the backlog's gauges.

use std::sync::Arc;
use std::time::Duration;

use aro_base::SharedClock;
use aro_control::{Outcome, Queue, Reconcile, ReconcileMetrics, Runner};
use aro_runtime::{Fault, Scope};

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
    pub fn start(self, metrics: &ReconcileMetrics, scope: &Scope) {
        let rounds = Queue::new();
        rounds.add(());
        Runner::new(Arc::new(self), &rounds).with_metrics(metrics).start(scope);
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

/// One round over the backlog; there is one backlog, hence one key.
impl Reconcile for Retrier {
    type Key = ();
    type Error = Fault;
    const NAME: &'static str = "maestro-retry";

    async fn reconcile(&self, (): &()) -> Result<Outcome, Fault> {
        ledger::set_gauges(&self.backlog, &self.metrics, self.clock.now(), self.alarm);
        if !self.publisher.is_connected() {
            return Ok(Outcome::Waiting { on: "the broker", recheck: Some(INTERVAL) });
        }
        for id in self.backlog.take_due(self.clock.now()) {
            let claimed = self.claim(&id).await;
            let claimed =
                claimed.map_err(|error| Fault::caused(format!("claim an attempt of {id}"), error))?;
            if let Some(row) = claimed {
                self.metrics.republished.inc();
                self.queue.enqueue_stored(row);
            }
        }
        Ok(Outcome::RequeueAfter(INTERVAL))
    }
}
