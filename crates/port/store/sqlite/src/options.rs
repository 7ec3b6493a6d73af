//! What can be chosen when a store is opened.

use std::path::PathBuf;
use std::time::Duration;

/// How to open a store.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// The directory that holds the database and its lock file; created if missing.
    pub path: PathBuf,
    /// How many threads serve reads that the cache cannot.
    pub readers: usize,
    /// How long a deletion can be seen on the feed. A consumer that is away for longer must list again.
    pub tombstone_retention: Duration,
    /// How often expired documents and old tombstones are removed. They are invisible long before.
    pub sweep_interval: Duration,
    /// How many rows one sweep removes at most, so that writers never wait long behind it.
    pub sweep_rows: usize,
    /// How much memory the cache of documents may take.
    pub cache_bytes: usize,
    /// How many calls may wait for a thread; later callers wait for a place.
    pub queue: usize,
    /// How many operations one commit gathers at most.
    pub group_ops: usize,
}

impl SqliteOptions {
    /// The defaults, for this directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            readers: 4,
            tombstone_retention: Duration::from_hours(24),
            sweep_interval: Duration::from_secs(30),
            sweep_rows: 1000,
            cache_bytes: 64 * 1024 * 1024,
            queue: 1024,
            group_ops: 2000,
        }
    }
}
