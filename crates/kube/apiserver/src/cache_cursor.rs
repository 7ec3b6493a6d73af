//! What happened on a shelf since one looked last: for indexes that are brought up to date when somebody asks.
//!
//! An index that nobody asks costs nothing, and needs no task.

use std::sync::Arc;

use crate::storage::{EventKind, Shelf, Stored};

/// How far one has looked.
#[derive(Debug, Default)]
pub struct Follow {
    seen: Option<u64>,
}

/// What an index is told.
#[derive(Debug)]
pub enum News<'a> {
    /// Forget everything: what is there follows.
    Reset,
    /// It is like this now. May be told more than once.
    Put(&'a Arc<Stored>),
    /// The object of this key is no more.
    Gone(&'a str),
}

impl Follow {
    pub fn catch_up(&mut self, shelf: &Shelf, mut tell: impl FnMut(News<'_>)) {
        let version = shelf.version();
        if self.seen == Some(version) {
            return;
        }
        if let Some(Ok(events)) = self.seen.map(|seen| shelf.since(seen, usize::MAX)) {
            for event in events {
                match event.kind {
                    EventKind::Deleted => tell(News::Gone(&event.object.key)),
                    EventKind::Added | EventKind::Modified => tell(News::Put(&event.object)),
                }
                self.seen = Some(event.object.version);
            }
            return;
        }
        // The first time, or so long ago that it is forgotten. What happens meanwhile is told the next time.
        tell(News::Reset);
        for object in shelf.all() {
            tell(News::Put(&object));
        }
        self.seen = Some(version);
    }
}
