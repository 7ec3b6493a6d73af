//! Turning SQLite's errors into the port's.

use std::path::PathBuf;

use aro_store::StoreError;
use rusqlite::ErrorCode;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be used.
    #[error("use the data directory `{}`", path.display())]
    Directory {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Another process, or another store of this one, has it.
    #[error("the data directory `{}` is in use by process {holder}", path.display())]
    Locked {
        /// Which one.
        path: PathBuf,
        /// The process id found in the lock file, or `unknown`.
        holder: String,
    },
    /// A later release wrote this database.
    #[error("the database has schema version {found}, this release knows up to {known}; use a newer release")]
    TooNew {
        /// The database's error.
        found: i64,
        /// What we can do.
        known: i64,
    },
    /// SQLite refused.
    #[error("open the database")]
    Sqlite(#[source] rusqlite::Error),
    /// A thread could not be started.
    #[error("start a store thread")]
    Thread(#[source] std::io::Error),
}

impl From<rusqlite::Error> for OpenError {
    fn from(source: rusqlite::Error) -> Self {
        Self::Sqlite(source)
    }
}

/// The store was closed, or its thread died, before the call was answered.
#[derive(Debug, thiserror::Error)]
#[error("the store is closed")]
pub(crate) struct Closed;

/// The group this batch was committed with failed as a whole.
#[derive(Debug, thiserror::Error)]
#[error("the group commit failed: {0}")]
pub(crate) struct GroupFailed(pub(crate) String);

pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable(Box::new(Closed))
}

/// Only damage is damage; a full disk, a lock or an I/O error may pass.
pub(crate) fn store_error(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        // `None` is not from SQLite itself: a column does not hold what it must.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) | None => {
            StoreError::Corrupt(Box::new(error))
        }
        Some(_) => StoreError::Unavailable(Box::new(error)),
    }
}
