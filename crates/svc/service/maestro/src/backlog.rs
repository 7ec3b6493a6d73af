//! What no agent has confirmed yet, as the change feed tells it.
//!
//! Every replica follows the feed and so knows all of it, without asking the store again and again.

use std::collections::HashMap;
use std::sync::Arc;

use aro_base::Timestamp;
use parking_lot::Mutex;

use crate::rows::LONGEST_PAUSE;

/// What is known of one unconfirmed bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unconfirmed {
    /// Its consumer.
    pub consumer: Arc<str>,
    /// Since when it is wanted so.
    pub since: Timestamp,
    /// When it is published again.
    pub next_attempt: Timestamp,
    /// Whether it is to go.
    pub deleting: bool,
}

/// All unconfirmed bundles.
#[derive(Debug, Default)]
pub struct Backlog(Mutex<HashMap<Arc<str>, Unconfirmed>>);

impl Backlog {
    /// A row is unconfirmed, or (`None`) is no more.
    pub fn see(&self, id: &str, unconfirmed: Option<Unconfirmed>) {
        let mut all = self.0.lock();
        match unconfirmed {
            Some(one) => {
                all.insert(id.into(), one);
            }
            None => {
                all.remove(id);
            }
        }
    }

    /// Everything, oldest first.
    pub fn all(&self) -> Vec<Arc<str>> {
        let all = self.0.lock();
        let mut ids: Vec<(Timestamp, Arc<str>)> =
            all.iter().map(|(id, one)| (one.since, id.clone())).collect();
        ids.sort();
        ids.into_iter().map(|(_, id)| id).collect()
    }

    /// What is due, oldest first. Who was asked for is put off a little, so that a slow store is not asked twice.
    pub fn due(&self, now: Timestamp) -> Vec<Arc<str>> {
        let mut all = self.0.lock();
        let mut ids: Vec<(Timestamp, Arc<str>)> = Vec::new();
        // What is further ahead than any pause was written by a clock that was wrong.
        let ahead = now.saturating_add(LONGEST_PAUSE).unwrap_or(Timestamp::MAX);
        let due = |one: &Unconfirmed| one.next_attempt <= now || one.next_attempt > ahead;
        for (id, one) in all.iter_mut().filter(|(_, one)| due(one)) {
            one.next_attempt =
                now.saturating_add(aro_base::SignedDuration::from_secs(2)).unwrap_or(Timestamp::MAX);
            ids.push((one.since, id.clone()));
        }
        ids.sort();
        ids.into_iter().map(|(_, id)| id).collect()
    }

    /// Forgets everything: it is read anew.
    pub fn clear(&self) {
        self.0.lock().clear();
    }

    /// How many have been waiting since before a moment, how many there are, and the oldest's moment.
    pub fn waiting(&self, before: Timestamp) -> (usize, usize, Option<Timestamp>) {
        let all = self.0.lock();
        let late = all.values().filter(|one| one.since <= before).count();
        (late, all.len(), all.values().map(|one| one.since).min())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn what_is_unconfirmed_is_due_in_the_order_it_came_and_gone_once_confirmed() {
        let backlog = Backlog::default();
        let one = |since, next| Unconfirmed {
            consumer: "c".into(),
            since: at(since),
            next_attempt: at(next),
            deleting: false,
        };
        backlog.see("b", Some(one(2, 10)));
        backlog.see("a", Some(one(5, 10)));
        backlog.see("c", Some(one(1, 20)));
        let names = |ids: Vec<Arc<str>>| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(backlog.due(at(10))), ["b", "a"]);
        assert!(backlog.due(at(10)).is_empty(), "asked for once");
        assert_eq!(names(backlog.all()), ["c", "b", "a"]);
        assert_eq!(backlog.waiting(at(2)), (2, 3, Some(at(1))));
        backlog.see("c", None);
        assert_eq!(backlog.waiting(at(2)), (1, 2, Some(at(2))));
    }
}
