//! The agent's state: its works, which reports wait to be published and which records wait to be stored. No I/O.
//!
//! Each bundle id has one entry ([`entries`]) with the state of its report ([`send_state`]) and of its record
//! ([`persist_state`]). The agent's tasks call the methods here and do the I/O: [`AgentState::next_report`] and its
//! [`AgentState::ack`] or [`AgentState::nack`] for the publisher, [`AgentState::begin_round`],
//! [`AgentState::take_due`] and [`AgentState::finish_writes`] for the writer.

mod entries;
mod persist_state;
mod report;
mod resync;
mod send_state;
mod sequence;

use std::collections::{HashMap, HashSet, VecDeque};

use aro_base::Timestamp;
use aro_bundle::{SequenceId, status_hash};
use aro_crds::work::v1::ManifestWorkStatus;
use aro_work_engine::Times;

use crate::record::{ObservedStatus, Record};
use entries::Entries;
pub use report::{Rejection, Report};
use send_state::Cause;
use sequence::Sequence;

/// Rejections kept for publishing; a further one replaces the oldest.
const MAX_REJECTIONS: usize = 1000;

/// The state of one agent.
#[derive(Debug, Default)]
pub struct AgentState {
    entries: Entries,
    /// Bundle ids by the names of their works.
    names: HashMap<String, String>,
    /// Ids with a rejection, oldest first.
    rejected: VecDeque<String>,
    sequence: Sequence,
}

impl AgentState {
    /// Continues from the records of an earlier process.
    pub fn load(records: Vec<Record>) -> Self {
        let mut state = Self::default();
        let last = records
            .iter()
            .filter_map(|record| record.observed.as_ref()?.sequence.as_deref())
            .filter_map(SequenceId::parse);
        state.sequence = Sequence::after(last.max());
        for record in records {
            state.names.insert(record.name.clone(), record.id.clone());
            let id = record.id.clone();
            state.entries.edit(&id, |entry| {
                if record.has_unacked_report() {
                    entry.send = entry.send.request(Cause::Change);
                }
                entry.record = Some(record);
            });
        }
        state
    }

    pub fn get(&self, id: &str) -> Option<&Record> {
        self.entries.record(id)
    }

    /// Whether there is anything to report about a bundle.
    pub fn knows(&self, id: &str) -> bool {
        self.entries.get(id).is_some_and(|entry| entry.record.is_some() || entry.rejection.is_some())
    }

    /// How many works there are.
    pub fn len(&self) -> usize {
        self.entries.works()
    }

    /// How many reports wait.
    pub fn queued(&self) -> usize {
        self.entries.queued()
    }

    /// Takes over a desired state that the engine gets at once. If another work has the name, the id becomes the name.
    /// Returns the record as it is kept.
    pub fn upsert(&mut self, record: Record) -> Record {
        self.replace(record, false)
    }

    /// Takes over a desired state that the engine gets once it is stored ([`AgentState::finish_writes`]).
    pub fn upsert_stored_first(&mut self, record: Record) -> Record {
        self.replace(record, true)
    }

    fn replace(&mut self, mut record: Record, engine_waits: bool) -> Record {
        if self.names.get(&record.name).is_some_and(|owner| *owner != record.id) {
            record.name.clone_from(&record.id);
        }
        self.drop_rejection(&record.id);
        self.names.insert(record.name.clone(), record.id.clone());
        self.entries.edit(&record.id, |entry| {
            entry.record = Some(record.clone());
            entry.persist = entry.persist.change(engine_waits);
        });
        record
    }

    /// Records that a bundle cannot be applied. The work of an earlier version stays.
    pub fn reject(&mut self, record: Record, reason: String) {
        let id = record.id.clone();
        self.drop_rejection(&id);
        if self.rejected.len() >= MAX_REJECTIONS
            && let Some(oldest) = self.rejected.pop_front()
        {
            self.entries.edit(&oldest, |entry| entry.rejection = None);
        }
        self.rejected.push_back(id.clone());
        self.entries.edit(&id, |entry| {
            entry.rejection = Some(Rejection { record, reason });
            entry.send = entry.send.request(Cause::Change);
        });
    }

    fn drop_rejection(&mut self, id: &str) {
        if self.entries.edit(id, |entry| entry.rejection.take()).is_some() {
            self.rejected.retain(|rejected| rejected != id);
        }
    }

    /// Records the status that the engine reports for a work.
    pub fn record_status(&mut self, name: &str, generation: i64, status: ManifestWorkStatus, times: Times) {
        let Some(id) = self.names.get(name) else { return };
        self.entries.edit(id, |entry| {
            let Some(record) = entry.record.as_mut().filter(|record| !record.deleted) else { return };
            let sequence = record.observed.take().and_then(|observed| observed.sequence);
            record.observed = Some(ObservedStatus {
                version: i32::try_from(generation).unwrap_or(record.version),
                hash: status_hash(&status),
                status,
                applied_at: times.applied,
                observed_at: times.observed,
                sequence,
                acked: false,
            });
            entry.changed();
        });
    }

