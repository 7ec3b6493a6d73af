//! The triple test that every saga passes: it works; every step may run twice; a failure at every step unwinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aro_base::{Class, ManualClock, SharedClock, SignedDuration, Timestamp};
use async_trait::async_trait;
use parking_lot::Mutex;

use super::journal::{Entry, Journal, JournalError, Record, Revision};
use super::{Advance, Driver, Registry, Saga, StepError};
use crate::FencingToken;

/// When an injected failure strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before the step had an effect.
    Before,
    /// After the step had its effect, and before that is known.
    After,
}

/// A terminal failure of one step.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// The step.
    pub step: &'static str,
    /// When.
    pub moment: Moment,
}

impl Fault {
    pub(super) fn before(&self, step: &str) -> Option<StepError> {
        self.strikes(step, Moment::Before)
    }

    pub(super) fn after(&self, step: &str) -> Option<StepError> {
        self.strikes(step, Moment::After)
    }

    fn strikes(&self, step: &str, moment: Moment) -> Option<StepError> {
        (self.step == step && self.moment == moment).then(|| StepError::terminal("injected"))
    }
}

impl<S: Saga> Driver<S> {
    /// Lets a step fail.
    #[must_use]
    pub fn with_fault(mut self, step: &'static str, moment: Moment) -> Self {
        self.fault = Some(Fault { step, moment });
        self
    }
}

/// A journal in memory. Writes fail by number, as if the process died before or after them.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    entries: Mutex<BTreeMap<(String, String), (Record, u64)>>,
    writes: AtomicUsize,
    fault: Mutex<Option<(usize, Moment)>>,
}

impl MemoryJournal {
    /// An empty journal.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Lets the write of this number (from 0) fail once: `Before` it is stored, or `After`.
    pub fn fail_write(&self, number: usize, moment: Moment) {
        *self.fault.lock() = Some((number, moment));
    }

    /// How many writes there were.
    pub fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    /// Changes a record behind the driver's back.
    pub fn change(&self, key: &str, saga: &str, change: impl FnOnce(&mut Record)) {
        if let Some((record, revision)) = self.entries.lock().get_mut(&(key.to_owned(), saga.to_owned())) {
            change(record);
            *revision += 1;
        }
    }
}

fn lost(key: &str) -> JournalError {
    JournalError::Failed { key: key.to_owned(), class: Class::Retry, source: "the process died".into() }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn load(&self, key: &str, saga: &str) -> Result<Option<Entry>, JournalError> {
        let entries = self.entries.lock();
        let found = entries.get(&(key.to_owned(), saga.to_owned()));
        Ok(found.map(|(record, revision)| Entry {
            record: record.clone(),
            revision: Revision(revision.to_string()),
        }))
    }

    async fn store(
        &self,
        key: &str,
        record: &Record,
        read: Option<&Revision>,
        _token: Option<FencingToken>,
    ) -> Result<Revision, JournalError> {
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        let fault = self.fault.lock().take_if(|(at, _)| *at == number).map(|(_, moment)| moment);
        if fault == Some(Moment::Before) {
            return Err(lost(key));
        }
        let mut entries = self.entries.lock();
        let name = (key.to_owned(), record.saga.clone());
        let present = entries.get(&name).map(|(_, revision)| *revision);
        if present.map(|revision| revision.to_string()) != read.map(|read| read.0.clone()) {
            return Err(JournalError::Conflict { key: key.to_owned() });
        }
        let next = present.unwrap_or_default() + 1;
        entries.insert(name, (record.clone(), next));
        match fault {
            Some(_) => Err(lost(key)),
            None => Ok(Revision(next.to_string())),
        }
    }

    async fn remove(&self, key: &str, saga: &str, _: Option<FencingToken>) -> Result<(), JournalError> {
        self.entries.lock().remove(&(key.to_owned(), saga.to_owned()));
        Ok(())
    }
}

/// What a saga acts on in a test.
pub trait World<S: Saga>: Send + Sync {
    /// What the steps act with.
    fn cx(&self) -> &S::Cx;

    /// The first state.
    fn begin(&self) -> S::State;

    /// Everything that exists, by name. Undone sagas leave what was there before.
    fn inventory(&self) -> BTreeSet<String>;

    /// Called whenever the saga waits: makes happen what it waits for.
    fn turn(&self) {}
}

