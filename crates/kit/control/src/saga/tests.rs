use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{ManualClock, SignedDuration, Timestamp};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::testing::{MemoryJournal, Moment, Proofs, World};
use super::*;

#[derive(Debug, Default)]
struct Things {
    exist: Mutex<BTreeSet<String>>,
    /// Errors that the next acts meet, first first.
    errors: Mutex<Vec<(&'static str, StepError)>>,
    order: Mutex<Vec<String>>,
    answered: Mutex<bool>,
    gone: Mutex<bool>,
}

impl Things {
    fn act(&self, what: &str, create: bool) -> Result<(), StepError> {
        let mut errors = self.errors.lock();
        if errors.first().is_some_and(|(name, _)| *name == what) {
            return Err(errors.remove(0).1);
        }
        self.order.lock().push(format!("{}{what}", if create { "" } else { "-" }));
        let mut exist = self.exist.lock();
        if create {
            exist.insert(what.to_owned())
        } else {
            exist.remove(what)
        };
        Ok(())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Built {
    network: Option<String>,
    disk: Option<String>,
    published: bool,
}

struct Build;

impl Saga for Build {
    const NAME: &'static str = "test.build";
    const VERSION: u16 = 2;
    type State = Built;
    type Cx = Things;

    fn steps() -> Steps<Self> {
        Steps::<Self>::new()
            .step("names", |cx, _| async move { cx.act("names", true) }.boxed())
            .undo(|cx, _| async move { cx.act("names", false) }.boxed())
            .together(
                Steps::<Self>::new()
                    .step("network", |cx, st| async { network(cx, st) }.boxed())
                    .undo(|cx, _| async move { cx.act("network", false) }.boxed())
                    .step("disk", |cx, st| async { disk(cx, st) }.boxed())
                    .undo(|cx, _| async move { cx.act("disk", false) }.boxed()),
            )
            .wait("answers", |cx, _| async { Ok(answers(cx)) }.boxed(), Duration::from_mins(40))
            .commit_point()
            .step("publish", |cx, st| async { publish(cx, st) }.boxed())
    }

    fn gone(cx: &Things) -> BoxFuture<'_, Result<bool, StepError>> {
        async { Ok(*cx.gone.lock()) }.boxed()
    }

    fn deadline(_: &Things) -> Duration {
        Duration::from_mins(1)
    }
}

fn network(cx: &Things, st: &mut Built) -> Result<(), StepError> {
    cx.act("network", true)?;
    st.network = Some("10.0.0.0".to_owned());
    Ok(())
}

fn disk(cx: &Things, st: &mut Built) -> Result<(), StepError> {
    cx.act("disk", true)?;
    st.disk = Some("d".to_owned());
    Ok(())
}

fn answers(cx: &Things) -> Wait {
    if *cx.answered.lock() {
        return Wait::Over;
    }
    Wait::Pending { on: "the answer".to_owned(), recheck: Duration::from_secs(5) }
}

fn publish(cx: &Things, st: &mut Built) -> Result<(), StepError> {
    cx.act("published", true)?;
    st.published = true;
    Ok(())
}

impl World<Build> for Things {
    fn cx(&self) -> &Things {
        self
    }

    fn begin(&self) -> Built {
        Built::default()
    }

    fn inventory(&self) -> BTreeSet<String> {
        self.exist.lock().clone()
    }

    fn turn(&self) {
        *self.answered.lock() = true;
    }
}

struct Bench {
    things: Things,
    journal: Arc<MemoryJournal>,
    clock: Arc<ManualClock>,
    driver: Driver<Build>,
    seen: Arc<Mutex<Vec<String>>>,
}

fn bench() -> Bench {
    let (journal, clock) = (MemoryJournal::new(), ManualClock::at(Timestamp::UNIX_EPOCH));
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let reported = seen.clone();
    let driver = Driver::new(journal.clone(), clock.clone())
        .with_observer(move |_, progress| reported.lock().push(format!("{progress:?}")));
    Bench { things: Things::default(), journal, clock, driver, seen }
}

impl Bench {
    async fn advance(&self) -> Advance<Built> {
        self.driver.advance("k", &self.things, Built::default, None).await.unwrap()
    }

