//! The writer thread: group commit and the sweep.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use aro_base::{SharedClock, Timestamp, chain};
use aro_store::adapter::Signals;
use aro_store::{Batch, StoreError, Written};
use rusqlite::{Connection, ffi};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use crate::apply::{Moment, Outcome, apply, truncate};
use crate::cache::Cache;
use crate::checkpoint::Checkpoints;
use crate::effects::Effects;
use crate::error::{GroupFailed, store_error};
use crate::failure::{Failure, is_fatal_store_error};
use crate::faults::{Faults, Point};
use crate::lock::DirLock;
use crate::names::Names;
use crate::stats::Counters;
use crate::sweep::sweep;
use crate::tail::Tail;
use crate::{OpenError, SqliteOptions, schema};

/// What the writer is asked to do.
pub(crate) enum Job {
    /// The permit is given back when the writer takes the job, which bounds the queue.
    Write { batch: Batch, reply: oneshot::Sender<Outcome>, _place: OwnedSemaphorePermit },
    /// Sweep now instead of at the next interval, until nothing is left.
    Sweep { reply: oneshot::Sender<Result<usize, StoreError>> },
    /// Finish what is queued before this, then stop.
    Stop,
}

/// What the writer shares with the rest of the store.
pub(crate) struct Shared {
    pub(crate) cache: Cache,
    pub(crate) tail: Tail,
    pub(crate) signals: Signals,
    pub(crate) counters: Counters,
    pub(crate) checkpoints: Arc<Checkpoints>,
    pub(crate) failure: Failure,
    pub(crate) faults: Faults,
}

pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) names: Names,
    pub(crate) shared: Arc<Shared>,
    pub(crate) clock: SharedClock,
    pub(crate) options: SqliteOptions,
    /// Held by the thread that may write, so it is free exactly when no thread writes any more.
    pub(crate) _lock: DirLock,
}

type Waiting = (Batch, oneshot::Sender<Outcome>);

