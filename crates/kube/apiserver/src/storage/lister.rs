//! Lists of a watch cache as it is at one version, without holding its lock for long.
//!
//! The log thread needs the lock of a watch cache to publish. A list therefore copies pointers in chunks, and everything else,
//! selectors above all, runs without the lock. Writes may happen between two chunks: the list copies their events, too, and
//! undoes them in the chunks that follow.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::object::Stored;
use super::watch_cache::{Event, EventKind, Listed, TooOld, WatchCache};

/// Objects or events that are copied under the lock at once.
const CHUNK: usize = 1024;
/// The least that is worth taking the lock.
const LEAST: usize = 64;

/// A list that is being read.
pub struct Lister<'a> {
    cache: &'a WatchCache,
    prefix: &'a str,
    limit: usize,
    chunk: usize,
    /// The key before the next chunk.
    after: Option<Arc<str>>,
    /// The list shows this version.
    version: u64,
    /// Events up to here are undone.
    undone: u64,
    /// What events after the version changed, as it was at the version.
    before: BTreeMap<Arc<str>, Option<Arc<Stored>>>,
    /// How many objects more there were at the version than are there now.
    difference: i64,
    /// How many objects there are below the prefix, if the list begins with the first.
    total: Option<usize>,
    from_start: bool,
    found: Vec<Arc<Stored>>,
    more: bool,
    ended: bool,
}

impl<'a> Lister<'a> {
    pub(super) fn new(
        cache: &'a WatchCache,
        version: u64,
        prefix: &'a str,
        after: Option<&str>,
        limit: usize,
    ) -> Self {
        Self {
            cache,
            prefix,
            limit,
            chunk: limit.saturating_add(1).clamp(LEAST, CHUNK),
            after: after.filter(|after| *after >= prefix).map(Into::into),
            version,
            undone: version,
            before: BTreeMap::new(),
            difference: 0,
            total: None,
            from_start: after.is_none(),
            found: Vec::new(),
            more: false,
            ended: false,
        }
    }

    /// One chunk with everything that is there at this version: for a list whose history is cut faster than it is read.
    pub(super) fn in_one_chunk(mut self) -> Self {
        self.chunk = usize::MAX;
        self
    }

    /// Reads a chunk and keeps what `keep` wants. Returns whether the list is complete.
    ///
    /// # Errors
    ///
    /// When the events since the version of the list are no longer known.
    pub fn step(&mut self, mut keep: impl FnMut(&Stored) -> bool) -> Result<bool, TooOld> {
        if self.ended {
            return Ok(true);
        }
        for object in self.next_chunk()? {
            if self.found.len() >= self.limit {
                self.more = true;
                self.ended = true;
                break;
            }
            if keep(&object) {
                self.found.push(object);
            }
        }
        Ok(self.ended)
    }

    /// What was found.
    pub fn finish(self) -> Listed {
        Listed { version: self.version, objects: self.found, more: self.more, total: self.total }
    }

    fn next_chunk(&mut self) -> Result<Vec<Arc<Stored>>, TooOld> {
        let objects = loop {
            let (events, copied) =
                self.cache.copy(self.undone, self.prefix, self.after.as_deref(), self.chunk)?;
            self.undo(&events);
            if let Some(copied) = copied {
                if self.from_start && self.total.is_none() {
                    let total = i64::try_from(copied.count).unwrap_or(i64::MAX);
                    self.total = usize::try_from(total.saturating_add(self.difference)).ok();
                }
                break copied.objects;
            }
        };
        let last = objects.last().map(|last| last.key.clone()).filter(|_| objects.len() >= self.chunk);
        let objects = self.as_at_version(objects, last.as_deref());
        match last {
            Some(last) => self.after = Some(last),
            None => self.ended = true,
        }
        Ok(objects)
    }

    fn undo(&mut self, events: &[Arc<Event>]) {
        for event in events {
            self.undone = event.object.version;
            if !event.object.key.starts_with(self.prefix) {
                continue;
            }
            match event.kind {
                EventKind::Added => self.difference -= 1,
                EventKind::Deleted => self.difference += 1,
                EventKind::Modified => {}
            }
            // The first event after the version knows what was there at the version.
            self.before.entry(event.object.key.clone()).or_insert_with(|| event.previous.clone());
        }
    }

    /// A chunk of objects as they were at the version of the list. `last`: the last key it covers, or all that follow.
    fn as_at_version(&self, objects: Vec<Arc<Stored>>, last: Option<&str>) -> Vec<Arc<Stored>> {
        let from = match self.after.as_deref() {
            Some(after) => Bound::Excluded(after),
            None => Bound::Included(self.prefix),
        };
        let until = last.map_or(Bound::Unbounded, Bound::Included);
        let mut changed = self.before.range::<str, _>((from, until)).peekable();
        if changed.peek().is_none() {
            return objects;
        }
        let mut then: BTreeMap<Arc<str>, Arc<Stored>> =
            objects.into_iter().map(|object| (object.key.clone(), object)).collect();
        for (key, before) in changed {
            match before {
                Some(before) => then.insert(key.clone(), before.clone()),
                None => then.remove(key),
            };
        }
        then.into_values().collect()
    }
}
