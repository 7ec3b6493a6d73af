//! The log of mutations: what every request and every deletion under way did to a resource, so that "exactly once in effect"
//! can be counted.
//!
//! Kept in memory within a byte budget, oldest entries first to go; it describes this process's life and is no audit record.
//! Readers hold a cursor: the sequence of the last entry they have seen. A cursor whose next entry is gone gets a [`Gap`].

use std::collections::VecDeque;

use aro_base::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;
use uuid::Uuid;

/// What a mutation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    Created,
    Updated,
    Deleted,
    /// The resource was already so, or already gone.
    Noop,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mutation {
    /// Grows by one with each entry; the first is 1.
    pub sequence: u64,
    pub time: Timestamp,
    pub outcome: Change,
    pub method: String,
    pub resource_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The object id of the principal; none where a deletion under way removed the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

/// What is recorded of a request.
#[derive(Debug, Clone, Copy)]
pub struct Cause<'a> {
    pub method: &'a str,
    pub correlation_id: Option<&'a str>,
    pub caller: Option<&'a str>,
}

impl Cause<'_> {
    /// The reconciler that completes deletions.
    pub const DELETION: Cause<'static> = Cause { method: "DELETE", correlation_id: None, caller: None };
}

/// The log.
#[derive(Debug)]
pub struct Mutations {
    budget: usize,
    instance: Uuid,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    entries: VecDeque<Mutation>,
    bytes: usize,
    last: u64,
}

/// Entries of the log, with the cursor to go on from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Slice {
    /// Names the log; another one began with a restart.
    pub instance: Uuid,
    pub entries: Vec<Mutation>,
    /// Pass this as `after` to get what follows.
    pub cursor: u64,
}

/// Entries after a cursor are gone, or the cursor is one of another log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub instance: Uuid,
    /// The cursor before the oldest entry that is kept.
    pub oldest: u64,
}

impl Mutations {
    /// A log of at most this many bytes.
    pub fn within(budget: usize) -> Self {
        Self { budget, instance: Uuid::new_v4(), log: Mutex::default() }
    }

    pub fn record(&self, time: Timestamp, outcome: Change, resource_id: &str, cause: Cause<'_>) {
        let mut log = self.log.lock();
        log.last += 1;
        let entry = Mutation {
            sequence: log.last,
            time,
            outcome,
            method: cause.method.to_owned(),
            resource_id: resource_id.to_owned(),
            correlation_id: cause.correlation_id.map(str::to_owned),
            caller: cause.caller.map(str::to_owned),
        };
        log.bytes += entry.size();
        log.entries.push_back(entry);
        while log.bytes > self.budget {
            let Some(oldest) = log.entries.pop_front() else { break };
            log.bytes -= oldest.size();
        }
    }

    /// Entries after a cursor, at most `limit`; without a cursor from the oldest that is kept.
    pub fn after(&self, cursor: Option<u64>, limit: usize) -> Result<Slice, Gap> {
        let log = self.log.lock();
        let kept = u64::try_from(log.entries.len()).unwrap_or(u64::MAX);
        let oldest = log.last - kept;
        let cursor = cursor.unwrap_or(oldest);
        if cursor < oldest || cursor > log.last {
            return Err(Gap { instance: self.instance, oldest });
        }
        let skipped = usize::try_from(cursor - oldest).unwrap_or(usize::MAX);
        let entries: Vec<Mutation> = log.entries.iter().skip(skipped).take(limit).cloned().collect();
        let cursor = entries.last().map_or(cursor, |entry| entry.sequence);
        Ok(Slice { instance: self.instance, entries, cursor })
    }

    /// Names the log.
    pub fn instance(&self) -> Uuid {
        self.instance
    }
}

impl Mutation {
    fn size(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        size_of::<Self>()
            + self.method.len()
            + self.resource_id.len()
            + text(&self.correlation_id)
            + text(&self.caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_of(entries: usize, budget: usize) -> Mutations {
        let log = Mutations::within(budget);
        for n in 0..entries {
            let cause = Cause { method: "PUT", correlation_id: None, caller: Some("p") };
            log.record(Timestamp::UNIX_EPOCH, Change::Created, &format!("/r/{n}"), cause);
        }
        log
    }

    #[test]
    fn the_log_stays_within_its_budget_and_sequences_go_on() {
        let log = log_of(100, 2000);
        let kept = log.after(None, 1000).unwrap();
        assert!(kept.entries.len() < 20, "{}", kept.entries.len());
        assert_eq!(kept.cursor, 100);
        assert_eq!(log.after(Some(98), 1000).unwrap().entries.len(), 2);
    }

    #[test]
    fn a_cursor_pages_through_the_log_and_stays_at_its_end() {
        let log = log_of(5, 1 << 20);
        let first = log.after(Some(0), 3).unwrap();
        assert_eq!((first.entries.len(), first.cursor), (3, 3));
        let second = log.after(Some(first.cursor), 3).unwrap();
        assert_eq!((second.entries.len(), second.cursor), (2, 5));
        assert_eq!(log.after(Some(5), 3).unwrap().entries, []);
    }

    #[test]
    fn a_cursor_before_the_oldest_entry_or_of_another_log_gets_a_gap() {
        let log = log_of(100, 2000);
        let gap = log.after(Some(1), 10).unwrap_err();
        assert!(gap.oldest > 1 && log.after(Some(gap.oldest), 10).is_ok(), "{gap:?}");
        assert!(log.after(Some(101), 10).is_err());
    }
}
