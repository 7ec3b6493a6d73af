//! The document store on PostgreSQL: for several replicas, or where a database is already operated.
//!
//! How it works: batches that wait go together into one call of a function in the database (one round trip, one
//! transaction), each judged on its own; see ADR 0016. It first takes an advisory lock on each partition, then checks
//! every precondition, then writes. The change feed is ordered by transaction id and shows only what is older than every
//! transaction still running, so it is free of gaps without any lock that spans partitions; see ADR 0012. Waiting readers
//! are woken by `NOTIFY`, which is sent after the commit by a task of its own and only hastens what polling would find.
//!
//! What it is not: usable through a pooler that changes sessions between transactions, since it keeps prepared
//! statements and session settings.
//!
//! Invariants: success is returned only after the server confirmed the commit; any failure before that
//! is [`aro_store::StoreError::Unavailable`]. Every call has a deadline, on both ends. The feed waits for the
//! oldest running transaction of the whole server: long transactions elsewhere delay it, never break it.
#![warn(missing_docs)]

mod condition;
mod error;
mod feed;
mod notify;
mod options;
#[cfg(test)]
mod plans;
mod pool;
mod queue;
mod read;
mod schema;
mod store;
mod tls;
mod upkeep;
mod write;
mod writer;

pub use error::OpenError;
pub use options::PostgresOptions;
pub use schema::migrate;
pub use store::PostgresStore;
