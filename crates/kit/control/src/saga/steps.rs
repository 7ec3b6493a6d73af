//! The steps of a saga.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::BoxFuture;

use super::{Saga, StepError};

/// One act: it may run again, so it looks first and then creates. The same shape undoes it.
pub type StepFn<S> =
    for<'a> fn(&'a <S as Saga>::Cx, &'a mut <S as Saga>::State) -> BoxFuture<'a, Result<(), StepError>>;

/// Looks whether what a step waits for has happened.
pub type PollFn<S> =
    for<'a> fn(&'a <S as Saga>::Cx, &'a mut <S as Saga>::State) -> BoxFuture<'a, Result<Wait, StepError>>;

/// The result of one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// It has happened.
    Over,
    /// Not yet: the saga is parked and looks again after this long, or earlier if its key is enqueued.
    Pending {
        /// What is waited for.
        on: String,
        /// The latest time of the next look.
        recheck: Duration,
    },
}

pub(super) enum Act<S: Saga> {
    Run(StepFn<S>),
    Poll(PollFn<S>),
}

impl<S: Saga> Clone for Act<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Saga> Copy for Act<S> {}

pub(super) struct Step<S: Saga> {
    pub(super) name: &'static str,
    pub(super) act: Act<S>,
    pub(super) undo: Option<StepFn<S>>,
    pub(super) deadline: Option<Duration>,
}

/// Steps that run at once, and whether the saga can be undone after them.
pub(super) struct Stage<S: Saga> {
    pub(super) steps: Vec<Step<S>>,
    /// Reached only after the commit point.
    pub(super) committed: bool,
}

/// The steps of a saga, in order.
pub struct Steps<S: Saga> {
    pub(super) stages: Vec<Stage<S>>,
    committed: bool,
}

impl<S: Saga> Default for Steps<S> {
    fn default() -> Self {
        Self { stages: Vec::new(), committed: false }
    }
}

impl<S: Saga> Steps<S> {
    /// No steps yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a step. Its name is persisted: it is never given to another act.
    #[must_use]
    pub fn step(self, name: &'static str, act: StepFn<S>) -> Self {
        self.stage(vec![Step { name, act: Act::Run(act), undo: None, deadline: None }])
    }

    /// Adds a step that waits. The saga is parked between two looks and holds no worker.
    #[must_use]
    pub fn wait(self, name: &'static str, poll: PollFn<S>, deadline: Duration) -> Self {
        self.stage(vec![Step { name, act: Act::Poll(poll), undo: None, deadline: Some(deadline) }])
    }

    /// Adds steps that run at once. Each gets the state as it was before the stage; they set different members of it.
    #[must_use]
    pub fn together(self, group: Self) -> Self {
        self.stage(group.stages.into_iter().flat_map(|stage| stage.steps).collect())
    }

    /// How the last step is undone. It runs also if the step failed half-way, so it looks first.
    #[must_use]
    pub fn undo(mut self, undo: StepFn<S>) -> Self {
        if let Some(step) = self.last() {
            step.undo = Some(undo);
        }
        self
    }

    /// How long the last step may take, with all its attempts.
    #[must_use]
    pub fn within(mut self, deadline: Duration) -> Self {
        if let Some(step) = self.last() {
            step.deadline = Some(deadline);
        }
        self
    }

    /// From here on the saga goes forward only.
    #[must_use]
    pub fn commit_point(mut self) -> Self {
        self.committed = true;
        self
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.stages.iter().flat_map(|stage| &stage.steps).map(|step| step.name).collect()
    }

    /// A name that two steps share: their journals could not be told apart.
    pub fn repeated_name(&self) -> Option<&'static str> {
        let mut seen = BTreeSet::new();
        self.names().into_iter().find(|name| !seen.insert(*name))
    }

    fn stage(mut self, steps: Vec<Step<S>>) -> Self {
        self.stages.push(Stage { steps, committed: self.committed });
        self
    }

    fn last(&mut self) -> Option<&mut Step<S>> {
        self.stages.last_mut().and_then(|stage| stage.steps.last_mut())
    }
}
