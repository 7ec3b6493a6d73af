//! The bundles that no agent has confirmed yet, built from the change feed.
//!
//! Every replica follows the feed and so has the whole backlog without polling the store.

use std::collections::HashMap;
use std::sync::Arc;

use aro_base::Timestamp;
use parking_lot::Mutex;

use crate::rows::{Bundle, LONGEST_PAUSE};

/// One unconfirmed bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unconfirmed {
    /// Its consumer.
    pub consumer: Arc<str>,
    /// When its desired state was stored.
    pub since: Timestamp,
    /// When its next attempt is due.
    pub next_attempt: Timestamp,
    /// Whether it is being deleted.
    pub deleting: bool,
}

impl Unconfirmed {
    /// The backlog entry of a row; `None` if its agent has confirmed it.
    pub fn of(row: &Bundle) -> Option<Self> {
        row.is_undelivered().then(|| Self {
            consumer: row.consumer_name.as_str().into(),
            since: row.deleted_at.unwrap_or(row.delivery.stored).0,
            next_attempt: row.delivery.next_attempt.map_or(Timestamp::MAX, |next| next.0),
            deleting: row.is_deleting(),
        })
    }
}

/// The size of the backlog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Entries that have waited too long.
    pub late: usize,
    /// All entries.
    pub total: usize,
    /// Since when the oldest waits.
    pub oldest: Option<Timestamp>,
}

/// All unconfirmed bundles.
#[derive(Debug, Default)]
pub struct Backlog(Mutex<HashMap<Arc<str>, Unconfirmed>>);

impl Backlog {
    /// Sets the entry of a bundle, or removes it.
    pub fn update(&self, id: &str, unconfirmed: Option<Unconfirmed>) {
        let mut all = self.0.lock();
        match unconfirmed {
            Some(entry) => {
                all.insert(id.into(), entry);
            }
            None => {
                all.remove(id);
            }
        }
    }

    /// All ids, oldest first.
    pub fn ids(&self) -> Vec<Arc<str>> {
        let all = self.0.lock();
        let mut ids: Vec<(Timestamp, Arc<str>)> =
            all.iter().map(|(id, entry)| (entry.since, id.clone())).collect();
        ids.sort();
        ids.into_iter().map(|(_, id)| id).collect()
    }

    /// The ids whose attempt is due, oldest first. Their next attempt is postponed a little, so that a slow store is not
    /// queried twice.
    pub fn take_due(&self, now: Timestamp) -> Vec<Arc<str>> {
        let mut all = self.0.lock();
        let mut ids: Vec<(Timestamp, Arc<str>)> = Vec::new();
        // A time further ahead than any pause comes from a wrong clock.
        let ahead = now.saturating_add(LONGEST_PAUSE).unwrap_or(Timestamp::MAX);
        let due = |entry: &Unconfirmed| entry.next_attempt <= now || entry.next_attempt > ahead;
        for (id, entry) in all.iter_mut().filter(|(_, entry)| due(entry)) {
            entry.next_attempt =
                now.saturating_add(aro_base::SignedDuration::from_secs(2)).unwrap_or(Timestamp::MAX);
            ids.push((entry.since, id.clone()));
        }
        ids.sort();
        ids.into_iter().map(|(_, id)| id).collect()
    }

    /// Removes all entries; the feed is read from its start.
    pub fn clear(&self) {
        self.0.lock().clear();
    }

    /// Counts the backlog; late entries are those since `before` or earlier.
    pub fn summary(&self, before: Timestamp) -> Summary {
        let all = self.0.lock();
        let late = all.values().filter(|entry| entry.since <= before).count();
        Summary { late, total: all.len(), oldest: all.values().map(|entry| entry.since).min() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn unconfirmed_bundles_are_due_in_order_and_removed_once_confirmed() {
        let backlog = Backlog::default();
        let entry = |since, next| Unconfirmed {
            consumer: "c".into(),
            since: at(since),
            next_attempt: at(next),
            deleting: false,
        };
        backlog.update("b", Some(entry(2, 10)));
        backlog.update("a", Some(entry(5, 10)));
        backlog.update("c", Some(entry(1, 20)));
        let names = |ids: Vec<Arc<str>>| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(backlog.take_due(at(10))), ["b", "a"]);
        assert!(backlog.take_due(at(10)).is_empty(), "taken once");
        assert_eq!(names(backlog.ids()), ["c", "b", "a"]);
        let summary = |late, total, oldest| Summary { late, total, oldest: Some(at(oldest)) };
        assert_eq!(backlog.summary(at(2)), summary(2, 3, 1));
        backlog.update("c", None);
        assert_eq!(backlog.summary(at(2)), summary(1, 2, 2));
    }
}
