//! Keys that want a pass, now or later.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Keys that want a pass. Cloning gives another handle to the same queue.
pub struct Queue<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

struct State<K> {
    ready: VecDeque<K>,
    keys: HashMap<K, Key>,
    /// Who is due when; the number keeps apart those due at the same instant.
    later: BTreeMap<(Instant, u64), K>,
    count: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Key {
    waiting: bool,
    running: bool,
    /// Added while it ran.
    again: bool,
    due: Option<(Instant, u64)>,
    failures: u32,
}

impl Key {
    fn is_forgotten(&self) -> bool {
        !self.waiting && !self.running && self.due.is_none() && self.failures == 0
    }
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        let state = State { ready: VecDeque::new(), keys: HashMap::new(), later: BTreeMap::new(), count: 0 };
        Self { inner: Arc::new(Inner { state: Mutex::new(state), changed: Notify::new() }) }
    }
}

impl<K> std::fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.inner.state.lock();
        f.debug_struct("Queue")
            .field("ready", &state.ready.len())
            .field("later", &state.later.len())
            .finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// A queue with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// The key gets a pass as soon as possible.
    pub fn add(&self, key: K) {
        let mut state = self.inner.state.lock();
        let entry = state.keys.entry(key.clone()).or_default();
        if entry.running {
            entry.again = true;
            return;
        }
        if entry.waiting {
            return;
        }
        entry.waiting = true;
        state.ready.push_back(key);
        drop(state);
        self.inner.changed.notify_one();
    }

    /// The key gets a pass after a while, or earlier if it is added again.
    pub fn add_after(&self, key: K, pause: Duration) {
        if pause.is_zero() {
            return self.add(key);
        }
        let at = Instant::now() + pause;
        let mut state = self.inner.state.lock();
        let State { keys, later, count, .. } = &mut *state;
        let entry = keys.entry(key.clone()).or_default();
        if let Some(due) = entry.due {
            if due.0 <= at {
                return;
            }
            later.remove(&due);
        }
        *count += 1;
        let due = (at, *count);
        entry.due = Some(due);
        later.insert(due, key);
        drop(state);
        self.inner.changed.notify_one();
    }

    /// How many keys wait for a pass or are in one.
    pub fn busy(&self) -> usize {
        let state = self.inner.state.lock();
        state.keys.values().filter(|key| key.waiting || key.running).count()
    }

    /// When the next key is due that nothing else wakes.
    pub fn next_due(&self) -> Option<Instant> {
        self.inner.state.lock().later.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes a key for a pass. The caller has to give it back with [`Queue::done`].
    pub(crate) fn take(&self) -> Option<K> {
        let mut state = self.inner.state.lock();
        let now = Instant::now();
        while let Some(first) = state.later.first_entry() {
            if first.key().0 > now {
                break;
            }
            let key = first.remove();
            let entry = state.keys.entry(key.clone()).or_default();
            entry.due = None;
            if entry.running {
                entry.again = true;
            } else if !entry.waiting {
                entry.waiting = true;
                state.ready.push_back(key);
            }
        }
        let key = state.ready.pop_front()?;
        let more = !state.ready.is_empty();
        let entry = state.keys.entry(key.clone()).or_default();
        entry.waiting = false;
        entry.running = true;
        drop(state);
        if more {
            // Somebody else may be waiting for work.
            self.inner.changed.notify_one();
        }
        Some(key)
    }

    /// The pass is over. Returns how often in a row the key has failed now.
    pub(crate) fn done(&self, key: &K, well: bool) -> u32 {
        let mut state = self.inner.state.lock();
        let State { keys, ready, .. } = &mut *state;
        let Some(entry) = keys.get_mut(key) else { return 0 };
        entry.running = false;
        entry.failures = if well { 0 } else { entry.failures.saturating_add(1) };
        let failures = entry.failures;
        if std::mem::take(&mut entry.again) {
            entry.waiting = true;
            ready.push_back(key.clone());
            drop(state);
            self.inner.changed.notify_one();
        } else if entry.is_forgotten() {
            keys.remove(key);
        }
        failures
    }

    /// Returns when there may be something to take.
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
    pub(crate) fn is_forgotten(&self, key: &K) -> bool {
        !self.inner.state.lock().keys.contains_key(key)
    }
}
