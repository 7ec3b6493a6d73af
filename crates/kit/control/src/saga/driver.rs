//! Runs the steps of a saga for one key.

use std::sync::Arc;
use std::time::Duration;

use aro_base::{Class, Classify as _, SharedClock, Timestamp};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use serde_json::Value;

use super::journal::{Entry, Journal, JournalError, Phase, Record, Revision, Waiting};
use super::steps::{Act, Stage, Step, StepFn, Wait};
use super::{Saga, StepError, Steps};
use crate::{FencingToken, Outcome};

/// How a driver retries.
#[derive(Debug, Clone, Copy)]
pub struct DriverOptions {
    /// The shortest time between two attempts of a step. It grows with the time that the step has taken.
    pub min_delay: Duration,
    /// The longest time between two attempts of a step.
    pub max_delay: Duration,
}

impl Default for DriverOptions {
    fn default() -> Self {
        Self { min_delay: Duration::from_millis(50), max_delay: Duration::from_secs(15) }
    }
}

/// What a driver reports while it runs: each change once, not each attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A step is about to run for the first time.
    Started(&'a str),
    /// A step is done.
    Done(&'a str),
    /// A step waits, or failed and is repeated.
    Waiting(&'a str, &'a str),
    /// A step failed for good.
    Failed(&'a str, &'a str),
    /// A step is undone.
    Undone(&'a str),
    /// The saga is stuck at a step.
    Stuck(&'a str, &'a str),
}

/// Receives the progress of a key.
pub type Observer = Arc<dyn Fn(&str, &Progress<'_>) + Send + Sync>;

/// Where a saga stands after [`Driver::advance`].
#[derive(Debug, Clone, PartialEq)]
pub enum Advance<T> {
    /// Every step is done.
    Completed(T),
    /// A step waits. Advance again after this long, or when something changed.
    Parked {
        /// The step.
        step: String,
        /// What it waits for, or why its last attempt failed.
        reason: String,
        /// The latest time of the next advance.
        after: Duration,
    },
    /// A step failed for good, and this is recorded. The next advance undoes; record the failure before.
    Failing {
        /// The step.
        step: String,
        /// Why.
        reason: String,
    },
    /// A step failed, and everything is undone.
    Failed {
        /// The step.
        step: String,
        /// Why.
        reason: String,
    },
    /// The saga goes neither forward nor back until [`Driver::resume`].
    Stuck {
        /// The step.
        step: String,
        /// Why.
        reason: String,
    },
    /// There is nothing left to do this for; the journal stays as it is.
    Gone,
    /// The journal was written by steps that are not these; it stays as it is.
    Unknown {
        /// What is not known.
        reason: String,
    },
}

impl<T> Advance<T> {
    /// How a reconciler's pass ends.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Completed(_)
            | Self::Failed { .. }
            | Self::Stuck { .. }
            | Self::Gone
            | Self::Unknown { .. } => Outcome::Settled,
            Self::Parked { after, .. } => Outcome::RequeueAfter(*after),
            Self::Failing { .. } => Outcome::RequeueAfter(Duration::ZERO),
        }
    }
}

/// Why a saga was not advanced.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The journal was not read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The state cannot be written as a JSON object, or read back.
    #[error("the state of saga `{saga}` of `{key}` cannot be kept")]
    State {
        /// The saga.
        saga: &'static str,
        /// The key.
        key: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

impl aro_base::Classify for DriveError {
    fn class(&self) -> Class {
        match self {
            Self::Journal(error) => error.class(),
            Self::State { .. } => Class::Terminal,
        }
    }
}

/// Runs one kind of saga.
pub struct Driver<S: Saga> {
    steps: Steps<S>,
    journal: Arc<dyn Journal>,
    clock: SharedClock,
    options: DriverOptions,
    observer: Option<Observer>,
    #[cfg(any(test, feature = "testing"))]
    pub(super) fault: Option<super::testing::Fault>,
}

/// One run over a key.
struct Run<'a, S: Saga> {
    driver: &'a Driver<S>,
    key: &'a str,
    cx: &'a S::Cx,
    token: Option<FencingToken>,
    record: Record,
    revision: Option<Revision>,
    state: S::State,
}

impl<S: Saga> Driver<S> {
    /// A driver over a journal.
    pub fn new(journal: Arc<dyn Journal>, clock: SharedClock) -> Self {
        Self {
            steps: S::steps(),
            journal,
            clock,
            options: DriverOptions::default(),
            observer: None,
            #[cfg(any(test, feature = "testing"))]
            fault: None,
        }
    }

    /// Sets the delays.
    #[must_use]
    pub fn with_options(self, options: DriverOptions) -> Self {
        Self { options, ..self }
    }

    /// Reports progress.
    #[must_use]
    pub fn with_observer(self, observer: impl Fn(&str, &Progress<'_>) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Arc::new(observer)), ..self }
    }

    /// Reads where a saga of a key stands.
    pub async fn look(&self, key: &str) -> Result<Option<Record>, JournalError> {
        Ok(self.journal.load(key, S::NAME).await?.map(|entry| entry.record))
    }

    /// Removes the journal of a key: the saga may then begin anew.
    pub async fn forget(&self, key: &str, token: Option<FencingToken>) -> Result<(), JournalError> {
        self.journal.remove(key, S::NAME, token).await
    }

    /// Lets a stuck saga try again, in the direction in which it stopped. Returns whether it was stuck.
    pub async fn resume(&self, key: &str, token: Option<FencingToken>) -> Result<bool, JournalError> {
        let Some(Entry { mut record, revision }) = self.journal.load(key, S::NAME).await? else {
            return Ok(false);
        };
        let Phase::Stuck { undoing, .. } = record.phase else { return Ok(false) };
        record.phase = match undoing {
            Some(Waiting { step, reason }) => Phase::Undoing { step, reason },
            None => Phase::Running,
        };
        record.since = self.clock.now();
        record.waiting = None;
        self.journal.store(key, &record, Some(&revision), token).await?;
        Ok(true)
    }

    /// Runs the saga of a key until it ends or waits. `begin` makes the first state if there is no journal yet.
    pub async fn advance(
        &self,
        key: &str,
        cx: &S::Cx,
        begin: impl FnOnce() -> S::State + Send,
        token: Option<FencingToken>,
    ) -> Result<Advance<S::State>, DriveError> {
        let mut run = match self.journal.load(key, S::NAME).await? {
            Some(Entry { record, revision }) => {
                if let Some(reason) = self.unknown(&record) {
                    return Ok(Advance::Unknown { reason });
                }
                let state = serde_json::from_value(record.state.clone());
                let state = state.map_err(|source| unkept::<S>(key, source))?;
                Run { driver: self, key, cx, token, record, revision: Some(revision), state }
            }
            None => self.begin(key, cx, begin(), token).await?,
        };
        run.run().await
    }

    async fn begin<'a>(
        &'a self,
        key: &'a str,
        cx: &'a S::Cx,
        state: S::State,
        token: Option<FencingToken>,
    ) -> Result<Run<'a, S>, DriveError> {
        let record = Record {
            saga: S::NAME.to_owned(),
            version: S::VERSION,
            phase: Phase::Running,
            done: Vec::new(),
            undone: Vec::new(),
            since: self.clock.now(),
            waiting: None,
            state: serde_json::to_value(&state).map_err(|source| unkept::<S>(key, source))?,
        };
        let mut run = Run { driver: self, key, cx, token, record, revision: None, state };
        run.save().await?;
        run.report_stage();
        Ok(run)
    }

    fn unknown(&self, record: &Record) -> Option<String> {
        if record.version != S::VERSION {
            return Some(format!("version {} of the steps; this is {}", record.version, S::VERSION));
        }
        let known = self.steps.names();
        let mut recorded = record.done.iter().chain(&record.undone);
        let unknown = recorded.find(|name| !known.contains(&name.as_str()))?;
        Some(format!("step `{unknown}`"))
    }

    fn report(&self, key: &str, progress: &Progress<'_>) {
        if let Some(observer) = &self.observer {
            observer(key, progress);
        }
    }
}

