//! Ownership of tasks: nothing is spawned outside a scope, and closing a scope waits for what it owns.
//!
//! Scopes form a tree. Each has a [`Phase`], and closing a (sub)tree goes through the phases in order: the
//! phase's scopes are cancelled, their tasks are waited for, then comes the next phase. So a listener stops
//! accepting before requests drain, and the store outlives everyone who writes to it. All phases share one grace
//! period; who is late is named ([`Laggards`]) and aborted.
//!
//! What a task's end means is decided by its [`TaskKind`], not by the code that spawned it. A panic is an error.
//!
//! Invariants:
//! * After [`Scope::close`] returned, no task of the subtree runs, and none can be spawned.
//! * A failure that asks to stop a role or the process is reported by the nearest role scope or the root
//!   ([`Scope::failed`]); the owner of that scope closes it. A scope never closes itself, since a task cannot
//!   wait for itself.

mod kind;
mod laggards;
mod task;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::telemetry::capture::LogSink;

pub use kind::{OnCancel, OnError, Phase, TaskKind};
pub use laggards::Laggards;
pub use task::Failure;

/// What every phase gets even when the grace period is over, so that only the guilty are named.
const LAST_CHANCE: Duration = Duration::from_millis(100);

/// Owns tasks and child scopes. Cloning gives another handle to the same scope.
#[derive(Clone)]
pub struct Scope(Arc<Inner>);

struct Inner {
    path: String,
    phase: Phase,
    /// Whether failures that stop a role end here.
    role: bool,
    token: CancellationToken,
    closed: AtomicBool,
    next_task: AtomicU64,
    tasks: Mutex<HashMap<u64, TaskEntry>>,
    /// Told whenever a task ends.
    ended: Notify,
    children: Mutex<Vec<Weak<Inner>>>,
    parent: Option<Scope>,
    /// Where the logs of its tasks and those of its children go as well.
    sink: Option<Arc<dyn LogSink>>,
    failure: watch::Sender<Option<Arc<Failure>>>,
}

struct TaskEntry {
    name: Cow<'static, str>,
    /// `None` between registering and spawning.
    abort: Option<AbortHandle>,
}

impl Scope {
    /// The root of a stack's tree; failures that stop the process end here.
    pub fn root(name: impl Into<String>) -> Self {
        Self::make(name.into(), Phase::Roles, true, None, None)
    }

    /// A scope inside this one, cancelled in its phase.
    pub fn child(&self, phase: Phase, name: &str) -> Self {
        self.nested(phase, name, false, self.0.sink.clone())
    }

    /// A scope for a role: failures that stop a role end here.
    pub fn role(&self, name: &str) -> Self {
        self.nested(Phase::Roles, name, true, self.0.sink.clone())
    }

    /// A scope for a role whose log lines are captured: those of its tasks and of its children's.
    pub fn role_logging(&self, name: &str, sink: Arc<dyn LogSink>) -> Self {
        self.nested(Phase::Roles, name, true, Some(sink))
    }

    fn nested(&self, phase: Phase, name: &str, role: bool, sink: Option<Arc<dyn LogSink>>) -> Self {
        let child = Self::make(format!("{}/{name}", self.0.path), phase, role, Some(self.clone()), sink);
        let mut children = lock(&self.0.children);
        children.retain(|known| known.strong_count() > 0);
        if self.0.closed.load(Ordering::Acquire) {
            child.0.closed.store(true, Ordering::Release);
            child.0.token.cancel();
        }
        children.push(Arc::downgrade(&child.0));
        child
    }

    fn make(
        path: String,
        phase: Phase,
        role: bool,
        parent: Option<Self>,
        sink: Option<Arc<dyn LogSink>>,
    ) -> Self {
        Self(Arc::new(Inner {
            path,
            phase,
            role,
            token: CancellationToken::new(),
            closed: AtomicBool::new(false),
            next_task: AtomicU64::new(0),
            tasks: Mutex::default(),
            ended: Notify::new(),
            children: Mutex::default(),
            parent,
            sink,
            failure: watch::Sender::new(None),
        }))
    }