impl Writer {
    /// Starts the thread.
    pub(crate) fn start(self, jobs: Receiver<Job>) -> Result<std::thread::JoinHandle<()>, OpenError> {
        std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                let shared = Arc::clone(&self.shared);
                // Replies that the writer held, and those in the queue, are dropped with it: no caller waits for them.
                if catch_unwind(AssertUnwindSafe(move || self.run(&jobs))).is_err() {
                    shared.failure.report("its writer panicked");
                }
            })
            .map_err(OpenError::Thread)
    }

    fn run(mut self, jobs: &Receiver<Job>) {
        self.serve(jobs);
        if self.shared.failure.has_failed() {
            schema::keep_log(&self.connection);
        }
    }

    fn serve(&mut self, jobs: &Receiver<Job>) {
        let mut next_sweep = Instant::now() + self.options.sweep_interval;
        let mut stop = false;
        while !stop {
            let mut job = match jobs.recv_timeout(next_sweep.saturating_duration_since(Instant::now())) {
                Ok(job) => Some(job),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let mut group: Vec<Waiting> = Vec::new();
            let mut ops = 0;
            // Takes what is waiting, without waiting for more: under load the queue fills during a commit.
            while let Some(next) = job.take() {
                match next {
                    Job::Write { batch, reply, .. } => {
                        ops += batch.len();
                        group.push((batch, reply));
                    }
                    Job::Sweep { reply } => {
                        self.commit_group(std::mem::take(&mut group));
                        let _ = reply.send(self.sweep_all());
                    }
                    Job::Stop => {
                        stop = true;
                        break;
                    }
                }
                if ops < self.options.group_ops {
                    job = jobs.try_recv().ok();
                }
            }
            self.commit_group(group);
            if Instant::now() >= next_sweep {
                // A full sweep means that more is due: go on soon, but let writers in between.
                let busy = self.sweep_once().is_ok_and(|swept| swept >= self.options.sweep_rows);
                let pause = if busy { Duration::from_millis(100) } else { self.options.sweep_interval };
                next_sweep = Instant::now() + pause;
            }
        }
    }

    fn commit_group(&mut self, group: Vec<Waiting>) {
        if group.is_empty() {
            return;
        }
        if self.shared.failure.has_failed() {
            for (_, reply) in group {
                // A caller that went away needs no answer.
                let _ = reply.send(self.shared.failure.check().map(|()| Vec::new()));
            }
            return;
        }
        let counters = &self.shared.counters;
        counters.max_group.fetch_max(group.len() as u64, Relaxed);
        let (batches, replies): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        let mut effects = Effects::default();
        self.shared.checkpoints.keep_short(&self.connection, &self.shared.failure);
        let result = self.transaction(batches, &mut effects);
        let outcomes = match result {
            Ok(outcomes) => {
                let counters = &self.shared.counters;
                Counters::add(&counters.commits, 1);
                Counters::add(&counters.batches, effects.batches);
                Counters::add(&counters.ops, effects.ops);
                Counters::add(&counters.conflicts, effects.conflicts);
                self.shared.checkpoints.committed();
                self.shared.cache.commit(effects.documents);
                self.shared.tail.add(effects.changes);
                for container in effects.containers {
                    self.shared.signals.wake(container.name());
                }
                outcomes
            }
            Err(error) => {
                tracing::error!(error = %chain(&error), "a group commit failed");
                if is_fatal_store_error(&error) {
                    self.shared.failure.report(&chain(&error).to_string());
                }
                self.undo(&effects);
                let text = chain(&error).to_string();
                let failed = || Err(StoreError::Unavailable(Box::new(GroupFailed(text.clone()))));
                replies.iter().map(|_| failed()).collect()
            }
        };
        for (reply, outcome) in replies.into_iter().zip(outcomes) {
            // A caller that went away does not undo its write.
            let _: Result<(), Result<Vec<Written>, _>> = reply.send(outcome);
        }
    }

    fn transaction(
        &mut self,
        batches: Vec<Batch>,
        effects: &mut Effects,
    ) -> Result<Vec<Outcome>, StoreError> {
        self.execute("BEGIN IMMEDIATE")?;
        let now = truncate(self.clock.now());
        let kept = now.saturating_add(self.options.tombstone_retention).unwrap_or(Timestamp::MAX);
        let moment = Moment { now, tombstones_until: truncate(kept) };
        let mut outcomes = Vec::with_capacity(batches.len());
        for batch in batches {
            outcomes.push(apply(&self.connection, &mut self.names, batch, moment, effects)?);
        }
        for container in &effects.containers {
            let row = self.names.container(&self.connection, *container).map_err(store_error)?;
            self.connection
                .prepare_cached("UPDATE container SET seq = ?2 WHERE id = ?1")
                .and_then(|mut update| update.execute([row.id, row.seq]))
                .map_err(store_error)?;
        }
        self.shared.cache.begin(effects.documents.iter().map(|(key, _)| key));
        self.commit()?;
        Ok(outcomes)
    }

    fn commit(&self) -> Result<(), StoreError> {
        if self.shared.faults.hit(Point::Commit) {
            let failed = ffi::Error::new(ffi::SQLITE_IOERR_FSYNC);
            return Err(store_error(rusqlite::Error::SqliteFailure(failed, None)));
        }
        self.execute("COMMIT")
    }

    /// Forgets everything that a failed transaction may have taught us.
    fn undo(&mut self, effects: &Effects) {
        if !self.connection.is_autocommit() {
            let _ = self.execute("ROLLBACK").inspect_err(|error| {
                self.shared.failure.report(&format!("a rollback failed: {}", chain(error)));
            });
        }
        self.names = Names::default();
        self.shared.cache.abort(effects.documents.iter().map(|(key, _)| key));
    }

    fn execute(&self, sql: &str) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map(drop)
            .map_err(store_error)
    }

    fn sweep_all(&mut self) -> Result<usize, StoreError> {
        let mut total = 0;
        loop {
            let swept = self.sweep_once()?;
            total += swept;
            if swept < self.options.sweep_rows {
                return Ok(total);
            }
        }
    }

    fn sweep_once(&mut self) -> Result<usize, StoreError> {
        let run = |writer: &Self| -> Result<usize, StoreError> {
            writer.execute("BEGIN IMMEDIATE")?;
            let swept = sweep(&writer.connection, writer.clock.now(), writer.options.sweep_rows);
            let swept = swept.map_err(store_error)?;
            writer.commit()?;
            Ok(swept)
        };
        self.shared.failure.check()?;
        match run(self) {
            Ok(swept) => {
                // The floor of versions may have risen; it is read again with the next write.
                if swept > 0 {
                    self.names = Names::default();
                    self.shared.tail.clear();
                    Counters::add(&self.shared.counters.swept, swept as u64);
                }
                Ok(swept)
            }
            Err(error) => {
                tracing::warn!(error = %chain(&error), "sweeping the store failed");
                if is_fatal_store_error(&error) {
                    self.shared.failure.report(&chain(&error).to_string());
                }
                self.undo(&Effects::default());
                Err(error)
            }
        }
    }
}
