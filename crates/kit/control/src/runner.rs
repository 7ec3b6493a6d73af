//! The loop that passes keys to a reconciler.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{Class, Classify as _, chain};
use aro_net::Backoff;
use aro_runtime::{Fault, Scope, TaskKind};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use tokio::time::Instant;

use crate::metrics::{PassResult, ReconcileMetrics};
use crate::queue::{Queue, Tally};
use crate::{Gate, Outcome, Reconcile, Source};

#[cfg(test)]
mod tests;

/// Failures in a row from which on they are warnings: a lost race with another writer is not.
const WARN_AFTER: u32 = 5;

/// How much a runner does at once, and how it retries.
#[derive(Debug, Clone, Copy)]
pub struct RunnerOptions {
    /// Tasks that the passes are spread over; more than one only where passes are heavy on the processor.
    pub tasks: usize,
    /// Passes at once, all tasks together.
    pub concurrency: usize,
    /// Delays between passes of a key that fails.
    pub backoff: Backoff,
}

impl Default for RunnerOptions {
    fn default() -> Self {
        Self {
            tasks: 1,
            concurrency: 16,
            backoff: Backoff::new(Duration::from_millis(20), Duration::from_secs(30)),
        }
    }
}

/// Runs a reconciler over a queue. The class of an error decides about the next pass:
///
/// | class | next pass | metric result |
/// |---|---|---|
/// | `Retry` | after a backoff that grows with the failures in a row of the key | `error` |
/// | `Wait(d)` | after `d`; no growth, no warning | `wait` |
/// | `Terminal` | none until a source enqueues the key; `on_terminal` is called | `terminal` |
///
/// A panic counts as `Retry`.
pub struct Runner<R: Reconcile> {
    reconciler: Arc<R>,
    queue: Queue<R::Key>,
    options: RunnerOptions,
    metrics: ReconcileMetrics,
    gate: Option<Gate<R::Key>>,
    sources: Vec<Box<dyn Source<R::Key>>>,
}

impl<R: Reconcile> Runner<R> {
    /// A runner of a reconciler over a queue.
    pub fn new(reconciler: Arc<R>, queue: &Queue<R::Key>) -> Self {
        Self {
            reconciler,
            queue: queue.clone(),
            options: RunnerOptions::default(),
            metrics: ReconcileMetrics::default(),
            gate: None,
            sources: Vec::new(),
        }
    }

    /// Sets concurrency and backoff.
    pub fn with_options(mut self, options: RunnerOptions) -> Self {
        self.options = options;
        self
    }

    /// Counts passes in these metrics.
    pub fn with_metrics(mut self, metrics: &ReconcileMetrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// Passes only keys that this gate permits; the others are previewed.
    pub fn with_gate(mut self, gate: &Gate<R::Key>) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Adds a source of keys. The first pass starts when every source is synced.
    pub fn with_source(mut self, source: impl Source<R::Key>) -> Self {
        self.sources.push(Box::new(source));
        self
    }

    /// Runs until the scope is cancelled; passes under way finish first.
    pub fn start(self, scope: &Scope) {
        self.queue.count_in(self.metrics.depth(R::NAME));
        if let Some(gate) = &self.gate {
            gate.run(scope);
        }
        if self.sources.is_empty() {
            return self.work(scope);
        }
        let synced: Vec<_> = self.sources.iter().map(|source| source.start(&self.queue, scope)).collect();
        let inside = scope.clone();
        scope.spawn(TaskKind::Helper, format!("{}-sync", R::NAME), async move {
            futures::future::join_all(synced).await;
            self.work(&inside);
            Ok::<_, Fault>(())
        });
    }

    fn work(&self, scope: &Scope) {
        let tasks = self.options.tasks.max(1);
        let worker = Worker {
            reconciler: self.reconciler.clone(),
            queue: self.queue.clone(),
            gate: self.gate.clone(),
            metrics: self.metrics.clone(),
            concurrency: self.options.concurrency.div_ceil(tasks).max(1),
            backoff: self.options.backoff,
        };
        for _ in 0..tasks {
            let (worker, inside) = (worker.clone(), scope.clone());
            scope.spawn(TaskKind::Worker, R::NAME, async move {
                worker.run(&inside).await;
                Ok::<_, Fault>(())
            });
        }
    }
}

struct Worker<R: Reconcile> {
    reconciler: Arc<R>,
    queue: Queue<R::Key>,
    gate: Option<Gate<R::Key>>,
    metrics: ReconcileMetrics,
    concurrency: usize,
    backoff: Backoff,
}

impl<R: Reconcile> Clone for Worker<R> {
    fn clone(&self) -> Self {
        Self {
            reconciler: self.reconciler.clone(),
            queue: self.queue.clone(),
            gate: self.gate.clone(),
            metrics: self.metrics.clone(),
            concurrency: self.concurrency,
            backoff: self.backoff,
        }
    }
}

/// How a pass ended.
enum Ended<E> {
    Done(Outcome),
    /// The gate withheld the key.
    Previewed,
    Failed(E),
    /// The error, and whether `on_terminal` failed in turn.
    Terminal(E, Option<E>),
    Panicked,
}

impl<R: Reconcile> Worker<R> {
    async fn run(&self, scope: &Scope) {
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < self.concurrency && !scope.is_cancelled() {
                let Some(key) = self.queue.take() else { break };
                running.push(self.pass(key));
            }
            if running.is_empty() && scope.is_cancelled() {
                return;
            }
            let full = running.len() >= self.concurrency;
            tokio::select! {
                biased;
                Some(()) = running.next() => {}
                () = scope.cancelled(), if !scope.is_cancelled() => {}
                () = self.queue.changed(), if !full && !scope.is_cancelled() => {}
            }
        }
    }

