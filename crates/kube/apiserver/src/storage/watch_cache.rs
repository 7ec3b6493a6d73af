//! The watch cache of one resource in one cluster: its objects and their recent events.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use super::object::Stored;

/// One resource of one cluster.
#[derive(Debug)]
pub struct WatchCache {
    /// `pods`, `deployments.apps`
    pub name: Box<str>,
    state: RwLock<State>,
    /// The version of the newest event; watchers wait for it to move.
    newest: watch::Sender<u64>,
    limit: usize,
}

#[derive(Debug, Default)]
struct State {
    objects: Objects,
    /// With their versions beside them: a search does not touch the events.
    history: VecDeque<(u64, Arc<Event>)>,
    /// Events up to this version are dropped.
    floor: u64,
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
    /// How many more there are after these, as far as is known.
    pub remaining: usize,
}

/// History is cut in steps, so that most writes do not pay for it.
const SLACK: usize = 64;

impl WatchCache {
    pub(super) fn new(name: &str, floor: u64, limit: usize) -> Self {
        let state = State { floor, version: floor, ..State::default() };
        Self { name: name.into(), state: RwLock::new(state), newest: watch::Sender::new(floor), limit }
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
        self.state.read().objects.values().cloned().collect()
    }

    /// Objects whose key starts with `prefix`, after the key `after`, at most `limit` that `keep` wants.
    /// `published` is the cluster store's newest published version, read under this watch cache's lock.
    pub fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        published: impl FnOnce() -> u64,
        keep: impl FnMut(&Stored) -> bool,
    ) -> Listed {
        let state = self.state.read();
        let version = published().max(state.version);
        let (objects, remaining) = page(&state.objects, prefix, after, limit, keep);
        Listed { version, objects, remaining }
    }

    /// The same, at an earlier version, as long as history reaches back to it.
    pub fn list_at(
        &self,
        version: u64,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        keep: impl FnMut(&Stored) -> bool,
    ) -> Result<Listed, TooOld> {
        let state = self.state.read();
        if version < state.floor {
            return Err(TooOld { oldest: state.floor });
        }
        if version >= state.version {
            let (objects, remaining) = page(&state.objects, prefix, after, limit, keep);
            return Ok(Listed { version, objects, remaining });
        }
        // Undo what happened since. The first event after the version knows what was there before.
        let mut then = state.objects.clone();
        for (_, event) in state.history.iter().rev().take_while(|(at, _)| *at > version) {
            match &event.previous {
                Some(previous) => then.insert(event.object.key.clone(), previous.clone()),
                None => then.remove(&event.object.key),
            };
        }
        let (objects, remaining) = page(&then, prefix, after, limit, keep);
        Ok(Listed { version, objects, remaining })
    }

    /// Events after a version, at most `limit`.
    pub fn since(&self, version: u64, limit: usize) -> Result<Vec<Arc<Event>>, TooOld> {
        let state = self.state.read();
        if version < state.floor {
            return Err(TooOld { oldest: state.floor });
        }
        let from = state.history.partition_point(|(at, _)| *at <= version);
        Ok(state.history.range(from..).take(limit).map(|(_, event)| event.clone()).collect())
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
        let mut state = self.state.write();
        let previous = match &new {
            Some(object) => state.objects.insert(key.clone(), object.clone()),
            None => state.objects.remove(key),
        };
        let (kind, object) = match (new, &previous) {
            (Some(object), None) => (EventKind::Added, object),
            (Some(object), Some(_)) => (EventKind::Modified, object),
            (None, Some(previous)) => (EventKind::Deleted, Arc::new(previous.deleted_at(version))),
            (None, None) => return None,
        };
        let event = Arc::new(Event { kind, object, previous });
        state.history.push_back((version, event.clone()));
        state.version = version;
        if state.history.len() > self.limit + SLACK {
            for _ in 0..=SLACK {
                if let Some((forgotten, _)) = state.history.pop_front() {
                    state.floor = forgotten;
                }
            }
        }
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
        self.state.write().objects.insert(object.key.clone(), object);
    }
}

fn page(
    objects: &Objects,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
    mut keep: impl FnMut(&Stored) -> bool,
) -> (Vec<Arc<Stored>>, usize) {
    let from = match after {
        Some(after) if after >= prefix => Bound::Excluded(after),
        _ => Bound::Included(prefix),
    };
    let mut found = Vec::new();
    let mut rest =
        objects.range::<str, _>((from, Bound::Unbounded)).take_while(|(key, _)| key.starts_with(prefix));
    for (_, object) in rest.by_ref() {
        if keep(object) {
            found.push(object.clone());
            if found.len() == limit {
                break;
            }
        }
    }
    (found, rest.count())
}
