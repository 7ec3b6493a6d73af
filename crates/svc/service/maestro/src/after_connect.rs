//! After every connect: enqueues the backlog, and requests the statuses of all agents until that has succeeded.

use std::sync::Arc;
use std::time::Duration;

use aro_control::{Outcome, Queue, Reconcile, ReconcileMetrics, Runner, RunnerOptions};
use aro_net::Backoff;
use aro_runtime::{Fault, Scope, TaskKind};
use aro_store::Slice;
use tokio::sync::Notify;

use crate::backlog::Backlog;
use crate::resync::StatusRequester;
use crate::rows::Rows;
use crate::spec_queue::SpecQueue;

/// Consumers whose statuses are requested.
const MAX_CONSUMERS: usize = 100_000;
/// Delays between requests that fail.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));

/// The work that follows a connect.
pub struct AfterConnect {
    pub rows: Rows,
    pub backlog: Arc<Backlog>,
    pub queue: Arc<SpecQueue>,
    pub statuses: Arc<StatusRequester>,
    /// Notified after every connect.
    pub connected: Arc<Notify>,
}

impl AfterConnect {
    /// Runs until the scope closes.
    pub fn start(self, metrics: &ReconcileMetrics, scope: &Scope) {
        let (own, connects) = (Arc::new(self), Queue::new());
        Runner::new(own.clone(), &connects)
            .with_options(RunnerOptions { backoff: BACKOFF, ..RunnerOptions::default() })
            .with_metrics(metrics)
            .start(scope);
        scope.spawn(TaskKind::Helper, "after-connect", async move {
            loop {
                own.connected.notified().await;
                for id in own.backlog.ids() {
                    own.queue.enqueue(id);
                }
                connects.add(());
            }
            #[expect(unreachable_code, reason = "names the error type of a loop that never ends")]
            Ok::<(), Fault>(())
        });
    }
}

/// There is one connection, hence one key.
impl Reconcile for AfterConnect {
    type Key = ();
    type Error = Fault;
    const NAME: &'static str = "maestro-after-connect";

    async fn reconcile(&self, (): &()) -> Result<Outcome, Fault> {
        let consumers =
            self.rows.list_consumers(None, Slice { size: MAX_CONSUMERS, ..Slice::default() }).await;
        let consumers = consumers.map_err(|error| Fault::caused("list consumers", error))?;
        for row in consumers {
            self.statuses.request(&row.value.name).await?;
        }
        Ok(Outcome::Settled)
    }
}
