//! The watch cache of one resource in one cluster: its objects and their recent events.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use aro_base::Timestamp;
use parking_lot::RwLock;
use tokio::sync::watch;

use super::history::{History, HistoryBudget};
use super::lister::Lister;
use super::object::Stored;

/// One resource of one cluster.
#[derive(Debug)]
pub struct WatchCache {
    /// `pods`, `deployments.apps`
    pub name: Box<str>,
    state: RwLock<State>,
    /// The version of the newest event; watchers wait for it to move.
    newest: watch::Sender<u64>,
    budget: Arc<HistoryBudget>,
    /// The size of the history, and the time of its oldest event ([`NEVER`]: there is none): to be read without the lock.
    history_bytes: AtomicU64,
    oldest_event: AtomicI64,
}

const NEVER: i64 = i64::MAX;

#[derive(Debug, Default)]
struct State {
    objects: Objects,
    /// How many objects each namespace has. Empty for cluster-scoped resources.
    namespaces: HashMap<Box<str>, usize>,
    history: History,
    /// The newest version published here.
    version: u64,
}

/// By key, which is the objects' own.
type Objects = BTreeMap<Arc<str>, Arc<Stored>>;

/// A change of an object.
#[derive(Debug)]
pub struct Event {
    pub kind: EventKind,
    /// For a deletion: the last state, at the version of the deletion.
    pub object: Arc<Stored>,
    /// What it was before.
    pub previous: Option<Arc<Stored>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// The requested version is older than the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooOld {
    /// The oldest version one may ask for.
    pub oldest: u64,
}

/// Objects at one moment.
#[derive(Debug)]
pub struct Listed {
    pub version: u64,
    pub objects: Vec<Arc<Stored>>,
    /// Whether there are objects after these.
    pub more: bool,
    /// How many objects there are below the prefix, whether selected or not. Only for lists from the start.
    pub total: Option<usize>,
}

/// A chunk of objects, copied under the lock.
pub(super) struct Copied {
    pub(super) objects: Vec<Arc<Stored>>,
    /// How many objects there are below the prefix.
    pub(super) count: usize,
}

/// History is cut in steps, so that most writes do not pay for it.
const SLACK: usize = 64;

impl State {
    fn insert(&mut self, key: &Arc<str>, object: Arc<Stored>) -> Option<Arc<Stored>> {
        let previous = self.objects.insert(key.clone(), object);
        if previous.is_none()
            && let Some((namespace, _)) = key.split_once('/')
        {
            match self.namespaces.get_mut(namespace) {
                Some(count) => *count += 1,
                None => {
                    self.namespaces.insert(namespace.into(), 1);
                }
            }
        }
        previous
    }

    fn remove(&mut self, key: &str) -> Option<Arc<Stored>> {
        let previous = self.objects.remove(key)?;
        if let Some((namespace, _)) = key.split_once('/')
            && let Some(count) = self.namespaces.get_mut(namespace)
        {
            *count -= 1;
            if *count == 0 {
                self.namespaces.remove(namespace);
            }
        }
        Some(previous)
    }

    /// How many objects there are below a prefix, which is empty or a namespace and a slash.
    fn count(&self, prefix: &str) -> usize {
        match prefix.strip_suffix('/') {
            Some(namespace) => self.namespaces.get(namespace).copied().unwrap_or(0),
            None => self.objects.len(),
        }
    }

    fn chunk(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Arc<Stored>> {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let rest = self.objects.range::<str, _>((from, Bound::Unbounded));
        let rest = rest.take_while(|(key, _)| key.starts_with(prefix)).take(limit);
        rest.map(|(_, object)| object.clone()).collect()
    }
}

impl WatchCache {
    pub(super) fn new(name: &str, floor: u64, budget: Arc<HistoryBudget>) -> Self {
        let history = History::after_floor(floor);
        let state = State { history, version: floor, ..State::default() };
        Self {
            name: name.into(),
            state: RwLock::new(state),
            newest: watch::Sender::new(floor),
            budget,
            history_bytes: AtomicU64::new(0),
            oldest_event: AtomicI64::new(NEVER),
        }
    }

    pub fn get(&self, key: &str) -> Option<Arc<Stored>> {
        self.state.read().objects.get(key).cloned()
    }

    pub fn len(&self) -> usize {
        self.state.read().objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version of the newest change here.
    pub fn version(&self) -> u64 {
        self.state.read().version
    }

    /// Every object, now.
    pub fn all(&self) -> Vec<Arc<Stored>> {
        self.list("", None, usize::MAX, || 0, |_| true).objects
    }

    /// Objects whose key starts with `prefix`, after the key `after`, at most `limit` that `keep` wants.
    /// `published` is the cluster store's newest published version, read under this watch cache's lock.
    pub fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        published: impl Fn() -> u64,
        mut keep: impl FnMut(&Stored) -> bool,
    ) -> Listed {
        let mut lister = self.lister(prefix, after, limit, &published);
        loop {
            match lister.step(&mut keep) {
                Ok(true) => return lister.finish(),
                Ok(false) => {}
                Err(_) => lister = self.short_lister(prefix, after, limit, &published),
            }
        }
    }

