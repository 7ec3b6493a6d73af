use super::*;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;

#[derive(Debug, thiserror::Error)]
#[error("failed")]
struct Failed(Class);

impl aro_base::Classify for Failed {
    fn class(&self) -> Class {
        self.0
    }
}

#[derive(Default)]
struct Probe {
    passes: Mutex<HashMap<u32, usize>>,
    running: AtomicUsize,
    most: AtomicUsize,
    gate: Option<Semaphore>,
    /// Errors of the next passes of a key, the next one last.
    failing: Mutex<HashMap<u32, Vec<Class>>>,
    outcome: Mutex<HashMap<u32, Outcome>>,
    terminal: Mutex<Vec<u32>>,
    /// How often `on_terminal` fails.
    unrecorded: AtomicUsize,
}

impl Reconcile for Probe {
    type Key = u32;
    type Error = Failed;
    const NAME: &'static str = "probe";

    async fn reconcile(&self, key: &u32) -> Result<Outcome, Failed> {
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        if let Some(gate) = &self.gate {
            gate.acquire().await.unwrap().forget();
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
        *self.passes.lock().entry(*key).or_default() += 1;
        if let Some(class) = self.failing.lock().get_mut(key).and_then(Vec::pop) {
            return Err(Failed(class));
        }
        Ok(self.outcome.lock().remove(key).unwrap_or(Outcome::Settled))
    }

    async fn on_terminal(&self, key: &u32, _: &Failed) -> Result<(), Failed> {
        self.terminal.lock().push(*key);
        let left = self.unrecorded.load(Ordering::SeqCst);
        if left > 0 {
            self.unrecorded.store(left - 1, Ordering::SeqCst);
            return Err(Failed(Class::Retry));
        }
        Ok(())
    }
}

impl Probe {
    fn failing(classes: Vec<Class>) -> Self {
        Self { failing: Mutex::new(HashMap::from([(1, classes)])), ..Self::default() }
    }

    fn blocked() -> Self {
        Self { gate: Some(Semaphore::new(0)), ..Self::default() }
    }

    fn passes(&self, key: u32) -> usize {
        self.passes.lock().get(&key).copied().unwrap_or_default()
    }
}

struct Running {
    probe: Arc<Probe>,
    queue: Queue<u32>,
    metrics: ReconcileMetrics,
    scope: Scope,
}

impl Running {
    fn count(&self, result: PassResult) -> u64 {
        self.metrics.count("probe", result)
    }

    async fn close(&self) {
        self.scope.close(Duration::from_secs(1)).await.unwrap();
    }
}

fn start(probe: Probe, options: RunnerOptions) -> Running {
    let (probe, queue, scope) = (Arc::new(probe), Queue::new(), Scope::root("test"));
    let metrics = ReconcileMetrics::default();
    let runner = Runner::new(probe.clone(), &queue).with_options(options).with_metrics(&metrics);
    runner.start(&scope);
    Running { probe, queue, metrics, scope }
}

/// The clock is paused: it moves once every task waits.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_key_enqueued_during_its_pass_gets_one_more_pass_and_never_two_at_once() {
    let t = start(Probe::blocked(), RunnerOptions::default());
    t.queue.add(1);
    settle().await;
    for _ in 0..5 {
        t.queue.add(1);
    }
    settle().await;
    t.probe.gate.as_ref().unwrap().add_permits(10);
    settle().await;
    assert_eq!((t.probe.passes(1), t.probe.most.load(Ordering::SeqCst)), (2, 1));
    assert_eq!(t.queue.busy(), 0);
    t.close().await;
}

