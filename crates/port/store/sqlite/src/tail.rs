//! The newest changes of every container, kept after their commit: a reader that follows a feed closely is answered from here,
//! without a thread, a statement or a copy of the bodies.
//!
//! It is only ever a stretch of the feed without a gap: everything after [`Recent::from`] up to [`Recent::latest`]. A
//! reader that needs more asks the database. It may be a moment behind the database, never ahead of it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aro_base::Timestamp;
use aro_store::adapter::Place;
use aro_store::{Change, ChangePage, Container};

/// How many changes of one container are kept.
const CHANGES: usize = 1024;

/// How many bytes of bodies they may hold. Most are shared with the cache of documents.
const BYTES: usize = 4 * 1024 * 1024;

/// A change and its number in the feed.
pub(crate) struct FeedChange {
    pub(crate) container: Container,
    pub(crate) seq: i64,
    pub(crate) change: Change,
}

#[derive(Default)]
struct Recent {
    /// Everything after this is here.
    from: i64,
    latest: i64,
    changes: VecDeque<(i64, Change)>,
    bytes: usize,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Tail(Mutex<HashMap<Container, Recent>>);

impl Tail {
    /// Adds what was committed, in the order of its numbers.
    pub(crate) fn add(&self, changes: Vec<FeedChange>) {
        let mut all = self.lock();
        for FeedChange { container, seq, change } in changes {
            let recent = all.entry(container).or_default();
            if recent.latest != seq - 1 {
                *recent = Recent { from: seq - 1, ..Recent::default() };
            }
            recent.push(seq, change);
        }
    }

    /// What comes after a place; `None` if that is not known here.
    pub(crate) fn after(
        &self,
        container: Container,
        place: Place,
        limit: usize,
        now: Timestamp,
    ) -> Option<Page> {
        let all = self.lock();
        let recent = all.get(&container)?;
        // On its way from the beginning a consumer does not get what was deleted before: the database knows how.
        let known = (recent.from..=recent.latest).contains(&place.seq) && place.until <= place.seq;
        known.then(|| recent.after(place.seq, limit, now))
    }

    /// Forgets everything: the database no longer delivers some deletions, and the tail must not deliver more than it does.
    pub(crate) fn clear(&self) {
        for recent in self.lock().values_mut() {
            *recent = Recent { from: recent.latest, latest: recent.latest, ..Recent::default() };
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Container, Recent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Changes, and the number up to which they reach.
pub(crate) struct Page {
    changes: Vec<Change>,
    seq: i64,
    more: bool,
}

impl Page {
    /// As the store returns it to a reader with a cursor.
    pub(crate) fn into_change_page(
        self,
        cursor: &aro_store::Cursor,
        life: &str,
        container: Container,
    ) -> ChangePage {
        let Self { changes, seq, more } = self;
        let next =
            if changes.is_empty() { cursor.clone() } else { Place { seq, until: 0 }.write(life, container) };
        ChangePage { changes, next, more }
    }
}

impl Recent {
    fn push(&mut self, seq: i64, change: Change) {
        self.bytes += size(&change);
        self.changes.push_back((seq, change));
        self.latest = seq;
        while self.changes.len() > CHANGES || self.bytes > BYTES {
            let Some((seq, change)) = self.changes.pop_front() else { break };
            self.bytes -= size(&change);
            self.from = seq;
        }
    }

    fn after(&self, seq: i64, limit: usize, now: Timestamp) -> Page {
        let begin = self.changes.partition_point(|(one, _)| *one <= seq);
        let mut left = self.changes.range(begin..).filter(|(_, change)| is_told(change, now)).peekable();
        let mut page = Page { changes: Vec::new(), seq: self.latest, more: false };
        while let Some((seq, change)) = left.next() {
            page.changes.push(change.clone());
            if page.changes.len() >= limit.max(1) && left.peek().is_some() {
                page.seq = *seq;
                page.more = true;
                break;
            }
        }
        page
    }
}

/// Expiry ends a document without a word.
fn is_told(change: &Change, now: Timestamp) -> bool {
    match change {
        Change::Upsert(document) => document.expires.is_none_or(|expires| expires > now),
        Change::Delete { .. } => true,
    }
}

fn size(change: &Change) -> usize {
    match change {
        Change::Upsert(document) => document.body.get().len(),
        Change::Delete { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aro_store::{DocId, DocKey, PartitionKey};

    const THINGS: Container = Container::new("things");

    fn change(seq: i64) -> FeedChange {
        let key = DocKey { container: THINGS, partition: PartitionKey::new("p"), id: DocId::new("a") };
        let change = Change::Delete {
            key,
            resource_type: String::new(),
            resource_id: String::new(),
            version: seq.unsigned_abs(),
        };
        FeedChange { container: THINGS, seq, change }
    }

    /// The numbers after a place, and whether there is more.
    fn after(tail: &Tail, seq: i64, limit: usize) -> Option<(Vec<u64>, i64, bool)> {
        let page = tail.after(THINGS, Place { seq, until: 0 }, limit, Timestamp::UNIX_EPOCH)?;
        Some((page.changes.iter().map(Change::version).collect(), page.seq, page.more))
    }

    #[test]
    fn only_what_is_known_without_a_gap_is_told() {
        let tail = Tail::default();
        assert_eq!(after(&tail, 0, 10), None, "nothing is known yet");
        tail.add((5..=8).map(change).collect());
        assert_eq!(after(&tail, 3, 10), None, "4 is not known");
        assert_eq!(after(&tail, 4, 10), Some((vec![5, 6, 7, 8], 8, false)));
        assert_eq!(after(&tail, 4, 2), Some((vec![5, 6], 6, true)));
        assert_eq!(after(&tail, 6, 2), Some((vec![7, 8], 8, false)));
        assert_eq!(after(&tail, 8, 2), Some((vec![], 8, false)));
        assert_eq!(after(&tail, 9, 2), None, "the database was faster");
        let beginner = Place { seq: 4, until: 7 };
        assert!(tail.after(THINGS, beginner, 10, Timestamp::UNIX_EPOCH).is_none());
        tail.add(vec![change(20)]);
        assert_eq!(after(&tail, 8, 10), None, "something is missing between");
        assert_eq!(after(&tail, 19, 10), Some((vec![20], 20, false)));
        tail.clear();
        assert_eq!((after(&tail, 19, 10), after(&tail, 20, 10)), (None, Some((vec![], 20, false))));
    }

    #[test]
    fn it_keeps_a_bounded_number() {
        let tail = Tail::default();
        tail.add((1..=CHANGES as i64 + 10).map(change).collect());
        assert!(after(&tail, 9, 1).is_none());
        assert_eq!(after(&tail, 10, 1), Some((vec![11], 11, true)));
    }
}