    /// The names from the root to here, joined with `/`.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// Returns when this scope is cancelled, that is when its phase is stopped.
    pub fn cancelled(&self) -> WaitForCancellationFuture<'_> {
        self.0.token.cancelled()
    }

    /// Whether this scope has been told to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.token.is_cancelled()
    }

    /// The token behind [`Scope::cancelled`], for code that wants to own one.
    pub fn token(&self) -> &CancellationToken {
        &self.0.token
    }

    /// How many tasks this scope itself owns now.
    pub fn task_count(&self) -> usize {
        lock(&self.0.tasks).len()
    }

    /// Returns the first failure that asked to stop this role (or, on the root, the process).
    pub async fn failed(&self) -> Arc<Failure> {
        let mut failure = self.0.failure.subscribe();
        loop {
            if let Some(failure) = failure.borrow_and_update().clone() {
                return failure;
            }
            // The sender lives in `self`: this cannot fail while we wait.
            let _ = failure.changed().await;
        }
    }

    /// Stops the whole subtree in order and waits for it, for `grace` (and a moment per phase that is left); then
    /// aborts and names who is left.
    pub async fn close(&self, grace: Duration) -> Result<(), Laggards> {
        let deadline = Instant::now() + grace;
        let mut laggards = Vec::new();
        for phase in Phase::ALL {
            // Earlier phases may have used up the grace period; a task that stops at once is not late.
            let deadline = deadline.max(Instant::now() + LAST_CHANCE);
            // Scopes may appear while we wait (a request opens one); look again until there is nothing new.
            loop {
                let scopes = self.subtree(phase);
                let mut waited = false;
                for scope in &scopes {
                    scope.token.cancel();
                }
                for scope in &scopes {
                    waited |= scope.wait_until_idle(deadline, &mut laggards).await;
                }
                if !waited {
                    break;
                }
            }
        }
        self.seal();
        if laggards.is_empty() { Ok(()) } else { Err(Laggards::new(laggards)) }
    }

    /// This scope and everything below it that stops in `phase`.
    fn subtree(&self, phase: Phase) -> Vec<Arc<Inner>> {
        let mut found = Vec::new();
        let mut open = vec![self.0.clone()];
        while let Some(scope) = open.pop() {
            open.extend(lock(&scope.children).iter().filter_map(Weak::upgrade));
            if scope.phase == phase {
                found.push(scope);
            }
        }
        found
    }

    fn seal(&self) {
        let mut open = vec![self.0.clone()];
        while let Some(scope) = open.pop() {
            scope.closed.store(true, Ordering::Release);
            scope.token.cancel();
            // Whatever slipped in between the last look and the seal.
            for entry in lock(&scope.tasks).values() {
                entry.abort.as_ref().inspect(|handle| handle.abort());
            }
            open.extend(lock(&scope.children).iter().filter_map(Weak::upgrade));
        }
    }

    /// Where a failure of the given reach ends: the nearest role, or the root.
    fn boundary(&self, reach: OnError) -> &Self {
        let mut scope = self;
        while let Some(parent) = &scope.0.parent {
            if scope.0.role && reach == OnError::StopRole {
                break;
            }
            scope = parent;
        }
        scope
    }
}

impl Inner {
    /// Waits for this scope's own tasks; at the deadline aborts them and notes their names. Tells whether there
    /// was anything to wait for.
    async fn wait_until_idle(&self, deadline: Instant, laggards: &mut Vec<String>) -> bool {
        let mut waited = false;
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if lock(&self.tasks).is_empty() {
                return waited;
            }
            waited = true;
            if tokio::time::timeout_at(deadline, ended).await.is_err() {
                for (_, entry) in lock(&self.tasks).drain() {
                    entry.abort.as_ref().inspect(|handle| handle.abort());
                    laggards.push(format!("{}/{}", self.path, entry.name));
                }
                return true;
            }
        }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("path", &self.0.path)
            .field("phase", &self.0.phase)
            .finish_non_exhaustive()
    }
}

/// The lists are consistent after every statement, so a panic while one was locked leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
