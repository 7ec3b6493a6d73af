//! The end of writing: what is on disk is no longer known.

use std::sync::Arc;

use aro_store::StoreError;
use rusqlite::ErrorCode;
use tokio::sync::watch;

/// The store's disk failed it, or a thread that it cannot do without has panicked.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the store has failed and takes no writes until the process starts again: {reason}")]
pub(crate) struct Failed {
    reason: Arc<str>,
}

/// Whether the store has failed. There is no way back: after an error the kernel may have dropped the pages that it
/// could not write, and report success the next time.
#[derive(Debug)]
pub(crate) struct Failure {
    state: watch::Sender<Option<Failed>>,
}

impl Default for Failure {
    fn default() -> Self {
        Self { state: watch::Sender::new(None) }
    }
}

impl Failure {
    /// Ends writing. The first reason stays.
    pub(crate) fn report(&self, reason: &str) {
        let first = self.state.send_if_modified(|state| {
            let first = state.is_none();
            state.get_or_insert(Failed { reason: reason.into() });
            first
        });
        if first {
            tracing::error!(
                reason,
                "the store has failed; it takes no writes until the process starts again"
            );
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.state.borrow().is_some()
    }

    /// The error for callers, if it has failed.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match &*self.state.borrow() {
            Some(failed) => Err(StoreError::Unavailable(Box::new(failed.clone()))),
            None => Ok(()),
        }
    }

    /// Returns when it has failed.
    pub(crate) async fn wait(&self) -> Failed {
        let mut state = self.state.subscribe();
        loop {
            if let Some(failed) = &*state.borrow_and_update() {
                return failed.clone();
            }
            // The sender is ours: it outlives this.
            let _ = state.changed().await;
        }
    }
}

/// Whether an error leaves the disk in a state that is not known. A full disk does not, nor does a lock: SQLite undoes the
/// transaction and can go on.
pub(crate) fn is_fatal(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// The same of an error of the port, which has SQLite's inside.
pub(crate) fn is_fatal_store_error(error: &StoreError) -> bool {
    match error {
        StoreError::Unavailable(source) | StoreError::Corrupt(source) => {
            source.downcast_ref::<rusqlite::Error>().is_some_and(is_fatal)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
