//! After every connect: enqueues the backlog, and requests the statuses of all agents.

use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_runtime::{Fault, Scope, TaskKind};
use aro_store::Slice;
use tokio::sync::Notify;

use crate::backlog::Backlog;
use crate::resync::StatusRequester;
use crate::rows::Rows;
use crate::spec_queue::SpecQueue;

/// Consumers whose statuses are requested.
const MAX_CONSUMERS: usize = 100_000;
/// The pauses between attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

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
    pub fn start(self, scope: &Scope) {
        scope.spawn(TaskKind::Helper, "after-connect", async move {
            loop {
                self.connected.notified().await;
                self.enqueue_backlog();
                let mut pause = FIRST_PAUSE;
                while let Err(error) = self.request_statuses().await {
                    tracing::warn!(error = %chain(&error), "statuses not requested from all agents; retrying");
                    tokio::select! {
                        // A new connect starts over.
                        () = self.connected.notified() => {
                            self.enqueue_backlog();
                            pause = FIRST_PAUSE;
                        }
                        () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                    }
                }
            }
            #[expect(unreachable_code, reason = "names the error type of a loop that never ends")]
            Ok::<(), Fault>(())
        });
    }

    fn enqueue_backlog(&self) {
        for id in self.backlog.ids() {
            self.queue.enqueue(id);
        }
    }

    async fn request_statuses(&self) -> Result<(), Fault> {
        let consumers =
            self.rows.list_consumers(None, Slice { size: MAX_CONSUMERS, ..Slice::default() }).await;
        let consumers = consumers.map_err(|error| Fault::caused("list consumers", error))?;
        for row in consumers {
            self.statuses.request(&row.value.name).await?;
        }
        Ok(())
    }
}
