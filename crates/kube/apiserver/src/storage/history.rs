//! How much of the past watch caches keep: events, bytes and age, within one budget for all clusters of a process.
//!
//! When the budget is exceeded, the clusters with the longest history are cut first, and in each of them the resources with
//! the longest: a tenant that writes a lot shortens its own history and not that of the others.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use aro_base::{SharedClock, SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::watch_cache::{Event, WatchCache};

/// What watch caches keep of their events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Events of one resource in one cluster.
    pub events: usize,
    /// Bytes of the events of all clusters together.
    pub bytes: u64,
    /// Older events are dropped.
    pub age: SignedDuration,
}

impl From<usize> for HistoryLimits {
    /// So many events for each resource, and the usual bytes and age.
    fn from(events: usize) -> Self {
        Self { events, bytes: 256 << 20, age: SignedDuration::from_mins(10) }
    }
}

/// The history of all watch caches of an engine.
pub(super) struct HistoryBudget {
    pub(super) limits: HistoryLimits,
    clock: SharedClock,
    bytes: AtomicU64,
    /// With the cluster store each belongs to.
    caches: Mutex<Vec<(u64, Weak<WatchCache>)>>,
}

impl std::fmt::Debug for HistoryBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HistoryBudget({} of {} bytes)", self.bytes(), self.limits.bytes)
    }
}

impl HistoryBudget {
    pub(super) fn new(limits: HistoryLimits, clock: SharedClock) -> Arc<Self> {
        Arc::new(Self { limits, clock, bytes: AtomicU64::new(0), caches: Mutex::default() })
    }

    pub(super) fn register(&self, store: u64, cache: &Arc<WatchCache>) {
        self.caches.lock().push((store, Arc::downgrade(cache)));
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Bytes of all events.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn release(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Cuts the longest histories if all together are too long. Below the limit, so that the next writes need not cut again.
    pub(super) fn enforce(&self) {
        if self.bytes() <= self.limits.bytes {
            return;
        }
        let mut stores: BTreeMap<u64, Vec<(u64, Arc<WatchCache>)>> = BTreeMap::new();
        for (store, cache) in self.live() {
            let bytes = cache.history_bytes();
            if bytes > 0 {
                stores.entry(store).or_default().push((bytes, cache));
            }
        }
        let size = |caches: &[(u64, Arc<WatchCache>)]| caches.iter().map(|(bytes, _)| bytes).sum::<u64>();
        let target = self.limits.bytes - self.limits.bytes / 8;
        let of_store = level(stores.values().map(|caches| size(caches)).collect(), target);
        for caches in stores.values().filter(|caches| size(caches) > of_store) {
            let of_cache = level(caches.iter().map(|(bytes, _)| *bytes).collect(), of_store);
            for (_, cache) in caches.iter().filter(|(bytes, _)| *bytes > of_cache) {
                cache.trim_history(of_cache, None);
            }
        }
    }

    /// Drops what is too old, also where nothing is written any more.
    pub(super) fn expire(&self) {
        let Ok(oldest) = self.now().checked_sub(self.limits.age) else { return };
        for (_, cache) in self.live() {
            if cache.oldest_event().is_some_and(|at| at < oldest.as_second()) {
                cache.trim_history(u64::MAX, Some(oldest));
            }
        }
    }

    fn live(&self) -> Vec<(u64, Arc<WatchCache>)> {
        let mut caches = self.caches.lock();
        caches.retain(|(_, cache)| cache.strong_count() > 0);
        caches.iter().filter_map(|(store, cache)| Some((*store, cache.upgrade()?))).collect()
    }
}

/// The size that the larger ones are cut to, so that all together have `target` at most.
fn level(mut sizes: Vec<u64>, target: u64) -> u64 {
    sizes.sort_unstable();
    let mut left = target;
    for (index, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - index) as u64;
        if *size > share {
            return share;
        }
        left -= size;
    }
    u64::MAX
}

/// The recent events of one watch cache.
#[derive(Debug, Default)]
pub(super) struct History {
    entries: VecDeque<Entry>,
    pub(super) bytes: u64,
    /// Events up to this version are dropped.
    pub(super) floor: u64,
}

#[derive(Debug)]
struct Entry {
    /// Beside the event: a search does not touch the events.
    version: u64,
    /// Seconds.
    at: i64,
    event: Arc<Event>,
}

impl Entry {
    fn weight(&self) -> u64 {
        self.event.object.weight() + OVERHEAD
    }
}

/// What an event takes beside its object.
const OVERHEAD: u64 = 128;

impl History {
    /// No events, and none before this version will be known.
    pub(super) fn after_floor(floor: u64) -> Self {
        Self { floor, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn oldest(&self) -> Option<i64> {
        self.entries.front().map(|entry| entry.at)
    }

    /// Returns how many bytes it adds.
    pub(super) fn push(&mut self, version: u64, at: Timestamp, event: Arc<Event>) -> u64 {
        let entry = Entry { version, at: at.as_second(), event };
        let weight = entry.weight();
        self.bytes += weight;
        self.entries.push_back(entry);
        weight
    }

    /// Removes the oldest events while there are more than these, or older ones. They are returned so that they can be freed
    /// without a lock, together with their size.
    pub(super) fn trim(
        &mut self,
        events: usize,
        bytes: u64,
        oldest: Option<Timestamp>,
    ) -> (Vec<Arc<Event>>, u64) {
        let oldest = oldest.map_or(i64::MIN, Timestamp::as_second);
        let (mut dropped, mut freed) = (Vec::new(), 0);
        while let Some(first) = self.entries.front() {
            if self.entries.len() <= events && self.bytes <= bytes && first.at >= oldest {
                break;
            }
            let weight = first.weight();
            if let Some(entry) = self.entries.pop_front() {
                self.bytes -= weight;
                freed += weight;
                self.floor = entry.version;
                dropped.push(entry.event);
            }
        }
        (dropped, freed)
    }

    /// Events after a version, at most `limit`.
    pub(super) fn after(&self, version: u64, limit: usize) -> Vec<Arc<Event>> {
        let from = self.entries.partition_point(|entry| entry.version <= version);
        self.entries.range(from..).take(limit).map(|entry| entry.event.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_cut_to_one_level() {
        assert_eq!(level(vec![10, 10, 10], 30), u64::MAX);
        assert_eq!(level(vec![100, 5, 5], 40), 30);
        assert_eq!(level(vec![100, 100, 10], 110), 50);
        assert_eq!(level(vec![7, 7], 0), 0);
        assert_eq!(level(Vec::new(), 0), u64::MAX);
    }
}
