//! The document store on SQLite: the embedded default, one process, one directory.
//!
//! How it works: one *writer* thread owns the only writing connection. It takes whatever batches are waiting,
//! applies them in one transaction, commits once (one `fsync` for the whole group) and only then answers; see
//! ADR 0011. *Reader* threads hold read-only connections and see the last commit. A write-through cache of
//! documents answers most point reads without any thread; it can be exact because the lock file keeps every
//! other process out.
//!
//! The change feed is a sequence per container that the writer counts up; a document carries the number of its
//! last write. Deleted documents stay as tombstones for a while (ADR 0013); a sweep on the writer thread removes
//! old ones and remembers how far it went, so a cursor that may have missed one is refused exactly then.
//!
//! What it is not: a database several processes may share, nor a cache in front of one. For more than one
//! replica there is `aro-store-postgres`.
//!
//! Invariants: an acknowledged batch is on disk; after an I/O error nothing more is written until the process starts
//! again; no caller can see a batch on the feed or in a query while the cache still answers with what was before;
//! dropping the last handle stops and joins all threads.
#![warn(missing_docs)]

mod apply;
mod cache;
mod checkpoint;
mod effects;
mod error;
mod failure;
mod faults;
mod lock;
mod names;
mod options;
mod read;
mod readers;
mod schema;
mod sieve;
mod slices;
mod stats;
mod store;
mod sweep;
mod tail;
mod writer;

pub use error::OpenError;
pub use options::SqliteOptions;
pub use stats::StoreStats;
pub use store::SqliteStore;