    /// Records that nothing of a work is left on the cluster. Returns the record if the work is not being deleted: it was
    /// received again meanwhile, and the engine has to apply it.
    pub fn record_deleted(&mut self, name: &str) -> Option<Record> {
        let id = self.names.get(name)?;
        self.entries.edit(id, |entry| {
            let record = entry.record.as_mut()?;
            if !record.deleting {
                return Some(record.clone());
            }
            record.deleted = true;
            entry.changed();
            None
        })
    }

    /// Queues the last status of a work even if the broker has acknowledged it.
    pub fn request_status(&mut self, id: &str) {
        if self.get(id).is_some_and(|record| record.deleted || record.observed.is_some()) {
            self.entries.edit(id, |entry| entry.send = entry.send.request(Cause::Request));
        }
    }

    /// The server has a status with this sequence id: later ones are above it.
    pub fn raise_sequence(&mut self, known: SequenceId) {
        self.sequence.raise_above(known);
    }

    /// Takes the next report. It is in flight until [`AgentState::ack`] or [`AgentState::nack`].
    pub fn next_report(&mut self, now: Timestamp) -> Option<(String, Report)> {
        loop {
            let id = self.entries.pop_queued()?;
            let sequence = &mut self.sequence;
            let report = self.entries.edit(&id, |entry| entry.start_report(|| sequence.next(now)));
            if let Some(report) = report {
                return Some((id, report));
            }
        }
    }

    /// The broker acknowledged a report. A work whose deletion was reported is forgotten.
    pub fn ack(&mut self, id: &str, report: &Report) {
        match report {
            Report::Rejected { rejection, .. } => {
                let newest = self.entries.get(id).and_then(|entry| entry.rejection.as_ref());
                if newest == Some(rejection) {
                    self.drop_rejection(id);
                }
            }
            Report::Deleted { record, .. } => {
                // A bundle received again meanwhile is another work.
                if self.get(id).is_some_and(|current| current.deleted) {
                    self.names.remove(&record.name);
                    self.entries.edit(id, |entry| {
                        entry.record = None;
                        entry.persist = entry.persist.change(false);
                    });
                }
            }
            Report::Status { record: published, .. } => self.entries.edit(id, |entry| {
                let current = entry.record.as_mut().and_then(|record| record.observed.as_mut());
                if let (Some(current), Some(published)) = (current, &published.observed)
                    && current.hash == published.hash
                    && current.version == published.version
                {
                    current.acked = true;
                    entry.persist = entry.persist.change(false);
                }
            }),
        }
        self.entries.edit(id, |entry| entry.send = entry.send.ack());
    }

    /// A report was not delivered: it is queued again.
    pub fn nack(&mut self, id: &str, report: &Report) {
        self.entries.edit(id, |entry| entry.send = entry.send.nack(report.cause()));
    }

    /// Begins a round of writes and selects its records. Returns whether records are left for the next round.
    pub fn begin_round(&mut self) -> bool {
        for id in self.entries.writes().changed() {
            self.entries.edit(&id, |entry| entry.persist = entry.persist.begin_round(entry.is_settled()));
        }
        self.entries.writes().has_changed()
    }

    /// Begins the last round, which leaves nothing for a next one.
    pub fn begin_last_round(&mut self) {
        for id in self.entries.writes().changed() {
            self.entries.edit(&id, |entry| entry.persist = entry.persist.begin_round(true));
        }
    }

    /// Takes up to `limit` records of this round. `None` in place of a record deletes its document.
    pub fn take_due(&mut self, limit: usize) -> Vec<(String, Option<Record>)> {
        let due = self.entries.writes().due(limit);
        let take = |id: String| {
            let record = self.entries.edit(&id, |entry| {
                entry.persist = entry.persist.begin_write();
                entry.record.clone()
            });
            (id, record)
        };
        due.into_iter().map(take).collect()
    }

    /// Ends the writes of taken records; those in `failed` are due again. Returns the records that the engine gets now.
    pub fn finish_writes(&mut self, taken: &[String], failed: &[String]) -> Vec<Record> {
        let failed: HashSet<&String> = failed.iter().collect();
        let mut released = Vec::new();
        for id in taken {
            self.entries.edit(id, |entry| {
                if failed.contains(id) {
                    entry.persist = entry.persist.failed();
                    return;
                }
                let (persist, release) = entry.persist.written();
                entry.persist = persist;
                if release {
                    released.extend(entry.record.clone().filter(|record| !record.deleted));
                }
            });
        }
        released
    }
}

#[cfg(test)]
mod tests;