#[tokio::test(start_paused = true)]
async fn concurrent_passes_are_bounded_and_the_rest_counts_as_queue_depth() {
    let t = start(Probe::blocked(), RunnerOptions { concurrency: 3, ..RunnerOptions::default() });
    (0..10).for_each(|key| t.queue.add(key));
    settle().await;
    assert_eq!(t.probe.running.load(Ordering::SeqCst), 3);
    assert_eq!(t.metrics.depth("probe").get(), 7);
    t.probe.gate.as_ref().unwrap().add_permits(10);
    settle().await;
    assert_eq!((0..10).map(|key| t.probe.passes(key)).sum::<usize>(), 10);
    assert_eq!(t.probe.most.load(Ordering::SeqCst), 3);
    assert_eq!((t.metrics.depth("probe").get(), t.count(PassResult::Ok)), (0, 10));
    t.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_queue_leaves_no_depth_behind() {
    let metrics = ReconcileMetrics::default();
    let queue = Queue::new();
    queue.add(1);
    queue.count_in(metrics.depth("probe"));
    queue.add(2);
    assert_eq!(metrics.depth("probe").get(), 2);
    drop(queue);
    assert_eq!(metrics.depth("probe").get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_failing_key_is_retried_later_each_time_until_it_succeeds() {
    let t = start(Probe::failing(vec![Class::Retry; 3]), RunnerOptions::default());
    let began = Instant::now();
    t.queue.add(1);
    while t.probe.passes(1) < 4 {
        settle().await;
    }
    assert!(began.elapsed() >= Duration::from_millis((20 + 40 + 80) * 3 / 4), "{:?}", began.elapsed());
    settle().await;
    assert_eq!(t.queue.next_due(), None);
    assert!(t.queue.is_idle(&1));
    assert_eq!((t.count(PassResult::Error), t.count(PassResult::Ok)), (3, 1));
    t.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_not_an_error_and_does_not_grow() {
    let wait = Class::Wait(Duration::from_secs(10));
    let t = start(Probe::failing(vec![wait; 4]), RunnerOptions::default());
    let began = Instant::now();
    t.queue.add(1);
    while t.probe.passes(1) < 5 {
        settle().await;
    }
    let elapsed = began.elapsed();
    assert!(elapsed >= Duration::from_secs(40) && elapsed < Duration::from_secs(41), "{elapsed:?}");
    assert_eq!((t.count(PassResult::Wait), t.count(PassResult::Error)), (4, 0));
    t.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_recorded_once_and_not_retried_until_the_key_is_enqueued() {
    let t = start(Probe::failing(vec![Class::Terminal, Class::Terminal]), RunnerOptions::default());
    t.queue.add(1);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((t.probe.passes(1), t.probe.terminal.lock().len()), (1, 1));
    assert!(t.queue.is_idle(&1));
    t.queue.add(1);
    settle().await;
    assert_eq!((t.probe.passes(1), t.probe.terminal.lock().len()), (2, 2));
    t.queue.add(1);
    settle().await;
    assert_eq!((t.count(PassResult::Terminal), t.count(PassResult::Ok)), (2, 1));
    t.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_that_could_not_be_recorded_is_retried() {
    let probe = Probe::failing(vec![Class::Terminal, Class::Terminal]);
    probe.unrecorded.store(1, Ordering::SeqCst);
    let t = start(probe, RunnerOptions::default());
    t.queue.add(1);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((t.probe.passes(1), t.probe.terminal.lock().len()), (2, 2));
    t.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_two_due_times_counts() {
    let t = start(Probe::default(), RunnerOptions::default());
    let began = Instant::now();
    t.queue.add_after(1, Duration::from_mins(1));
    t.queue.add_after(1, Duration::from_secs(5));
    t.queue.add_after(1, Duration::from_secs(30));
    while t.probe.passes(1) == 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(began.elapsed() < Duration::from_secs(6));
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(t.probe.passes(1), 1);
    t.close().await;
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_the_pass_under_way_and_starts_no_other() {
    let t = start(Probe::blocked(), RunnerOptions { concurrency: 1, ..RunnerOptions::default() });
    t.queue.add(1);
    t.queue.add(2);
    settle().await;
    let closing = t.scope.close(Duration::from_secs(5));
    tokio::pin!(closing);
    assert!(tokio::time::timeout(Duration::from_secs(1), closing.as_mut()).await.is_err());
    t.probe.gate.as_ref().unwrap().add_permits(10);
    closing.await.unwrap();
    assert_eq!((t.probe.passes(1), t.probe.passes(2)), (1, 0));
}

/// Enqueues one key at once and is synced a second later.
struct SlowSource;

impl Source<u32> for SlowSource {
    fn start(&self, queue: &Queue<u32>, _: &Scope) -> crate::Synced {
        queue.add(1);
        tokio::time::sleep(Duration::from_secs(1)).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_pass_waits_for_every_source_to_sync() {
    let (probe, queue, scope) = (Arc::new(Probe::default()), Queue::new(), Scope::root("test"));
    Runner::new(probe.clone(), &queue).with_source(SlowSource).start(&scope);
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(probe.passes(1), 0);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(probe.passes(1), 1);
    scope.close(Duration::from_secs(1)).await.unwrap();
}

#[test]
fn outcomes_decide_about_the_next_pass() {
    let next = |outcome| next_pass::<Failed>(&Ended::Done(outcome));
    let delay = Duration::from_secs(3);
    assert_eq!(next(Outcome::Settled), (NextPass::OnChange, PassResult::Ok));
    assert_eq!(next(Outcome::RequeueAfter(delay)), (NextPass::After(delay), PassResult::Ok));
    let waiting = |recheck| Outcome::Waiting { on: "a node", recheck };
    assert_eq!(next(waiting(None)), (NextPass::OnChange, PassResult::Wait));
    assert_eq!(next(waiting(Some(delay))), (NextPass::After(delay), PassResult::Wait));
    assert_eq!(next_pass::<Failed>(&Ended::Panicked), (NextPass::Backoff, PassResult::Error));
}
