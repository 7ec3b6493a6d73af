//! The work queue: keys that need a pass, now or later.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Keys that need a pass. Cloning gives another handle to the same queue.
pub struct Queue<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

struct State<K> {
    ready: VecDeque<K>,
    keys: HashMap<K, Entry>,
    /// Keys by due time; the number orders keys of the same instant.
    delayed: BTreeMap<(Instant, u64), K>,
    sequence: u64,
    /// Counts `ready`, together with other queues of the same controller.
    depth: Option<Gauge>,
}

impl<K> Drop for State<K> {
    fn drop(&mut self) {
        if let Some(depth) = &self.depth {
            depth.dec_by(self.ready.len() as i64);
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    ready: bool,
    running: bool,
    /// Enqueued during its pass: it needs another one.
    dirty: bool,
    due: Option<(Instant, u64)>,
    failures: u32,
}

impl Entry {
    fn is_idle(&self) -> bool {
        !self.ready && !self.running && self.due.is_none() && self.failures == 0
    }
}

/// How a pass counts towards the failures in a row of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tally {
    /// The count starts over.
    Reset,
    /// One more.
    Failure,
    /// As before.
    Keep,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        let state = State {
            ready: VecDeque::new(),
            keys: HashMap::new(),
            delayed: BTreeMap::new(),
            sequence: 0,
            depth: None,
        };
        Self { inner: Arc::new(Inner { state: Mutex::new(state), changed: Notify::new() }) }
    }
}

impl<K> std::fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.inner.state.lock();
        f.debug_struct("Queue")
            .field("ready", &state.ready.len())
            .field("delayed", &state.delayed.len())
            .finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    /// Marks a key as ready unless it is already, or is in a pass: then it needs another one.
    fn make_ready(&mut self, key: K) -> bool {
        let entry = self.keys.entry(key.clone()).or_default();
        if entry.running {
            entry.dirty = true;
            return false;
        }
        if std::mem::replace(&mut entry.ready, true) {
            return false;
        }
        self.push(key);
        true
    }

    fn push(&mut self, key: K) {
        self.ready.push_back(key);
        if let Some(depth) = &self.depth {
            depth.inc();
        }
    }

    fn pop(&mut self) -> Option<K> {
        let key = self.ready.pop_front()?;
        if let Some(depth) = &self.depth {
            depth.dec();
        }
        Some(key)
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Enqueues a key for a pass as soon as possible.
    pub fn add(&self, key: K) {
        let mut state = self.inner.state.lock();
        // The task that takes the first key wakes the next one: a burst of keys wakes one task from here, not all.
        let wake = state.make_ready(key) && state.ready.len() == 1;
        drop(state);
        if wake {
            self.inner.changed.notify_one();
        }
    }

    /// Enqueues a key for a pass after a delay; an earlier time that is set already stands.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        let at = Instant::now() + delay;
        let mut state = self.inner.state.lock();
        let State { keys, delayed, sequence, .. } = &mut *state;
        let entry = keys.entry(key.clone()).or_default();
        if let Some(due) = entry.due {
            if due.0 <= at {
                return;
            }
            delayed.remove(&due);
        }
        *sequence += 1;
        let due = (at, *sequence);
        entry.due = Some(due);
        delayed.insert(due, key);
        // Timers are set for the first due time; a later one changes nothing.
        let wake = delayed.first_key_value().is_some_and(|(first, _)| *first == due);
        drop(state);
        if wake {
            self.inner.changed.notify_one();
        }
    }

    /// Keys that wait for a pass or are in one.
    pub fn busy(&self) -> usize {
        let state = self.inner.state.lock();
        state.keys.values().filter(|entry| entry.ready || entry.running).count()
    }

    /// When the next delayed key is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.inner.state.lock().delayed.first_key_value().map(|((at, _), _)| *at)
    }

    /// Counts its ready keys in a gauge from now on, with those of other queues.
    pub(crate) fn count_in(&self, depth: Gauge) {
        let mut state = self.inner.state.lock();
        if state.depth.is_none() {
            depth.inc_by(state.ready.len() as i64);
            state.depth = Some(depth);
        }
    }

    /// Takes a key for a pass. The caller returns it by [`Queue::done`].
    pub(crate) fn take(&self) -> Option<K> {
        let mut state = self.inner.state.lock();
        if !state.delayed.is_empty() {
            let now = Instant::now();
            while let Some(first) = state.delayed.first_entry() {
                if first.key().0 > now {
                    break;
                }
                let key = first.remove();
                if let Some(entry) = state.keys.get_mut(&key) {
                    entry.due = None;
                }
                state.make_ready(key);
            }
        }
        let key = state.pop()?;
        let more = !state.ready.is_empty();
        let entry = state.keys.entry(key.clone()).or_default();
        entry.ready = false;
        entry.running = true;
        drop(state);
        if more {
            // Another task of the same runner may be idle.
            self.inner.changed.notify_one();
        }
        Some(key)
    }

    /// Ends a pass. Returns the failures in a row of the key.
    pub(crate) fn done(&self, key: &K, tally: Tally) -> u32 {
        let mut state = self.inner.state.lock();
        let Some(entry) = state.keys.get_mut(key) else { return 0 };
        entry.running = false;
        match tally {
            Tally::Reset => entry.failures = 0,
            Tally::Failure => entry.failures = entry.failures.saturating_add(1),
            Tally::Keep => {}
        }
        let failures = entry.failures;
        if std::mem::take(&mut entry.dirty) {
            state.make_ready(key.clone());
            drop(state);
            self.inner.changed.notify_one();
        } else if entry.is_idle() {
            state.keys.remove(key);
        }
        failures
    }

    /// Returns when a key may be ready.
    pub(crate) async fn changed(&self) {
        let due = self.next_due();
        let changed = self.inner.changed.notified();
        match due {
            None => changed.await,
            Some(due) => {
                tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep_until(due) => {}
                }
            }
        }
    }
}

#[cfg(test)]
impl<K: Clone + Eq + Hash> Queue<K> {
    pub(crate) fn is_idle(&self, key: &K) -> bool {
        !self.inner.state.lock().keys.contains_key(key)
    }
}
