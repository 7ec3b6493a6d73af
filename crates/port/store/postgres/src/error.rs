//! Turning PostgreSQL's errors into the port's.

use std::path::PathBuf;

use aro_store::StoreError;
use tokio_postgres::error::{Severity, SqlState};

/// Why the store could not be opened or migrated.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The connection string cannot be read. It is not shown, since it may hold a password.
    #[error("the connection string is not valid")]
    Settings(#[source] tokio_postgres::Error),
    /// TLS was asked for without saying whom to trust.
    #[error("`sslmode=require` needs `ca_file`: certificates of the authorities to trust")]
    NoAuthorities,
    /// Authorities were named for a connection without TLS.
    #[error("`sslmode=disable` contradicts `ca_file`; remove one of them")]
    PlainWithAuthorities,
    /// The file of authorities is of no use.
    #[error("read the certificates in `{}`", path.display())]
    Authorities {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server cannot be reached or refused.
    #[error("reach the database")]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The schema is older than this release needs.
    #[error("the database has schema version {found}, this release needs {known}; migrate first")]
    TooOld {
        /// The database's error.
        found: i32,
        /// What we need.
        known: i32,
    },
    /// A later release migrated this database.
    #[error("the database has schema version {found}, this release knows up to {known}; use a newer release")]
    TooNew {
        /// The database's error.
        found: i32,
        /// What we know.
        known: i32,
    },
    /// The data comes from a server whose transaction ids were further along (a restored dump).
    #[error(
        "the database was restored from a copy; migrate first, so that the change feed starts a new life"
    )]
    Restored,
    /// A statement of a migration failed.
    #[error("migrate the schema")]
    Migrate(#[source] tokio_postgres::Error),
}

impl OpenError {
    pub(crate) fn connect(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Connect(error.into())
    }
}

/// The call took longer than it may.
#[derive(Debug, thiserror::Error)]
#[error("no answer from the database within the deadline")]
pub(crate) struct DeadlinePassed;

/// The store was closed before the write was tried.
#[derive(Debug, thiserror::Error)]
#[error("the store is closed")]
pub(crate) struct Closed;

/// Several batches shared a transaction that failed; the text is why.
#[derive(Debug, thiserror::Error)]
#[error("the transaction of a group of batches failed: {0}")]
pub(crate) struct GroupFailed(pub(crate) String);

/// An operation was neither written nor refused.
#[derive(Debug, thiserror::Error)]
#[error("the database did not answer for every operation")]
pub(crate) struct Unanswered;

/// Whether it is certain that the transaction left nothing behind, and worth another try: the server itself refused it
/// and lived on. Cancelled is not refused: that is the deadline.
pub(crate) fn undone(error: &StoreError) -> bool {
    let (StoreError::Unavailable(error) | StoreError::Corrupt(error)) = error else { return false };
    let error = error.downcast_ref::<tokio_postgres::Error>().and_then(tokio_postgres::Error::as_db_error);
    error.is_some_and(|error| {
        error.parsed_severity() == Some(Severity::Error) && *error.code() != SqlState::QUERY_CANCELED
    })
}

/// Damage is damage; everything else (connection lost, time-out, failover, shutdown, out of resources) may pass.
pub(crate) fn store_error(error: tokio_postgres::Error) -> StoreError {
    match error.code() {
        Some(&SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED) => StoreError::Corrupt(Box::new(error)),
        _ => StoreError::Unavailable(Box::new(error)),
    }
}

/// A column does not hold what it must.
pub(crate) fn corrupt(error: tokio_postgres::Error) -> StoreError {
    StoreError::Corrupt(Box::new(error))
}
