//! Group commit: batches that come while others are being committed share a transaction, hence a flush.
//!
//! A batch starts at once if it can; otherwise it waits in [`crate::queue`] until a transaction is over and goes with
//! whatever else waits. Each batch is judged on its own and its caller gets its own answer, after the commit. A
//! transaction of several batches never waits for a partition that another process writes to: those of its batches come
//! back untried and run again by partition, where waiting delays no other batch.
//!
//! Invariants: a partition is freed only after its transaction is over, whatever became of the task. When a transaction
//! fails and the server confirmed the rollback, its batches are tried one by one, so that none fails for another's
//! sake; when the outcome is unknown, all callers get `Unavailable` and nothing is tried twice.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aro_base::{SharedClock, Timestamp, chain};
use aro_store::adapter::Signals;
use aro_store::{Batch, StoreError, Written};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::task::TaskTracker;

use crate::error::{Closed, DeadlinePassed, GroupFailed, undone};
use crate::notify::Outbox;
use crate::pool::Connections;
use crate::queue::{Partition, Queue, Waiting};
use crate::write::{Outcome, digests, write};

/// How many callers may be waiting for their writes; more wait for a place.
const MAX_WAITING: usize = 1024;

/// Gathers and writes.
pub(crate) struct Writer {
    parts: Parts,
    runtime: Handle,
    places: Semaphore,
    /// Transactions that wait for a lock keep their connection meanwhile: some are left to others.
    patience: Semaphore,
    queue: Mutex<Queue>,
    written: AtomicU64,
}

/// What a writer needs from the store it belongs to.
pub(crate) struct Parts {
    pub(crate) connections: Arc<Connections>,
    pub(crate) clock: SharedClock,
    pub(crate) retention: Duration,
    pub(crate) deadline: Duration,
    pub(crate) pool_size: usize,
    pub(crate) signals: Arc<Signals>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) tasks: TaskTracker,
}

impl Writer {
    /// A writer on the current runtime.
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Self {
            runtime: Handle::current(),
            places: Semaphore::new(MAX_WAITING),
            patience: Semaphore::new((parts.pool_size / 2).max(1)),
            queue: Mutex::default(),
            written: AtomicU64::new(0),
            parts,
        })
    }

    /// Writes a batch that was already checked.
    pub(crate) async fn write(self: &Arc<Self>, batch: Batch) -> Result<Vec<Written>, StoreError> {
        let closed = || StoreError::Unavailable(Box::new(Closed));
        let work = async {
            let _place = self.places.acquire().await.map_err(|_| closed())?;
            let marks = digests(&batch);
            let (reply, answer) = oneshot::channel();
            if self.lock().push(Waiting { batch, marks, reply }) {
                self.start();
            }
            answer.await.unwrap_or_else(|_| Err(closed()))
        };
        let late = |_| Err(StoreError::Unavailable(Box::new(DeadlinePassed)));
        tokio::time::timeout(self.parts.deadline, work).await.unwrap_or_else(late)
    }

    /// How many batches were committed.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Fails what waits, and all that comes. What runs is not disturbed.
    pub(crate) fn close(&self) {
        self.places.close();
        self.lock().close();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts all that can start. Not under the lock: a runtime that is going away drops a task where it is spawned.
    fn start(self: &Arc<Self>) {
        let groups: Vec<_> = {
            let mut queue = self.lock();
            std::iter::from_fn(|| queue.next_group()).collect()
        };
        for group in groups {
            let partitions = group.iter().map(Waiting::partition).collect();
            let turn = Turn { writer: Arc::clone(self), partitions, place: true };
            self.parts.tasks.spawn_on(run(turn, group), &self.runtime);
        }
    }

    /// Runs a group and answers; returns what has to wait for another process.
    async fn attempt(&self, mut group: Vec<Waiting>, wait: bool) -> Vec<Waiting> {
        // A caller past its deadline has no use for a write.
        group.retain(|waiting| !waiting.reply.is_closed());
        if group.is_empty() {
            return group;
        }
        match self.transaction(&group, wait).await {
            Ok(outcomes) => answer(group, outcomes),
            Err(error) if group.len() > 1 && undone(&error) => {
                tracing::debug!(error = %chain(&error), "a group was undone; its batches are tried one by one");
                self.one_by_one(group, wait).await
            }
            Err(error) => {
                fail(group, error);
                Vec::new()
            }
        }
    }

    async fn one_by_one(&self, group: Vec<Waiting>, wait: bool) -> Vec<Waiting> {
        let mut busy = Vec::new();
        for waiting in group {
            if waiting.reply.is_closed() {
                continue;
            }
            match self.transaction(std::slice::from_ref(&waiting), wait).await {
                Ok(outcomes) => busy.extend(answer(vec![waiting], outcomes)),
                Err(error) => fail(vec![waiting], error),
            }
        }
        busy
    }

    async fn transaction(&self, group: &[Waiting], wait: bool) -> Result<Vec<Outcome>, StoreError> {
        let now = self.parts.clock.now();
        let kept = now.saturating_add(self.parts.retention).unwrap_or(Timestamp::MAX);
        let outcomes = write(&self.parts.connections, group, wait, now, kept).await?;
        let done = |outcome: &Outcome| matches!(outcome, Outcome::Done(Ok(_)));
        let written: Vec<_> = group
            .iter()
            .zip(&outcomes)
            .filter(|(_, outcome)| done(outcome))
            .map(|(waiting, _)| waiting)
            .collect();
        self.written.fetch_add(written.len() as u64, Ordering::Relaxed);
        let containers: BTreeSet<_> = written.iter().map(|waiting| waiting.batch.container()).collect();
        for container in containers {
            self.parts.signals.wake(container.name());
            self.parts.outbox.add(container);
        }
        Ok(outcomes)
    }
}