    /// The same, at an earlier version, as long as history reaches back to it.
    pub fn list_at(
        &self,
        version: u64,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        mut keep: impl FnMut(&Stored) -> bool,
    ) -> Result<Listed, TooOld> {
        let mut lister = self.lister_at(version, prefix, after, limit);
        while !lister.step(&mut keep)? {}
        Ok(lister.finish())
    }

    /// A list that is read step by step. If a step fails because history is cut meanwhile, use [`Self::short_lister`].
    pub fn lister<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&str>,
        limit: usize,
        published: impl Fn() -> u64,
    ) -> Lister<'a> {
        let state = self.state.read();
        // Everything up to the published version is here, and what follows is newer.
        let version = published().max(state.version);
        drop(state);
        Lister::new(self, version, prefix, after, limit)
    }

    /// A list that needs no history: its pointers are copied at once.
    pub fn short_lister<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&str>,
        limit: usize,
        published: impl Fn() -> u64,
    ) -> Lister<'a> {
        self.lister(prefix, after, limit, published).in_one_chunk()
    }

    /// A list at an earlier version that is read step by step.
    pub fn lister_at<'a>(
        &'a self,
        version: u64,
        prefix: &'a str,
        after: Option<&str>,
        limit: usize,
    ) -> Lister<'a> {
        Lister::new(self, version, prefix, after, limit)
    }

    /// Copies events after a version. If these are all, a chunk of objects as well, in the same hold of the lock.
    pub(super) fn copy(
        &self,
        version: u64,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<Arc<Event>>, Option<Copied>), TooOld> {
        let state = self.state.read();
        if version < state.history.floor {
            return Err(TooOld { oldest: state.history.floor });
        }
        let events = state.history.after(version, limit);
        let copied = (events.len() < limit)
            .then(|| Copied { objects: state.chunk(prefix, after, limit), count: state.count(prefix) });
        Ok((events, copied))
    }

    /// Events after a version, at most `limit`.
    pub fn since(&self, version: u64, limit: usize) -> Result<Vec<Arc<Event>>, TooOld> {
        let state = self.state.read();
        if version < state.history.floor {
            return Err(TooOld { oldest: state.history.floor });
        }
        Ok(state.history.after(version, limit))
    }

    /// Bytes of the events kept here.
    pub(super) fn history_bytes(&self) -> u64 {
        self.history_bytes.load(Ordering::Relaxed)
    }

    /// The time of the oldest event, in seconds.
    pub(super) fn oldest_event(&self) -> Option<i64> {
        Some(self.oldest_event.load(Ordering::Relaxed)).filter(|at| *at != NEVER)
    }

    /// Drops the oldest events while they have more bytes than this, or are older.
    pub(super) fn trim_history(&self, bytes: u64, oldest: Option<Timestamp>) {
        let mut state = self.state.write();
        let (dropped, freed) = state.history.trim(usize::MAX, bytes, oldest);
        self.note_history(&state.history);
        drop(state);
        self.budget.release(freed);
        // Their objects are freed here, without the lock.
        drop(dropped);
    }

    fn note_history(&self, history: &History) {
        self.history_bytes.store(history.bytes, Ordering::Relaxed);
        self.oldest_event.store(history.oldest().unwrap_or(NEVER), Ordering::Relaxed);
    }

    /// Tells when something has happened.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    pub(super) fn publish(
        &self,
        key: &Arc<str>,
        version: u64,
        new: Option<Arc<Stored>>,
    ) -> Option<Arc<Event>> {
        let now = self.budget.now();
        let limits = &self.budget.limits;
        let mut state = self.state.write();
        let previous = match &new {
            Some(object) => state.insert(key, object.clone()),
            None => state.remove(key),
        };
        let (kind, object) = match (new, &previous) {
            (Some(object), None) => (EventKind::Added, object),
            (Some(object), Some(_)) => (EventKind::Modified, object),
            (None, Some(previous)) => (EventKind::Deleted, Arc::new(previous.deleted_at(version))),
            (None, None) => return None,
        };
        let event = Arc::new(Event { kind, object, previous });
        self.budget.add(state.history.push(version, now, event.clone()));
        state.version = version;
        let most = if state.history.len() > limits.events + SLACK { limits.events } else { usize::MAX };
        let oldest = now.checked_sub(limits.age).ok();
        let (dropped, freed) = state.history.trim(most, u64::MAX, oldest);
        self.note_history(&state.history);
        drop(state);
        self.budget.release(freed);
        drop(dropped);
        Some(event)
    }

    /// Wakes watchers; once for a whole batch.
    pub(super) fn announce(&self) {
        let version = self.state.read().version;
        self.newest.send_if_modified(|newest| {
            let moved = *newest != version;
            *newest = version;
            moved
        });
    }

    /// Restores an object at a start, before any watch.
    pub(super) fn restore(&self, object: Arc<Stored>) {
        let key = object.key.clone();
        self.state.write().insert(&key, object);
    }
}

impl Drop for WatchCache {
    fn drop(&mut self) {
        self.budget.release(*self.history_bytes.get_mut());
    }
}
