//! All that the agent knows, and what it still has to say and to write down. No I/O.
//!
//! Every work has a place: in the queue of those whose status waits to be sent (once, however often it changes), and in the
//! queue of those whose record waits to be written.

mod numbers;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use aro_base::Timestamp;
use aro_bundle::{IdRange, KnownStatus, KnownVersion, SequenceId, StatusResync, status_hash};
use aro_crds::work::v1::ManifestWorkStatus;
use aro_work_engine::Times;

use crate::record::{Record, Seen};
use numbers::Numbers;

/// Refusals that wait to be told; more replace the oldest.
const MOST_REFUSALS: usize = 1000;

/// Everything known.
#[derive(Debug, Default)]
pub struct Book {
    records: BTreeMap<String, Record>,
    by_name: HashMap<String, String>,
    refusals: BTreeMap<String, Refusal>,
    sequence: Numbers,
    /// Who waits to be sent, in order, each once.
    waiting: VecDeque<String>,
    queued: BTreeSet<String>,
    /// Who is on its way.
    sending: BTreeSet<String>,
    /// Who is asked for, whether it was sent or not.
    asked: BTreeSet<String>,
    /// Whose record changed since it was written.
    unwritten: BTreeSet<String>,
    /// Those of them that waited for a whole round.
    overdue: BTreeSet<String>,
    /// Those whose record is written in this round.
    due: BTreeSet<String>,
    /// Those of whom the engine is told when they are written.
    held: BTreeSet<String>,
}

/// A bundle that could not be applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    pub record: Record,
    pub why: String,
}

/// What is to be said of a work.
#[derive(Debug, Clone, PartialEq)]
pub enum Say {
    /// How it is; `asked` if somebody wanted to know.
    Status { record: Box<Record>, sequence: SequenceId, asked: bool },
    /// It is gone.
    Gone { record: Box<Record>, sequence: SequenceId },
    /// It cannot be applied.
    Refused { refusal: Box<Refusal>, sequence: SequenceId },
}

impl Book {
    /// Goes on where an agent before left off.
    pub fn load(records: Vec<Record>) -> Self {
        let mut book = Self::default();
        let last = records
            .iter()
            .filter_map(|record| record.seen.as_ref()?.sequence.as_deref())
            .filter_map(SequenceId::parse);
        book.sequence = Numbers::after(last.max());
        for record in records {
            let unsaid = record.gone || record.seen.as_ref().is_some_and(|seen| !seen.sent);
            let id = record.id.clone();
            book.by_name.insert(record.name.clone(), id.clone());
            book.records.insert(id.clone(), record);
            if unsaid {
                book.queue(&id);
            }
        }
        book
    }