/// The right to write to some partitions; given back when dropped.
struct Turn {
    writer: Arc<Writer>,
    partitions: Vec<Partition>,
    /// Whether it counts as one of the transactions that run.
    place: bool,
}

impl Turn {
    /// A turn for one of its partitions, without a place.
    fn split(&mut self, partition: &Partition) -> Self {
        self.partitions.retain(|held| held != partition);
        Self { writer: Arc::clone(&self.writer), partitions: vec![partition.clone()], place: false }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let mut queue = self.writer.lock();
            if self.place {
                queue.free_place();
            }
            queue.free(&self.partitions);
        }
        self.writer.start();
    }
}

async fn run(mut turn: Turn, group: Vec<Waiting>) {
    let writer = Arc::clone(&turn.writer);
    let mut busy = writer.attempt(group, false).await;
    while let Some(first) = busy.first() {
        let partition = first.partition();
        let (group, others) = busy.into_iter().partition(|waiting| waiting.partition() == partition);
        busy = others;
        writer.parts.tasks.spawn_on(wait_for(turn.split(&partition), group), &writer.runtime);
    }
}

/// Runs batches of one partition once its present writer is done.
async fn wait_for(turn: Turn, group: Vec<Waiting>) {
    if let Ok(_patience) = turn.writer.patience.acquire().await {
        turn.writer.attempt(group, true).await;
    }
}

/// Tells each caller; returns those that were not tried.
fn answer(group: Vec<Waiting>, outcomes: Vec<Outcome>) -> Vec<Waiting> {
    let mut busy = Vec::new();
    for (waiting, outcome) in group.into_iter().zip(outcomes) {
        match outcome {
            // A caller that went away does not undo its write.
            Outcome::Done(result) => drop(waiting.reply.send(result)),
            Outcome::Busy => busy.push(waiting),
        }
    }
    busy
}

/// Tells all callers that it failed.
fn fail(group: Vec<Waiting>, error: StoreError) {
    let text = chain(&error).to_string();
    let mut first = Some(error).filter(|_| group.len() == 1);
    for waiting in group {
        let all = || StoreError::Unavailable(Box::new(GroupFailed(text.clone())));
        drop(waiting.reply.send(Err(first.take().unwrap_or_else(all))));
    }
}
