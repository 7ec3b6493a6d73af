use super::*;
use std::collections::BTreeMap;
use std::time::Duration;

use aro_base::ManualClock;
use aro_runtime::Scope;
use parking_lot::Mutex;

use crate::{Queue, Runner, Step};

/// Makes `actual` equal to `desired`, one unit an act.
#[derive(Default)]
struct Counts {
    desired: Mutex<BTreeMap<&'static str, u32>>,
    actual: Mutex<BTreeMap<&'static str, u32>>,
    /// Pauses the key after this act.
    pause_after: Mutex<Option<Gate<&'static str>>>,
}

struct Seen {
    desired: u32,
    actual: u32,
}

#[derive(Debug, PartialEq, Eq)]
enum Act {
    Add,
    Remove,
}

impl Display for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Add => "add one",
            Self::Remove => "remove one",
        })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("never")]
struct Never;

impl Classify for Never {
    fn class(&self) -> Class {
        Class::Terminal
    }
}

fn remove_first(seen: &Seen, _: Timestamp) -> Step<Act> {
    let excess = seen.actual.saturating_sub(seen.desired);
    if excess == 0 {
        return Step::pass();
    }
    let outcome = Outcome::RequeueAfter(Duration::from_secs(1));
    Step::Stop((0..excess).map(|_| Act::Remove).collect(), outcome)
}

fn add(seen: &Seen, _: Timestamp) -> Step<Act> {
    Step::Continue((seen.actual..seen.desired).map(|_| Act::Add).collect())
}

impl Controller for Counts {
    type Key = &'static str;
    type Seen = Seen;
    type Act = Act;
    type Error = Never;
    const NAME: &'static str = "counts";

    async fn observe(&self, key: &&'static str) -> Result<Seen, Never> {
        let read = |map: &Mutex<BTreeMap<_, u32>>| map.lock().get(key).copied().unwrap_or_default();
        Ok(Seen { desired: read(&self.desired), actual: read(&self.actual) })
    }

    fn plan(&self, seen: &Seen, now: Timestamp) -> Plan<Act> {
        Plan::chain(seen, now, &[remove_first, add])
    }

    async fn apply(&self, key: &&'static str, act: &Act, _: Permit) -> Result<(), Never> {
        let mut actual = self.actual.lock();
        let count = actual.entry(key).or_default();
        match act {
            Act::Add => *count += 1,
            Act::Remove => *count -= 1,
        }
        if let Some(gate) = self.pause_after.lock().take() {
            gate.pause(key);
        }
        Ok(())
    }
}

struct Running {
    counts: Arc<Counts>,
    queue: Queue<&'static str>,
    gate: Gate<&'static str>,
    scope: Scope,
}

fn start() -> Running {
    let (counts, queue, scope) = (Arc::new(Counts::default()), Queue::new(), Scope::root("test"));
    let gate = Gate::new(&queue);
    let planned = Planned::new(counts.clone(), &gate, ManualClock::at(Timestamp::UNIX_EPOCH));
    Runner::new(Arc::new(planned), &queue).with_gate(&gate).start(&scope);
    Running { counts, queue, gate, scope }
}

impl Running {
    async fn desire(&self, key: &'static str, count: u32) {
        self.counts.desired.lock().insert(key, count);
        self.queue.add(key);
        tokio::time::sleep(Duration::from_secs(5)).await;
    }

    fn actual(&self, key: &'static str) -> u32 {
        self.counts.actual.lock().get(key).copied().unwrap_or_default()
    }

    fn withheld(&self) -> Vec<(&'static str, Reason, String)> {
        let withheld = self.gate.withheld().into_iter();
        withheld.map(|it| (it.key, it.reason, it.plan.unwrap_or_default())).collect()
    }
}

#[test]
fn the_first_stop_ends_the_chain_and_the_plan_prints() {
    let plan = Plan::chain(&Seen { desired: 1, actual: 3 }, Timestamp::UNIX_EPOCH, &[remove_first, add]);
    assert_eq!(plan.acts, [Act::Remove, Act::Remove]);
    assert_eq!(plan.to_string(), "1. remove one\n2. remove one\nthen again after 1s");
    let plan = Plan::chain(&Seen { desired: 1, actual: 1 }, Timestamp::UNIX_EPOCH, &[remove_first, add]);
    assert_eq!(plan, Plan::settled());
}

#[tokio::test(start_paused = true)]
async fn an_open_gate_applies_the_plan() {
    let t = start();
    t.desire("a", 3).await;
    t.desire("a", 1).await;
    assert_eq!((t.actual("a"), t.withheld()), (1, vec![]));
    t.scope.close(Duration::from_secs(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_shows_the_plan_and_applies_it_when_switched_off() {
    let t = start();
    t.gate.set_dry_run(true);
    t.desire("a", 2).await;
    t.desire("settled", 0).await;
    assert_eq!(t.actual("a"), 0);
    let plan = "1. add one\n2. add one\nthen settled".to_owned();
    assert_eq!(t.withheld(), [("a", Reason::DryRun, plan)], "a key that is as desired needs no permit");
    t.gate.set_dry_run(false);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((t.actual("a"), t.withheld()), (2, vec![]));
    t.scope.close(Duration::from_secs(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_paused_key_is_planned_while_others_are_applied() {
    let t = start();
    t.gate.pause("a");
    t.desire("a", 1).await;
    t.desire("b", 1).await;
    assert_eq!((t.actual("a"), t.actual("b")), (0, 1));
    t.gate.resume(&"a");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(t.actual("a"), 1);
    t.gate.pause_all();
    t.desire("b", 2).await;
    assert_eq!((t.actual("b"), t.withheld()[0].1), (1, Reason::Paused));
    t.gate.resume_all();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(t.actual("b"), 2);
    t.scope.close(Duration::from_secs(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_closes_between_two_acts_withholds_the_second() {
    let t = start();
    *t.counts.pause_after.lock() = Some(t.gate.clone());
    t.desire("a", 2).await;
    assert_eq!(t.actual("a"), 1);
    assert_eq!(t.withheld(), [("a", Reason::Paused, "1. add one\nthen settled".to_owned())]);
    t.scope.close(Duration::from_secs(1)).await.unwrap();
}
