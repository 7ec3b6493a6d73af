//! Counters for metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the store did since it was opened, and what is waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Transactions committed.
    pub commits: u64,
    /// Batches that took effect.
    pub batches: u64,
    /// Operations in those batches.
    pub ops: u64,
    /// Batches refused because a precondition did not hold.
    pub conflicts: u64,
    /// The most batches one transaction gathered.
    pub max_group: u64,
    /// Batches waiting for the writer right now.
    pub write_queue: u64,
    /// Reads waiting for a thread right now.
    pub read_queue: u64,
    /// Point reads answered by the cache.
    pub cache_hits: u64,
    /// Point reads that needed a thread.
    pub cache_misses: u64,
    /// Bytes in the cache now (estimated).
    pub cache_bytes: u64,
    /// Rows removed by sweeps.
    pub swept: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) ops: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) max_group: AtomicU64,
    pub(crate) cache_hits: AtomicU64,
    pub(crate) cache_misses: AtomicU64,
    pub(crate) swept: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, by: u64) {
        counter.fetch_add(by, Relaxed);
    }

    pub(crate) fn snapshot(&self) -> StoreStats {
        StoreStats {
            commits: self.commits.load(Relaxed),
            batches: self.batches.load(Relaxed),
            ops: self.ops.load(Relaxed),
            conflicts: self.conflicts.load(Relaxed),
            max_group: self.max_group.load(Relaxed),
            cache_hits: self.cache_hits.load(Relaxed),
            cache_misses: self.cache_misses.load(Relaxed),
            swept: self.swept.load(Relaxed),
            ..StoreStats::default()
        }
    }
}