impl<S: Saga> Run<'_, S> {
    async fn run(&mut self) -> Result<Advance<S::State>, DriveError> {
        loop {
            match self.record.phase.clone() {
                Phase::Completed => return Ok(Advance::Completed(self.state.clone())),
                Phase::Failed { step, reason } => return Ok(Advance::Failed { step, reason }),
                Phase::Stuck { step, reason, .. } => return Ok(Advance::Stuck { step, reason }),
                Phase::Undoing { step, reason } => {
                    if let Some(parked) = self.undo(&step, &reason).await? {
                        return Ok(parked);
                    }
                }
                Phase::Running => {
                    let gone = S::gone(self.cx).await;
                    match gone {
                        Ok(true) => return Ok(Advance::Gone),
                        Ok(false) => {}
                        Err(error) => return Ok(self.parked("", error.message(), &error, Duration::MAX)),
                    }
                    if let Some(end) = self.forward().await? {
                        return Ok(end);
                    }
                }
            }
        }
    }

    fn is_done(&self, step: &str) -> bool {
        self.record.done.iter().any(|done| done == step)
    }

    /// The first stage with a step that is not done.
    fn stage(&self) -> Option<&Stage<S>> {
        self.driver.steps.stages.iter().find(|stage| stage.steps.iter().any(|step| !self.is_done(step.name)))
    }

    fn report_stage(&self) {
        for step in self.stage().into_iter().flat_map(|stage| &stage.steps) {
            if !self.is_done(step.name) {
                self.driver.report(self.key, &Progress::Started(step.name));
            }
        }
    }

    /// Runs the present stage once. `None`: it is done.
    async fn forward(&mut self) -> Result<Option<Advance<S::State>>, DriveError> {
        let driver = self.driver;
        let stages = &driver.steps.stages;
        let present = stages.iter().find(|stage| stage.steps.iter().any(|step| !self.is_done(step.name)));
        let Some(stage) = present else {
            self.record.phase = Phase::Completed;
            self.save().await?;
            return Ok(None);
        };
        let mut pending: Vec<&Step<S>> = Vec::new();
        for step in &stage.steps {
            if !self.is_done(step.name) {
                pending.push(step);
            }
        }
        let elapsed = elapsed(self.record.since, driver.clock.now());
        let results = self.attempt(&pending, elapsed).await;
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        let base = serde_json::to_value(&self.state).map_err(|source| unkept::<S>(self.key, source))?;
        let mut merged = base.clone();
        for (step, result) in results {
            match result {
                Ok((after, None)) => {
                    let after = serde_json::to_value(&after);
                    let after = after.map_err(|source| unkept::<S>(self.key, source))?;
                    merge(&base, &mut merged, after);
                    done.push(step.name);
                }
                Ok((_, Some((on, recheck)))) => failed.push((step, StepError::wait(on, recheck))),
                Err(error) => failed.push((step, error)),
            }
        }
        if !done.is_empty() {
            self.state =
                serde_json::from_value(merged.clone()).map_err(|source| unkept::<S>(self.key, source))?;
            self.record.state = merged;
            self.record.done.extend(done.iter().map(|name| (*name).to_owned()));
        }
        if failed.is_empty() {
            self.record.since = driver.clock.now();
            self.record.waiting = None;
            if self.stage().is_none() {
                self.record.phase = Phase::Completed;
            }
            self.save().await?;
            for name in done {
                driver.report(self.key, &Progress::Done(name));
            }
            self.report_stage();
            return Ok(None);
        }
        self.stop(stage.committed, &done, failed).await.map(Some)
    }

    /// Runs steps at once, each on a state of its own, each until its deadline.
    async fn attempt<'s>(
        &self,
        pending: &[&'s Step<S>],
        elapsed: Duration,
    ) -> Vec<(&'s Step<S>, Attempted<S>)> {
        let mut running: FuturesUnordered<_> = pending
            .iter()
            .map(|step| async {
                let within = self.deadline(step).saturating_sub(elapsed);
                (*step, self.attempt_one(step, within).await)
            })
            .collect();
        let mut results = Vec::with_capacity(pending.len());
        while let Some(result) = running.next().await {
            results.push(result);
        }
        results
    }

    async fn attempt_one(&self, step: &Step<S>, within: Duration) -> Attempted<S> {
        let mut state = self.state.clone();
        #[cfg(any(test, feature = "testing"))]
        if let Some(error) = self.driver.fault.as_ref().and_then(|fault| fault.before(step.name)) {
            return Err(error);
        }
        let act = async {
            match step.act {
                Act::Run(act) => act(self.cx, &mut state).await.map(|()| None),
                Act::Poll(poll) => poll(self.cx, &mut state).await.map(|wait| match wait {
                    Wait::Over => None,
                    Wait::Pending { on, recheck } => Some((on, recheck)),
                }),
            }
        };
        let Ok(result) = tokio::time::timeout(within, act).await else {
            let last = self.record.waiting.as_ref().filter(|waiting| waiting.step == step.name);
            let last = last.map_or_else(String::new, |waiting| format!(": {}", waiting.reason));
            // Another step of the stage knows more.
            return Err(StepError::retry(format!("no result in time{last}")).that_follows());
        };
        let pending = result?;
        #[cfg(any(test, feature = "testing"))]
        if let Some(error) = self.driver.fault.as_ref().and_then(|fault| fault.after(step.name)) {
            return Err(error);
        }
        Ok((state, pending))
    }

    fn deadline(&self, step: &Step<S>) -> Duration {
        step.deadline.unwrap_or_else(|| S::deadline(self.cx))
    }

    /// Some steps of a stage are not done: the stage is repeated later, or the saga fails.
    async fn stop(
        &mut self,
        committed: bool,
        done: &[&'static str],
        failed: Vec<(&Step<S>, StepError)>,
    ) -> Result<Advance<S::State>, DriveError> {
        let driver = self.driver;
        let elapsed = elapsed(self.record.since, driver.clock.now());
        let mut parked: Option<Advance<S::State>> = None;
        let mut waiting = None;
        // What only follows from another failure of the stage comes last, so that it hides none.
        let mut failed = failed;
        failed.sort_by_key(|(_, error)| error.follows());
        for (step, error) in &failed {
            let (name, text) = self.cause(step.name, error);
            let left = self.deadline(step).saturating_sub(elapsed);
            let reason = match (error.class(), left.is_zero()) {
                (Class::Terminal, _) => text.clone(),
                (_, true) => format!("not done within {:?}: {text}", self.deadline(step)),
                (_, false) => {
                    waiting.get_or_insert(Waiting { step: name, reason: text.clone() });
                    let next = self.parked(step.name, &text, error, left);
                    parked = Some(parked.map_or(next.clone(), |earlier| sooner(earlier, next)));
                    continue;
                }
            };
            let step = name;
            self.record.waiting = None;
            self.record.since = driver.clock.now();
            self.record.phase = match committed {
                true => Phase::Stuck { step: step.clone(), reason: reason.clone(), undoing: None },
                false => Phase::Undoing { step: step.clone(), reason: reason.clone() },
            };
            self.save().await?;
            self.report_done(done);
            return Ok(if committed {
                driver.report(self.key, &Progress::Stuck(&step, &reason));
                Advance::Stuck { step, reason }
            } else {
                driver.report(self.key, &Progress::Failed(&step, &reason));
                Advance::Failing { step, reason }
            });
        }
        // What it waits for is written when it changes, not with every attempt.
        let changed = self.record.waiting != waiting;
        if changed || !done.is_empty() {
            self.record.waiting = waiting;
            self.save().await?;
            self.report_done(done);
            if let (true, Some(Waiting { step, reason })) = (changed, &self.record.waiting) {
                driver.report(self.key, &Progress::Waiting(step, reason));
            }
        }
        Ok(parked.unwrap_or(Advance::Gone))
    }

    /// The step and the text that are shown of an error.
    fn cause(&self, step: &str, error: &StepError) -> (String, String) {
        match &self.record.waiting {
            Some(earlier) if error.follows() => (earlier.step.clone(), earlier.reason.clone()),
            _ => (step.to_owned(), error.message().to_owned()),
        }
    }

    fn report_done(&self, done: &[&'static str]) {
        for name in done {
            self.driver.report(self.key, &Progress::Done(name));
        }
    }

    /// The next attempt: when the error asks for it, or after a delay that grows with the time spent; never after the deadline.
    fn parked(&self, step: &str, reason: &str, error: &StepError, left: Duration) -> Advance<S::State> {
        let DriverOptions { min_delay, max_delay } = self.driver.options;
        let spent = elapsed(self.record.since, self.driver.clock.now());
        let after = match error.class() {
            Class::Wait(after) => after,
            Class::Retry | Class::Terminal => (spent / 2).clamp(min_delay, max_delay),
        };
        Advance::Parked { step: step.to_owned(), reason: reason.to_owned(), after: after.min(left) }
    }

    /// Undoes one step. `None`: it is undone, or there was nothing to do.
    async fn undo(&mut self, step: &str, reason: &str) -> Result<Option<Advance<S::State>>, DriveError> {
        let driver = self.driver;
        let Some((name, undo)) = self.next_undo() else {
            self.record.phase = Phase::Failed { step: step.to_owned(), reason: reason.to_owned() };
            self.record.waiting = None;
            self.save().await?;
            return Ok(None);
        };
        let mut state = self.state.clone();
        let deadline = S::deadline(self.cx);
        let left = deadline.saturating_sub(elapsed(self.record.since, driver.clock.now()));
        let error =
            match tokio::time::timeout(left.max(driver.options.min_delay), undo(self.cx, &mut state)).await {
                Ok(Ok(())) => {
                    self.record.state =
                        serde_json::to_value(&state).map_err(|source| unkept::<S>(self.key, source))?;
                    self.state = state;
                    self.record.undone.push(name.to_owned());
                    self.record.since = driver.clock.now();
                    self.record.waiting = None;
                    self.save().await?;
                    driver.report(self.key, &Progress::Undone(name));
                    return Ok(None);
                }
                Ok(Err(error)) => error,
                Err(_) => StepError::retry("no result in time"),
            };
        let left = deadline.saturating_sub(elapsed(self.record.since, driver.clock.now()));
        if error.class() != Class::Terminal && !left.is_zero() {
            let waiting = Some(Waiting { step: name.to_owned(), reason: error.message().to_owned() });
            if self.record.waiting != waiting {
                self.record.waiting = waiting;
                self.save().await?;
                driver.report(self.key, &Progress::Waiting(name, error.message()));
            }
            return Ok(Some(self.parked(name, error.message(), &error, left)));
        }
        let undoing = Some(Waiting { step: step.to_owned(), reason: reason.to_owned() });
        let reason = format!("undo failed: {error}");
        self.record.phase = Phase::Stuck { step: name.to_owned(), reason: reason.clone(), undoing };
        self.save().await?;
        driver.report(self.key, &Progress::Stuck(name, &reason));
        Ok(Some(Advance::Stuck { step: name.to_owned(), reason }))
    }

    /// The last step that has an undo and may have had an effect: every step of a stage that began.
    fn next_undo(&self) -> Option<(&'static str, StepFn<S>)> {
        let stages = &self.driver.steps.stages;
        let open = |stage: &Stage<S>| stage.steps.iter().any(|step| !self.is_done(step.name));
        let begun = stages.iter().position(open).map_or(stages.len(), |present| present + 1);
        let steps = stages.get(..begun)?.iter().rev().flat_map(|stage| stage.steps.iter().rev());
        let undone = |name: &str| self.record.undone.iter().any(|undone| undone == name);
        steps.filter(|step| !undone(step.name)).find_map(|step| Some((step.name, step.undo?)))
    }

    async fn save(&mut self) -> Result<(), JournalError> {
        let journal = &self.driver.journal;
        let stored = journal.store(self.key, &self.record, self.revision.as_ref(), self.token).await?;
        self.revision = Some(stored);
        Ok(())
    }
}

fn unkept<S: Saga>(key: &str, source: serde_json::Error) -> DriveError {
    DriveError::State { saga: S::NAME, key: key.to_owned(), source }
}

/// A state after an attempt, and what a poll still waits for.
type Attempted<S> = Result<(<S as Saga>::State, Option<(String, Duration)>), StepError>;

/// Takes over the members that a step changed.
fn merge(base: &Value, merged: &mut Value, after: Value) {
    match (merged, after) {
        (Value::Object(members), Value::Object(after)) => {
            for (name, value) in after {
                if base.get(&name) != Some(&value) {
                    members.insert(name, value);
                }
            }
        }
        (merged, after) => {
            if *base != after {
                *merged = after;
            }
        }
    }
}

fn sooner<T>(one: Advance<T>, other: Advance<T>) -> Advance<T> {
    match (&one, &other) {
        (Advance::Parked { after: first, .. }, Advance::Parked { after: second, .. }) if second < first => {
            other
        }
        _ => one,
    }
}

fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}