    fn fail(&self, step: &'static str, error: StepError) {
        self.things.errors.lock().push((step, error));
    }

    fn later(&self, seconds: i64) {
        self.clock.advance(SignedDuration::from_secs(seconds));
    }
}

#[tokio::test(start_paused = true)]
async fn every_saga_passes_the_triple_test() {
    let mut proofs = Proofs::new();
    proofs.prove::<Build, Things>(Things::default).await;
    proofs.cover(&Registry::default().with::<Build>());
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "sagas without the triple test")]
async fn a_saga_without_the_test_is_named() {
    Proofs::new().cover(&Registry::default().with::<Build>());
}

#[tokio::test(start_paused = true)]
async fn a_stage_costs_one_write_and_steps_of_a_group_keep_each_others_results() {
    let bench = bench();
    *bench.things.answered.lock() = true;
    let Advance::Completed(state) = bench.advance().await else { panic!("not completed") };
    assert_eq!(state.network.as_deref(), Some("10.0.0.0"));
    assert_eq!(state.disk.as_deref(), Some("d"));
    assert!(state.published);
    assert_eq!(bench.journal.writes(), 1 + 4);
    assert!(matches!(bench.advance().await, Advance::Completed(_)));
    assert_eq!(bench.journal.writes(), 1 + 4, "a completed saga writes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_poll_parks_the_saga_until_what_it_waits_for_has_happened() {
    let bench = bench();
    let parked = bench.advance().await;
    let (step, reason) = ("answers".to_owned(), "the answer".to_owned());
    assert_eq!(parked, Advance::Parked { step, reason, after: Duration::from_secs(5) });
    let writes = bench.journal.writes();
    bench.advance().await;
    assert_eq!(bench.journal.writes(), writes, "waiting is written once");
    *bench.things.answered.lock() = true;
    assert!(matches!(bench.advance().await, Advance::Completed(_)));
    assert_eq!(*bench.things.order.lock(), ["names", "network", "disk", "published"]);
}

#[tokio::test(start_paused = true)]
async fn a_transient_failure_repeats_only_the_steps_that_are_not_done() {
    let bench = bench();
    *bench.things.answered.lock() = true;
    bench.fail("disk", StepError::retry("disk d: 429"));
    let Advance::Parked { step, reason, after } = bench.advance().await else { panic!("not parked") };
    assert_eq!((step.as_str(), reason.as_str()), ("disk", "disk d: 429"));
    assert_eq!(after, Duration::from_millis(50));
    assert!(matches!(bench.advance().await, Advance::Completed(_)));
    assert_eq!(*bench.things.order.lock(), ["names", "network", "disk", "published"]);
    assert!(bench.seen.lock().iter().any(|line| line.contains("Waiting(\"disk\", \"disk d: 429\")")));
}

#[tokio::test(start_paused = true)]
async fn a_step_past_its_deadline_fails_with_its_last_cause_and_is_undone_in_reverse() {
    let bench = bench();
    bench.fail("disk", StepError::retry("disk d: no quota"));
    bench.fail("disk", StepError::retry("disk d: no quota"));
    assert!(matches!(bench.advance().await, Advance::Parked { .. }));
    bench.later(59);
    let Advance::Parked { after, .. } = bench.advance().await else { panic!("not parked") };
    assert_eq!(after, Duration::from_secs(1), "the next attempt is not later than the deadline");
    bench.fail("disk", StepError::retry("disk d: no quota"));
    bench.later(1);
    let Advance::Failing { step, reason } = bench.advance().await else { panic!("not failing") };
    assert_eq!((step.as_str(), reason.as_str()), ("disk", "not done within 60s: disk d: no quota"));
    assert!(matches!(bench.advance().await, Advance::Failed { .. }));
    assert_eq!(*bench.things.order.lock(), ["names", "network", "-disk", "-network", "-names"]);
    assert!(bench.things.exist.lock().is_empty());
    assert!(matches!(bench.advance().await, Advance::Failed { .. }));
}

#[tokio::test(start_paused = true)]
async fn an_error_that_follows_from_an_earlier_one_does_not_hide_it() {
    let bench = bench();
    bench.fail("disk", StepError::retry("disk d: 429"));
    bench.fail("disk", StepError::retry("not sent: throttled").that_follows());
    assert!(matches!(bench.advance().await, Advance::Parked { .. }));
    bench.later(60);
    let Advance::Failing { reason, .. } = bench.advance().await else { panic!("not failing") };
    assert_eq!(reason, "not done within 60s: disk d: 429");
}

#[tokio::test(start_paused = true)]
async fn a_hanging_step_ends_at_its_deadline() {
    struct Hangs;
    impl Saga for Hangs {
        const NAME: &'static str = "test.hangs";
        const VERSION: u16 = 1;
        type State = Built;
        type Cx = ();
        fn steps() -> Steps<Self> {
            Steps::<Self>::new()
                .step("hang", |(), _| std::future::pending().boxed())
                .within(Duration::from_secs(5))
        }
    }
    let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
    let driver = Driver::<Hangs>::new(MemoryJournal::new(), clock.clone());
    let began = tokio::time::Instant::now();
    assert!(matches!(driver.advance("k", &(), Built::default, None).await, Ok(Advance::Parked { .. })));
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    clock.advance(SignedDuration::from_secs(5));
    let Ok(Advance::Failing { reason, .. }) = driver.advance("k", &(), Built::default, None).await else {
        panic!("not failing")
    };
    assert!(reason.starts_with("not done within 5s: no result in time"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_undo_is_stuck_until_it_is_resumed() {
    let bench = bench();
    bench.fail("disk", StepError::terminal("disk d: refused"));
    assert!(matches!(bench.advance().await, Advance::Failing { .. }));
    bench.fail("network", StepError::terminal("network in use"));
    let Advance::Stuck { step, reason } = bench.advance().await else { panic!("not stuck") };
    assert_eq!((step.as_str(), reason.as_str()), ("network", "undo failed: network in use"));
    assert!(matches!(bench.advance().await, Advance::Stuck { .. }));
    assert!(bench.driver.resume("k", None).await.unwrap());
    assert!(matches!(bench.advance().await, Advance::Failed { .. }));
    assert!(bench.things.exist.lock().is_empty());
    assert!(!bench.driver.resume("k", None).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn after_the_commit_point_a_failure_is_stuck_and_goes_forward_when_resumed() {
    let bench = bench();
    *bench.things.answered.lock() = true;
    bench.fail("published", StepError::terminal("refused"));
    assert!(matches!(bench.advance().await, Advance::Stuck { .. }));
    assert!(bench.things.exist.lock().contains("network"));
    assert!(bench.driver.resume("k", None).await.unwrap());
    assert!(matches!(bench.advance().await, Advance::Completed(_)));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_gone_ends_the_retries_without_an_undo() {
    let bench = bench();
    bench.fail("disk", StepError::retry("429"));
    bench.advance().await;
    *bench.things.gone.lock() = true;
    assert_eq!(bench.advance().await, Advance::Gone);
    assert!(bench.things.exist.lock().contains("network"));
}

#[tokio::test(start_paused = true)]
async fn a_journal_of_other_steps_is_left_as_it_is() {
    let bench = bench();
    bench.advance().await;
    bench.journal.change("k", Build::NAME, |record| record.version = 3);
    let order = bench.things.order.lock().clone();
    assert!(matches!(bench.advance().await, Advance::Unknown { reason } if reason.contains("version 3")));
    bench.journal.change("k", Build::NAME, |record| {
        record.version = 2;
        record.done.push("renamed".to_owned());
    });
    assert!(matches!(bench.advance().await, Advance::Unknown { reason } if reason == "step `renamed`"));
    assert_eq!(*bench.things.order.lock(), order);
}

#[tokio::test(start_paused = true)]
async fn a_second_driver_of_the_same_key_fails_at_its_next_write() {
    let bench = bench();
    bench.journal.fail_write(1, Moment::After);
    let first = bench.driver.advance("k", &bench.things, Built::default, None).await;
    assert!(matches!(first, Err(DriveError::Journal(JournalError::Failed { .. }))));
    let read = bench.journal.load("k", Build::NAME).await.unwrap().unwrap();
    bench.journal.change("k", Build::NAME, |_| {});
    let late = bench.journal.store("k", &read.record, Some(&read.revision), None).await;
    assert!(matches!(late, Err(JournalError::Conflict { .. })));
}
