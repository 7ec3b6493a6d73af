//! The log of mutations: every committed change of a resource, so that "exactly once in effect" can be counted.
//!
//! Kept in memory within a byte budget, oldest entries first to go; it describes this process's life and is no audit record.

use std::collections::VecDeque;

use aro_base::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;

/// What a mutation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    Created,
    Updated,
    Deleted,
}

/// One committed change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mutation {
    /// Grows by one with each entry.
    pub sequence: u64,
    pub time: Timestamp,
    pub change: Change,
    pub resource_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// The log.
#[derive(Debug)]
pub struct Mutations {
    budget: usize,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    entries: VecDeque<Mutation>,
    bytes: usize,
    next: u64,
}

impl Mutations {
    /// A log of at most this many bytes.
    pub fn within(budget: usize) -> Self {
        Self { budget, log: Mutex::default() }
    }

    pub fn record(
        &self,
        time: Timestamp,
        change: Change,
        resource_id: &str,
        correlation_id: Option<&str>,
        principal: Option<&str>,
    ) {
        let mut log = self.log.lock();
        let sequence = log.next;
        log.next += 1;
        let entry = Mutation {
            sequence,
            time,
            change,
            resource_id: resource_id.to_owned(),
            correlation_id: correlation_id.map(str::to_owned),
            principal: principal.map(str::to_owned),
        };
        log.bytes += entry.size();
        log.entries.push_back(entry);
        while log.bytes > self.budget {
            let Some(oldest) = log.entries.pop_front() else { break };
            log.bytes -= oldest.size();
        }
    }

    /// Entries from a sequence on, at most `limit`.
    pub fn since(&self, sequence: u64, limit: usize) -> Vec<Mutation> {
        let log = self.log.lock();
        log.entries.iter().filter(|entry| entry.sequence >= sequence).take(limit).cloned().collect()
    }
}

impl Mutation {
    fn size(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.resource_id.len() + text(&self.correlation_id) + text(&self.principal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_stays_within_its_budget_and_sequences_go_on() {
        let log = Mutations::within(2000);
        for n in 0..100 {
            log.record(Timestamp::UNIX_EPOCH, Change::Created, &format!("/r/{n}"), None, Some("p"));
        }
        let kept = log.since(0, 1000);
        assert!(kept.len() < 20, "{}", kept.len());
        assert_eq!(kept.last().map(|entry| entry.sequence), Some(99));
        assert_eq!(log.since(98, 1000).len(), 2);
    }
}
