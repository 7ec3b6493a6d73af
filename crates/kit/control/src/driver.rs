//! The loop that hands keys to a reconciler.

use std::fmt::Debug;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_runtime::{Fault, Scope, TaskKind};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use tokio::time::Instant;

use crate::metrics::ReconcileMetrics;
use crate::queue::Queue;

/// How a pass ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to do until something changes.
    Settled,
    /// Look again after a while, even if nothing changes.
    RequeueAfter(Duration),
    /// Something else has to happen first; a change of it adds the key. `recheck` is for changes nobody tells us about.
    Waiting {
        /// What it waits for.
        on: &'static str,
        /// Look again at the latest after this.
        recheck: Option<Duration>,
    },
}

/// Brings one thing in line with what was asked for.
pub trait Reconcile: Send + Sync + 'static {
    /// Names one thing.
    type Key: Clone + Eq + Hash + Debug + Send + Sync + 'static;
    /// The controller's name in logs and metrics.
    const NAME: &'static str;

    /// One pass. Safe to repeat at any time.
    fn reconcile(&self, key: &Self::Key) -> impl Future<Output = Result<Outcome, Fault>> + Send;
}

/// How much happens at once, and how failures are spread.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Tasks; more than one only where passes are heavy on the processor.
    pub tasks: usize,
    /// Passes at once in each task.
    pub passes: usize,
    /// The pause after the first failure of a key; it doubles with each.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            tasks: 1,
            passes: 16,
            first_pause: Duration::from_millis(20),
            longest_pause: Duration::from_secs(30),
        }
    }
}

/// Works on a queue until the scope is cancelled; passes under way finish first.
pub fn drive<R: Reconcile>(
    reconciler: Arc<R>,
    queue: Queue<R::Key>,
    pace: Pace,
    metrics: ReconcileMetrics,
    scope: &Scope,
) {
    for _ in 0..pace.tasks.max(1) {
        let (reconciler, queue, metrics) = (reconciler.clone(), queue.clone(), metrics.clone());
        let inside = scope.clone();
        scope.spawn(TaskKind::Worker, R::NAME, async move {
            work(&*reconciler, &queue, pace, &metrics, &inside).await;
            Ok::<_, Fault>(())
        });
    }
}

async fn work<R: Reconcile>(
    reconciler: &R,
    queue: &Queue<R::Key>,
    pace: Pace,
    metrics: &ReconcileMetrics,
    scope: &Scope,
) {
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < pace.passes.max(1) && !scope.is_cancelled() {
            let Some(key) = queue.take() else { break };
            running.push(pass(reconciler, queue, key, pace, metrics));
        }
        if running.is_empty() && scope.is_cancelled() {
            return;
        }
        let full = running.len() >= pace.passes.max(1);
        tokio::select! {
            biased;
            Some(()) = running.next() => {}
            () = scope.cancelled(), if !scope.is_cancelled() => {}
            () = queue.changed(), if !full && !scope.is_cancelled() => {}
        }
    }
}

async fn pass<R: Reconcile>(
    reconciler: &R,
    queue: &Queue<R::Key>,
    key: R::Key,
    pace: Pace,
    metrics: &ReconcileMetrics,
) {
    let began = Instant::now();
    let ended = AssertUnwindSafe(reconciler.reconcile(&key)).catch_unwind().await;
    let ended = ended.unwrap_or_else(|_| Err(Fault::new("the pass panicked")));
    metrics.passed(R::NAME, began.elapsed(), ended.is_ok());
    let failures = queue.done(&key, ended.is_ok());
    match ended {
        Ok(Outcome::Settled | Outcome::Waiting { recheck: None, .. }) => {}
        Ok(Outcome::RequeueAfter(pause)) => queue.add_after(key, pause),
        Ok(Outcome::Waiting { on, recheck: Some(pause) }) => {
            tracing::trace!(controller = R::NAME, ?key, on, "waiting");
            queue.add_after(key, pause);
        }
        Err(fault) => {
            let pause = pause_after(failures, pace, key_chance(&key, failures));
            // Somebody else being faster is everyday; the same key failing again and again is not.
            if failures >= NOTEWORTHY {
                tracing::warn!(controller = R::NAME, ?key, failures, error = %chain(&fault), ?pause, "a pass failed and will be tried again");
            } else {
                tracing::debug!(controller = R::NAME, ?key, failures, error = %chain(&fault), ?pause, "a pass failed and will be tried again");
            }
            queue.add_after(key, pause);
        }
    }
}

/// Failures in a row from which on they are told about.
const NOTEWORTHY: u32 = 5;

/// Doubles with each failure, up to the longest; `chance` in 0..1 takes up to a quarter away, so that those who failed
/// together do not come back together.
fn pause_after(failures: u32, pace: Pace, chance: f64) -> Duration {
    let doubled =
        pace.first_pause.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
    doubled.min(pace.longest_pause).mul_f64(1.0 - chance / 4.0)
}