    #[cfg(test)]
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.values()
    }

    pub fn get(&self, id: &str) -> Option<&Record> {
        self.records.get(id)
    }

    /// Whether there is anything to tell about a bundle.
    pub fn knows(&self, id: &str) -> bool {
        self.records.contains_key(id) || self.refusals.contains_key(id)
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// How many wait to be sent.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Notes what is wanted, now. A name that another work has already is replaced by the id. Gives what was noted.
    pub fn note(&mut self, mut record: Record) -> Record {
        if self.by_name.get(&record.name).is_some_and(|owner| *owner != record.id) {
            record.name.clone_from(&record.id);
        }
        self.refusals.remove(&record.id);
        self.by_name.insert(record.name.clone(), record.id.clone());
        self.unwritten.insert(record.id.clone());
        self.records.insert(record.id.clone(), record.clone());
        record
    }

    /// Notes that a bundle cannot be applied.
    pub fn refuse(&mut self, record: Record, why: String) {
        if self.refusals.len() >= MOST_REFUSALS {
            self.refusals.pop_first();
        }
        let id = record.id.clone();
        self.refusals.insert(id.clone(), Refusal { record, why });
        self.queue(&id);
    }

    /// Notes what the engine says.
    pub fn saw(&mut self, name: &str, generation: i64, status: ManifestWorkStatus, times: Times) {
        let Some(record) = self.by_name.get(name).and_then(|id| self.records.get_mut(id)) else { return };
        if record.gone {
            return;
        }
        let sequence = record.seen.take().and_then(|seen| seen.sequence);
        record.seen = Some(Seen {
            version: i32::try_from(generation).unwrap_or(record.version),
            hash: status_hash(&status),
            status,
            applied: times.applied,
            observed: times.observed,
            sequence,
            sent: false,
        });
        let id = record.id.clone();
        self.unwritten.insert(id.clone());
        self.queue(&id);
    }

    /// Notes that nothing is left of a work. Gives it back if it is wanted all the same: it came again meanwhile.
    pub fn gone(&mut self, name: &str) -> Option<Record> {
        let record = self.by_name.get(name).and_then(|id| self.records.get_mut(id))?;
        if !record.deleting {
            return Some(record.clone());
        }
        record.gone = true;
        let id = record.id.clone();
        self.unwritten.insert(id.clone());
        self.queue(&id);
        None
    }

    /// The engine is told of a work when it is written down.
    pub fn hold(&mut self, id: &str) {
        self.held.insert(id.to_owned());
    }

    /// What was held and is written now: what the engine is to make of it.
    pub fn release<'a>(&mut self, written: impl Iterator<Item = &'a String>) -> Vec<Record> {
        let released = written.filter(|id| self.held.remove(*id)).collect::<Vec<_>>();
        released
            .into_iter()
            .filter_map(|id| self.records.get(id))
            .filter(|record| !record.gone)
            .cloned()
            .collect()
    }

    /// Says again what was last seen of a work.
    pub fn ask(&mut self, id: &str) {
        if self.records.get(id).is_some_and(|record| record.gone || record.seen.is_some()) {
            self.asked.insert(id.to_owned());
            self.queue(id);
        }
    }

    /// Answers a request for statuses: all of them, or those that differ from what is known. A request that says for which
    /// ids it speaks leaves out what its sender knows nothing of: nobody wants that any more, and its status, told again,
    /// makes the sender say so. Tells how many.
    pub fn resync(&mut self, request: &StatusResync, range: Option<&IdRange>) -> usize {
        let known = |one: &KnownStatus| {
            let record = self.records.get(&one.id)?;
            let seen = record.seen.as_ref()?;
            (record.gone || seen.hash != one.hash).then(|| one.id.clone())
        };
        let ids: Vec<String> = if request.status_hashes.is_empty() {
            self.records.keys().cloned().collect()
        } else {
            let listed: HashSet<&str> = request.status_hashes.iter().map(|one| one.id.as_str()).collect();
            let unlisted = range.into_iter().flat_map(|range| {
                self.records.keys().filter(|id| range.contains(id) && !listed.contains(id.as_str()))
            });
            request.status_hashes.iter().filter_map(known).chain(unlisted.cloned()).collect()
        };
        for id in &ids {
            self.ask(id);
        }
        ids.len()
    }

    /// What the server is told after a connect. `unclaimed` are works of which the cluster has something and nobody here
    /// knows anything, since a process before was killed before it wrote that down: the server sends what it wants of
    /// them, and has the rest taken away. The cluster calls works by their ids; others are left alone.
    pub fn versions(&self, unclaimed: Vec<String>) -> Vec<KnownVersion> {
        let version =
            |record: &Record| KnownVersion { id: record.id.clone(), version: record.version.into() };
        let strange = |name: &String| {
            !self.by_name.contains_key(name)
                && !self.records.contains_key(name)
                && uuid::Uuid::try_parse(name).is_ok()
        };
        let unclaimed = unclaimed.into_iter().filter(strange).map(|id| KnownVersion { id, version: 0 });
        self.records.values().map(version).chain(unclaimed).collect()
    }

    fn queue(&mut self, id: &str) {
        if !self.sending.contains(id) && self.queued.insert(id.to_owned()) {
            self.waiting.push_back(id.to_owned());
        } else if self.sending.contains(id) {
            // Comes back when what is on its way has arrived.
            self.queued.insert(id.to_owned());
        }
    }

    /// The next thing to say. It counts as on its way until [`Book::said`] or [`Book::unsaid`].
    pub fn next(&mut self, now: Timestamp) -> Option<(String, Say)> {
        loop {
            let id = self.waiting.pop_front()?;
            self.queued.remove(&id);
            let Some(say) = self.say(&id, now) else { continue };
            self.sending.insert(id.clone());
            return Some((id, say));
        }
    }

    /// Somebody has heard a status with this id: what is said from now on is above it.
    pub fn heard(&mut self, known: SequenceId) {
        self.sequence.heard(known);
    }

    fn say(&mut self, id: &str, now: Timestamp) -> Option<Say> {
        if let Some(refusal) = self.refusals.get(id) {
            let refusal = Box::new(refusal.clone());
            return Some(Say::Refused { refusal, sequence: self.sequence.next(now) });
        }
        let asked = self.asked.remove(id);
        let record = self.records.get_mut(id)?;
        if record.gone {
            let record = Box::new(record.clone());
            return Some(Say::Gone { record, sequence: self.sequence.next(now) });
        }
        let seen = record.seen.as_mut()?;
        if seen.sent && !asked {
            return None;
        }
        let sequence = self.sequence.next(now);
        seen.sequence = Some(sequence.to_string());
        Some(Say::Status {
            record: Box::new(record.clone()),
            sequence,
            asked: asked && record.seen.as_ref().is_some_and(|seen| seen.sent),
        })
    }

    /// The broker has it.
    pub fn said(&mut self, id: &str, say: &Say) {
        match say {
            Say::Refused { refusal, .. } => {
                if self.refusals.get(id) == Some(refusal) {
                    self.refusals.remove(id);
                }
            }
            Say::Gone { record, .. } => {
                // One that came again meanwhile is another one.
                if self.records.get(id).is_some_and(|now| now.gone) {
                    self.records.remove(id);
                    self.by_name.remove(&record.name);
                    self.unwritten.insert(id.to_owned());
                }
            }
            Say::Status { record: said, .. } => {
                let seen = self.records.get_mut(id).and_then(|record| record.seen.as_mut());
                if let (Some(seen), Some(said)) = (seen, &said.seen)
                    && seen.hash == said.hash
                    && seen.version == said.version
                {
                    seen.sent = true;
                    self.unwritten.insert(id.to_owned());
                }
            }
        }
        self.arrived(id, false);
    }

    /// It could not be sent, and will be again.
    pub fn unsaid(&mut self, id: &str, say: &Say) {
        if let Say::Status { asked: true, .. } = say {
            self.asked.insert(id.to_owned());
        }
        self.arrived(id, true);
    }

    fn arrived(&mut self, id: &str, again: bool) {
        self.sending.remove(id);
        if self.queued.remove(id) || again {
            self.queue(id);
        }
    }

    /// Begins a round of writing. A work whose status was not heard yet is about to change once more: it waits for the next
    /// round, but not for longer. Gives whether somebody waits.
    pub fn begin_round(&mut self) -> bool {
        let settled = |id: &String| {
            let record = self.records.get(id);
            record.is_none_or(|record| record.gone || record.seen.as_ref().is_some_and(|seen| seen.sent))
                || self.held.contains(id)
        };
        let (mut settled, mut waiting): (BTreeSet<_>, BTreeSet<_>) =
            std::mem::take(&mut self.unwritten).into_iter().partition(settled);
        self.due.append(&mut settled);
        self.due.append(&mut self.overdue);
        waiting.retain(|id| !self.due.contains(id));
        self.overdue = waiting;
        !self.overdue.is_empty()
    }

    /// Nobody waits any longer: there will be no other round.
    pub fn last_round(&mut self) {
        self.due.append(&mut self.unwritten);
        self.due.append(&mut self.overdue);
    }

    /// Takes up to so many works of this round: what to write, or nothing to delete it.
    pub fn take_due(&mut self, most: usize) -> Vec<(String, Option<Record>)> {
        let mut taken = Vec::new();
        while taken.len() < most {
            let Some(id) = self.due.pop_first() else { break };
            // What is written now is the latest.
            self.unwritten.remove(&id);
            self.overdue.remove(&id);
            let record = self.records.get(&id).cloned();
            taken.push((id, record));
        }
        taken
    }

    /// Writing failed: they are to be written still.
    pub fn not_written(&mut self, ids: impl IntoIterator<Item = String>) {
        self.due.extend(ids);
    }
}

#[cfg(test)]
mod tests;