/// The sagas that passed the triple test.
#[derive(Debug, Default)]
pub struct Proofs(BTreeSet<&'static str>);

const KEY: &str = "key";
/// More advances than any saga needs.
const MOST: usize = 500;

impl Proofs {
    /// No saga yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs the triple test. `make` makes a fresh world.
    ///
    /// # Panics
    ///
    /// If the saga fails the test.
    pub async fn prove<S: Saga, W: World<S>>(&mut self, make: impl Fn() -> W) {
        assert_eq!(S::steps().repeated_name(), None, "{}: two steps of one name", S::NAME);
        let expected = works::<S, W>(&make).await;
        runs_twice::<S, W>(&make, &expected).await;
        unwinds::<S, W>(&make).await;
        self.0.insert(S::NAME);
    }

    /// # Panics
    ///
    /// If a saga of the registry was not proven.
    pub fn cover(&self, registry: &Registry) {
        let missing: Vec<&str> =
            registry.sagas().iter().map(|saga| saga.name).filter(|name| !self.0.contains(name)).collect();
        assert!(missing.is_empty(), "sagas without the triple test: {missing:?}");
    }
}

fn clock() -> (Arc<ManualClock>, SharedClock) {
    let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
    (clock.clone(), clock)
}

#[expect(clippy::panic, reason = "a test that cannot go on fails by panicking")]
/// Advances until the saga ends. Errors of the journal are retried, as a restarted process does.
async fn drive<S: Saga, W: World<S>>(
    driver: &Driver<S>,
    world: &W,
    clock: &ManualClock,
) -> Advance<S::State> {
    for _ in 0..MOST {
        match driver.advance(KEY, world.cx(), || world.begin(), None).await {
            Ok(Advance::Parked { .. }) => {
                world.turn();
                clock.advance(SignedDuration::from_millis(100));
            }
            Ok(Advance::Failing { .. }) | Err(_) => {}
            Ok(end) => return end,
        }
    }
    panic!("{}: not at an end after {MOST} advances", S::NAME);
}

async fn works<S: Saga, W: World<S>>(make: &impl Fn() -> W) -> BTreeSet<String> {
    let (world, (manual, clock)) = (make(), clock());
    let before = world.inventory();
    let driver = Driver::<S>::new(MemoryJournal::new(), clock);
    let end = drive(&driver, &world, &manual).await;
    assert!(matches!(end, Advance::Completed(_)), "{}: {}", S::NAME, shown(&end));
    let after = world.inventory();
    assert_ne!(before, after, "{}: it has no effect that could be tested", S::NAME);
    after
}

async fn runs_twice<S: Saga, W: World<S>>(make: &impl Fn() -> W, expected: &BTreeSet<String>) {
    let (count, moments) = (S::steps().names().len() + 2, [Moment::Before, Moment::After]);
    for (number, moment) in (0..count).flat_map(|number| moments.map(|moment| (number, moment))) {
        let (world, (manual, clock)) = (make(), clock());
        let journal = MemoryJournal::new();
        journal.fail_write(number, moment);
        let end = drive(&Driver::<S>::new(journal, clock), &world, &manual).await;
        assert!(matches!(end, Advance::Completed(_)), "{}, write {number}: {}", S::NAME, shown(&end));
        assert_eq!(world.inventory(), *expected, "{}: after a crash at write {number}", S::NAME);
    }
}

async fn unwinds<S: Saga, W: World<S>>(make: &impl Fn() -> W) {
    for stage in &S::steps().stages {
        for (step, moment) in stage
            .steps
            .iter()
            .flat_map(|step| [Moment::Before, Moment::After].map(|moment| (step.name, moment)))
        {
            let (world, (manual, clock)) = (make(), clock());
            let before = world.inventory();
            let driver = Driver::<S>::new(MemoryJournal::new(), clock).with_fault(step, moment);
            let end = drive(&driver, &world, &manual).await;
            if stage.committed {
                assert!(matches!(end, Advance::Stuck { .. }), "{} at {step}: {}", S::NAME, shown(&end));
            } else {
                assert!(matches!(end, Advance::Failed { .. }), "{} at {step}: {}", S::NAME, shown(&end));
                assert_eq!(world.inventory(), before, "{}: {moment:?} {step} failed", S::NAME);
            }
        }
    }
}

fn shown<T>(end: &Advance<T>) -> String {
    match end {
        Advance::Completed(_) => "completed".to_owned(),
        Advance::Parked { step, reason, .. } => format!("parked at {step}: {reason}"),
        Advance::Failing { step, reason } => format!("failing at {step}: {reason}"),
        Advance::Failed { step, reason } => format!("failed at {step}: {reason}"),
        Advance::Stuck { step, reason } => format!("stuck at {step}: {reason}"),
        Advance::Gone => "gone".to_owned(),
        Advance::Unknown { reason } => format!("unknown {reason}"),
    }
}
