//! One task: how it is started, how its end is booked.

use std::any::Any;
use std::borrow::Cow;
use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use aro_base::chain;
use futures::FutureExt as _;

use super::{OnCancel, OnError, Scope, TaskEntry, TaskKind, lock};
use crate::telemetry::capture::logging_to;

/// Why a task ended other than well.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It returned an error.
    #[error("task `{task}` failed")]
    Error {
        /// The task's full name.
        task: String,
        /// What it returned.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// It panicked.
    #[error("task `{task}` panicked: {message}")]
    Panic {
        /// The task's full name.
        task: String,
        /// What the panic said.
        message: String,
    },
}

impl Scope {
    /// Starts a task that this scope owns. Once the scope is closed nothing starts any more: the future is
    /// dropped.
    ///
    /// A task that drains ([`OnCancel::Drain`]) has to watch [`Scope::cancelled`] by itself.
    pub fn spawn<F, E>(&self, kind: TaskKind, name: impl Into<Cow<'static, str>>, future: F)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let id = self.0.next_task.fetch_add(1, Ordering::Relaxed);
        if !self.book(id, name.into()) {
            return;
        }
        let mut booked = Booked { scope: self.clone(), id, kind, ended: false };
        let body = async move {
            let cancelled = async {
                match kind.on_cancel() {
                    OnCancel::Abort => booked.scope.cancelled().await,
                    OnCancel::Drain => std::future::pending().await,
                }
            };
            let result = tokio::select! {
                biased;
                () = cancelled => Ok(Ok(())),
                result = AssertUnwindSafe(future).catch_unwind() => result,
            };
            booked.ended = true;
            match result {
                Ok(Ok(())) => {}
                Ok(Err(error)) => booked.fail(|task| Failure::Error { task, source: error.into() }),
                Err(panic) => booked.fail(|task| Failure::Panic { task, message: panic_text(&*panic) }),
            }
        };
        // The list is not locked here: a runtime that is going down drops the future at once, and its drop books
        // the task out.
        #[expect(clippy::disallowed_methods, reason = "this is the place the rule points to")]
        let handle = match self.0.sink.clone() {
            Some(sink) => tokio::spawn(logging_to(sink, body)),
            None => tokio::spawn(body),
        }
        .abort_handle();
        match lock(&self.0.tasks).get_mut(&id) {
            Some(entry) if !self.0.closed.load(Ordering::Acquire) => entry.abort = Some(handle),
            // Ended already, or the scope was closed meanwhile.
            _ => handle.abort(),
        }
    }

    /// Puts a task on the list, unless the scope is closed.
    fn book(&self, id: u64, name: Cow<'static, str>) -> bool {
        let mut tasks = lock(&self.0.tasks);
        if self.0.closed.load(Ordering::Acquire) {
            tracing::debug!(task.scope = self.path(), task.name = %name, "not started: the scope is closed");
            return false;
        }
        tasks.insert(id, TaskEntry { name, abort: None });
        true
    }
}

/// Takes the task off its scope's list however it ends, also when it is aborted.
struct Booked {
    scope: Scope,
    id: u64,
    kind: TaskKind,
    ended: bool,
}

impl Booked {
    fn fail(&self, failure: impl FnOnce(String) -> Failure) {
        let name =
            lock(&self.scope.0.tasks).get(&self.id).map(|entry| entry.name.clone()).unwrap_or_default();
        let failure = failure(format!("{}/{name}", self.scope.path()));
        let reach = self.kind.on_error();
        if reach == OnError::Log {
            tracing::warn!(task.scope = self.scope.path(), error = %chain(&failure), "a task failed");
            return;
        }
        let failure = Arc::new(failure);
        let first = self.scope.boundary(reach).0.failure.send_if_modified(|slot| {
            let first = slot.is_none();
            if first {
                *slot = Some(failure.clone());
            }
            first
        });
        if !first {
            tracing::error!(task.scope = self.scope.path(), error = %chain(&*failure), "another task failed");
        }
    }
}

impl Drop for Booked {
    fn drop(&mut self) {
        lock(&self.scope.0.tasks).remove(&self.id);
        self.scope.0.ended.notify_waiters();
        if !self.ended {
            tracing::debug!(task.scope = self.scope.path(), "a task was aborted");
        }
    }
}

/// What a caught panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&'static str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