/// Differs between keys and between tries; needs no source of randomness.
fn key_chance<K: Hash>(key: &K, failures: u32) -> f64 {
    use std::hash::{BuildHasher as _, RandomState};
    let hash = RandomState::new().hash_one((key, failures));
    f64::from((hash >> 32) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Semaphore;

    #[derive(Default)]
    struct Probe {
        passes: Mutex<HashMap<u32, usize>>,
        running: AtomicUsize,
        most: AtomicUsize,
        gate: Option<Semaphore>,
        failing: Mutex<HashMap<u32, usize>>,
        outcome: Mutex<HashMap<u32, Outcome>>,
    }

    impl Reconcile for Probe {
        type Key = u32;
        const NAME: &'static str = "probe";

        async fn reconcile(&self, key: &u32) -> Result<Outcome, Fault> {
            let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            if let Some(gate) = &self.gate {
                gate.acquire().await.unwrap().forget();
            }
            self.running.fetch_sub(1, Ordering::SeqCst);
            *self.passes.lock().entry(*key).or_default() += 1;
            if let Some(left) = self.failing.lock().get_mut(key)
                && *left > 0
            {
                *left -= 1;
                return Err(Fault::new("not yet"));
            }
            Ok(self.outcome.lock().remove(key).unwrap_or(Outcome::Settled))
        }
    }

    impl Probe {
        fn passes(&self, key: u32) -> usize {
            self.passes.lock().get(&key).copied().unwrap_or_default()
        }
    }

    fn start(probe: Probe, pace: Pace) -> (Arc<Probe>, Queue<u32>, Scope) {
        let (probe, queue, scope) = (Arc::new(probe), Queue::new(), Scope::root("test"));
        drive(probe.clone(), queue.clone(), pace, ReconcileMetrics::default(), &scope);
        (probe, queue, scope)
    }

    async fn settle() {
        // The clock stands still until everybody waits.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_added_while_it_runs_gets_one_more_pass_and_never_two_at_once() {
        let probe = Probe { gate: Some(Semaphore::new(0)), ..Probe::default() };
        let (probe, queue, scope) = start(probe, Pace::default());
        queue.add(1);
        settle().await;
        for _ in 0..5 {
            queue.add(1);
        }
        settle().await;
        probe.gate.as_ref().unwrap().add_permits(10);
        settle().await;
        assert_eq!((probe.passes(1), probe.most.load(Ordering::SeqCst)), (2, 1));
        assert_eq!(queue.busy(), 0);
        scope.close(Duration::from_secs(1)).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn passes_at_once_are_bounded() {
        let probe = Probe { gate: Some(Semaphore::new(0)), ..Probe::default() };
        let (probe, queue, scope) = start(probe, Pace { passes: 3, ..Pace::default() });
        (0..10).for_each(|key| queue.add(key));
        settle().await;
        assert_eq!(probe.running.load(Ordering::SeqCst), 3);
        probe.gate.as_ref().unwrap().add_permits(10);
        settle().await;
        assert_eq!((0..10).map(|key| probe.passes(key)).sum::<usize>(), 10);
        assert_eq!(probe.most.load(Ordering::SeqCst), 3);
        scope.close(Duration::from_secs(1)).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_key_is_tried_again_later_each_time_until_it_succeeds() {
        let probe = Probe { failing: Mutex::new(HashMap::from([(1, 3)])), ..Probe::default() };
        let (probe, queue, scope) = start(probe, Pace::default());
        let began = Instant::now();
        queue.add(1);
        while probe.passes(1) < 4 {
            settle().await;
        }
        assert!(began.elapsed() >= Duration::from_millis((20 + 40 + 80) * 3 / 4), "{:?}", began.elapsed());
        settle().await;
        assert_eq!(queue.next_due(), None);
        assert!(queue.is_forgotten(&1));
        scope.close(Duration::from_secs(1)).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_earlier_of_two_times_counts() {
        let (probe, queue, scope) = start(Probe::default(), Pace::default());
        let began = Instant::now();
        queue.add_after(1, Duration::from_mins(1));
        queue.add_after(1, Duration::from_secs(5));
        queue.add_after(1, Duration::from_secs(30));
        while probe.passes(1) == 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(began.elapsed() < Duration::from_secs(6));
        tokio::time::sleep(Duration::from_mins(2)).await;
        assert_eq!(probe.passes(1), 1);
        scope.close(Duration::from_secs(1)).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn closing_waits_for_the_pass_under_way_and_starts_no_other() {
        let probe = Probe { gate: Some(Semaphore::new(0)), ..Probe::default() };
        let (probe, queue, scope) = start(probe, Pace { passes: 1, ..Pace::default() });
        queue.add(1);
        queue.add(2);
        settle().await;
        let closing = scope.close(Duration::from_secs(5));
        tokio::pin!(closing);
        assert!(tokio::time::timeout(Duration::from_secs(1), closing.as_mut()).await.is_err());
        probe.gate.as_ref().unwrap().add_permits(10);
        closing.await.unwrap();
        assert_eq!((probe.passes(1), probe.passes(2)), (1, 0));
    }

    #[test]
    fn pauses_grow_to_the_longest_and_no_further() {
        let pace = Pace::default();
        assert_eq!(pause_after(1, pace, 0.0), Duration::from_millis(20));
        assert_eq!(pause_after(3, pace, 0.0), Duration::from_millis(80));
        assert_eq!(pause_after(40, pace, 0.0), Duration::from_secs(30));
        assert_eq!(pause_after(u32::MAX, pace, 1.0), Duration::from_millis(22_500));
    }
}
