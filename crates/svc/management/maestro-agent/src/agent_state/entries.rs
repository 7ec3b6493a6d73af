//! One entry per work, and the indexes derived from the entries' states.
//!
//! [`Entries::edit`] is the only way to change an entry: it keeps the indexes in step and removes an entry that holds
//! nothing.

use std::collections::BTreeMap;

use aro_bundle::SequenceId;

use super::persist_state::{PersistState, WriteIndex};
use super::report::{Rejection, Report};
use super::send_state::{Cause, SendQueue, SendState};
use crate::record::Record;

/// Everything known about one bundle id.
#[derive(Debug, Default)]
pub struct Entry {
    /// The work, unless all that is left of the id is a rejection or a document to delete.
    pub record: Option<Record>,
    /// The newest bundle of this id that cannot be applied.
    pub rejection: Option<Rejection>,
    pub send: SendState,
    pub persist: PersistState,
}

impl Entry {
    /// The work's state changed: store it and report it.
    pub fn changed(&mut self) {
        self.persist = self.persist.change(false);
        self.send = self.send.request(Cause::Change);
    }

    /// Starts the queued report. Nothing if there is nothing to report.
    pub fn start_report(&mut self, next_sequence: impl FnOnce() -> SequenceId) -> Option<Report> {
        let SendState::Queued(cause) = self.send else { return None };
        if let Some(rejection) = &self.rejection {
            let unreported = self.record.as_ref().is_some_and(Record::has_unacked_report);
            let remaining = (unreported || cause == Cause::Request).then_some(cause);
            self.send = self.send.start(remaining);
            return Some(Report::Rejected {
                rejection: Box::new(rejection.clone()),
                sequence: next_sequence(),
            });
        }
        let report = self.record.as_mut().and_then(|record| Report::of(record, cause, next_sequence));
        self.send = if report.is_some() { self.send.start(None) } else { self.send.skip() };
        report
    }

    /// Whether the record is not about to change: its last status was acknowledged, or none is expected.
    pub fn is_settled(&self) -> bool {
        self.record.as_ref().is_none_or(|record| {
            record.deleted || record.observed.as_ref().is_some_and(|observed| observed.acked)
        })
    }

    fn is_empty(&self) -> bool {
        self.record.is_none()
            && self.rejection.is_none()
            && self.send == SendState::Idle
            && self.persist == PersistState::Stored
    }
}

/// All entries by bundle id.
#[derive(Debug, Default)]
pub struct Entries {
    by_id: BTreeMap<String, Entry>,
    works: usize,
    queue: SendQueue,
    writes: WriteIndex,
}

impl Entries {
    /// Changes an entry, which is created if there is none.
    pub fn edit<R>(&mut self, id: &str, change: impl FnOnce(&mut Entry) -> R) -> R {
        let entry = self.by_id.entry(id.to_owned()).or_default();
        let (send, persist, had_record) = (entry.send, entry.persist, entry.record.is_some());
        let result = change(entry);
        self.queue.update(id, send, entry.send);
        self.writes.update(id, persist, entry.persist);
        self.works = self.works + usize::from(entry.record.is_some()) - usize::from(had_record);
        if entry.is_empty() {
            self.by_id.remove(id);
        }
        result
    }

    pub fn get(&self, id: &str) -> Option<&Entry> {
        self.by_id.get(id)
    }

    pub fn record(&self, id: &str) -> Option<&Record> {
        self.by_id.get(id)?.record.as_ref()
    }

    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.by_id.values().filter_map(|entry| entry.record.as_ref())
    }

    /// How many works there are.
    pub fn works(&self) -> usize {
        self.works
    }

    /// How many reports wait.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Removes the first id from the send queue. The caller takes its entry out of [`SendState::Queued`].
    pub fn pop_queued(&mut self) -> Option<String> {
        self.queue.pop()
    }

    pub fn writes(&self) -> &WriteIndex {
        &self.writes
    }

    /// Panics unless the indexes are what the entries' states make them.
    #[cfg(test)]
    pub fn check(&self) {
        let mut queued: Vec<&str> = self.queue.ids().collect();
        queued.sort_unstable();
        let expected = self.by_id.iter().filter(|(_, entry)| entry.send.is_queued());
        assert_eq!(queued, expected.map(|(id, _)| id.as_str()).collect::<Vec<_>>());
        assert_eq!(self.works, self.records().count());
        for (id, entry) in &self.by_id {
            assert!(self.writes.holds(id, entry.persist), "{id}: {:?}", entry.persist);
            assert!(!entry.is_empty(), "{id} holds nothing");
        }
        for id in self.writes.changed().iter().chain(&self.writes.due(usize::MAX)) {
            assert!(self.by_id.contains_key(id), "{id} is to be written and has no entry");
        }
    }
}
