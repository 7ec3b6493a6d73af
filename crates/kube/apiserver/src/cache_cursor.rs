//! A cursor into a watch cache, for indexes that catch up before each use.
//!
//! An index that is not used costs nothing and needs no task.

use std::sync::Arc;

use crate::storage::{EventKind, Stored, WatchCache};

/// The position of an index in the events of a watch cache.
#[derive(Debug, Default)]
pub struct CacheCursor {
    seen: Option<u64>,
}

/// A change that an index applies.
#[derive(Debug)]
pub enum IndexChange<'a> {
    /// Clear the index: every object follows.
    Reset,
    /// The current object. May be repeated.
    Put(&'a Arc<Stored>),
    /// The object of this key was deleted.
    Gone(&'a str),
}

impl CacheCursor {
    pub fn catch_up(&mut self, watch_cache: &WatchCache, mut tell: impl FnMut(IndexChange<'_>)) {
        let version = watch_cache.version();
        if self.seen == Some(version) {
            return;
        }
        if let Some(Ok(events)) = self.seen.map(|seen| watch_cache.since(seen, usize::MAX)) {
            for event in events {
                match event.kind {
                    EventKind::Deleted => tell(IndexChange::Gone(&event.object.key)),
                    EventKind::Added | EventKind::Modified => tell(IndexChange::Put(&event.object)),
                }
                self.seen = Some(event.object.version);
            }
            return;
        }
        // The first time, or behind the history. Concurrent changes follow with the next call.
        tell(IndexChange::Reset);
        for object in watch_cache.all() {
            tell(IndexChange::Put(&object));
        }
        self.seen = Some(version);
    }
}