    async fn pass(&self, key: R::Key) {
        let began = Instant::now();
        let ended = AssertUnwindSafe(self.attempt(&key)).catch_unwind().await;
        let ended = ended.unwrap_or(Ended::Panicked);
        let (next, result) = next_pass(&ended);
        self.metrics.record(R::NAME, began.elapsed(), result);
        let failures = self.queue.done(&key, next.tally());
        let delay = match next {
            NextPass::OnChange => None,
            NextPass::After(delay) | NextPass::AfterWait(delay) => Some(delay),
            NextPass::Backoff => Some(self.backoff.delay(failures)),
        };
        log_end::<R>(&key, &ended, failures, delay);
        if let Some(delay) = delay {
            self.queue.add_after(key, delay);
        }
    }

    async fn attempt(&self, key: &R::Key) -> Ended<R::Error> {
        if let Some(gate) = &self.gate
            && let Err(reason) = gate.admit(key)
        {
            return match self.reconciler.preview(key).await {
                Ok(preview) => {
                    gate.withhold(key, reason, preview);
                    Ended::Previewed
                }
                Err(error) => Ended::Failed(error),
            };
        }
        match self.reconciler.reconcile(key).await {
            Ok(outcome) => Ended::Done(outcome),
            Err(error) if error.class() == Class::Terminal => {
                let record = self.reconciler.on_terminal(key, &error).await;
                Ended::Terminal(error, record.err())
            }
            Err(error) => Ended::Failed(error),
        }
    }
}

/// When a key gets its next pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextPass {
    /// When a source enqueues it.
    OnChange,
    After(Duration),
    /// The same after an error of class `Wait`: failures before it still count.
    AfterWait(Duration),
    Backoff,
}

impl NextPass {
    fn tally(self) -> Tally {
        match self {
            Self::OnChange | Self::After(_) => Tally::Reset,
            Self::AfterWait(_) => Tally::Keep,
            Self::Backoff => Tally::Failure,
        }
    }
}

fn next_pass<E: aro_base::Classify>(ended: &Ended<E>) -> (NextPass, PassResult) {
    match ended {
        Ended::Done(Outcome::Settled) => (NextPass::OnChange, PassResult::Ok),
        Ended::Done(Outcome::RequeueAfter(delay)) => (NextPass::After(*delay), PassResult::Ok),
        Ended::Done(Outcome::Waiting { recheck, .. }) => {
            (recheck.map_or(NextPass::OnChange, NextPass::After), PassResult::Wait)
        }
        Ended::Previewed => (NextPass::OnChange, PassResult::Preview),
        Ended::Failed(error) => after_error(error),
        Ended::Terminal(_, None) => (NextPass::OnChange, PassResult::Terminal),
        Ended::Terminal(_, Some(unrecorded)) => (after_error(unrecorded).0, PassResult::Terminal),
        Ended::Panicked => (NextPass::Backoff, PassResult::Error),
    }
}

fn after_error<E: aro_base::Classify>(error: &E) -> (NextPass, PassResult) {
    match error.class() {
        Class::Retry => (NextPass::Backoff, PassResult::Error),
        Class::Wait(delay) => (NextPass::AfterWait(delay), PassResult::Wait),
        Class::Terminal => (NextPass::OnChange, PassResult::Terminal),
    }
}

fn log_end<R: Reconcile>(key: &R::Key, ended: &Ended<R::Error>, failures: u32, delay: Option<Duration>) {
    let controller = R::NAME;
    match ended {
        Ended::Done(Outcome::Waiting { on, .. }) => {
            tracing::trace!(controller, ?key, on, ?delay, "object waits");
        }
        Ended::Done(_) | Ended::Previewed => {}
        Ended::Failed(error) if matches!(error.class(), Class::Wait(_)) => {
            tracing::debug!(controller, ?key, reason = %chain(error), ?delay, "object waits");
        }
        Ended::Failed(error) if failures >= WARN_AFTER || delay.is_none() => {
            tracing::warn!(controller, ?key, failures, error = %chain(error), ?delay, "reconcile failed");
        }
        Ended::Failed(error) => {
            tracing::debug!(controller, ?key, failures, error = %chain(error), ?delay, "reconcile failed");
        }
        Ended::Terminal(error, unrecorded) => {
            let unrecorded = unrecorded.as_ref().map(|error| chain(error).to_string());
            tracing::warn!(controller, ?key, error = %chain(error), unrecorded, "reconcile failed terminally");
        }
        Ended::Panicked => tracing::error!(controller, ?key, failures, ?delay, "reconcile panicked"),
    }
}
