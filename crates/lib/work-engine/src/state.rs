//! The works an engine knows: one small state machine for each.
//!
//! A work is wanted in some generation, or it is being deleted; from there it can only go away. All changes happen under one
//! lock, and a pass that began with an older state cannot report over a newer one ([`Works::record_report`]).

use std::collections::HashMap;
use std::sync::Arc;

use aro_base::Timestamp;
use aro_crds::work::v1::ManifestWorkStatus;
use parking_lot::Mutex;

use crate::manifest::{clean, is_clean};
use crate::memory::Memory;
use crate::work::Work;

#[derive(Debug)]
struct Entry {
    /// `None`: the first request for it was its deletion.
    work: Option<Arc<Work>>,
    /// Counts what was put: two works of one generation may differ.
    revision: i64,
    deleting: bool,
    received: Timestamp,
    /// What was reported last.
    status: Arc<ManifestWorkStatus>,
    /// What the passes keep. A pass that is under way has it.
    memory: Memory,
}

impl Entry {
    /// Of a work whose first request is its deletion.
    fn leaving(now: Timestamp) -> Self {
        Self {
            work: None,
            revision: 0,
            deleting: true,
            received: now,
            status: Arc::default(),
            memory: Memory::default(),
        }
    }
}

/// What a pass works with.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) name: String,
    pub(crate) work: Option<Arc<Work>>,
    pub(crate) revision: i64,
    pub(crate) deleting: bool,
    pub(crate) received: Timestamp,
    pub(crate) status: Arc<ManifestWorkStatus>,
    pub(crate) memory: Memory,
}

impl Turn {
    pub(crate) fn generation(&self) -> i64 {
        self.work.as_ref().map_or(0, |work| work.generation)
    }
}

/// All works.
#[derive(Debug, Default)]
pub(crate) struct Works {
    all: Mutex<HashMap<String, Entry>>,
}

impl Works {
    /// A work is to be so. Whether that needs a pass.
    pub(crate) fn put(&self, mut work: Work, now: Timestamp) -> bool {
        // Hardly ever: then the one who gave the work and the engine share its manifests.
        if !work.manifests.iter().all(is_clean) {
            Arc::make_mut(&mut work.manifests).iter_mut().for_each(clean);
        }
        let mut all = self.all.lock();
        let Some(entry) = all.get_mut(&work.name) else {
            let status = Arc::new(work.prior.take().unwrap_or_default());
            let entry = Entry {
                revision: 1,
                deleting: false,
                received: now,
                status,
                memory: Memory::default(),
                work: Some(Arc::new(work)),
            };
            all.insert(entry.work.as_ref().map_or_else(String::new, |work| work.name.clone()), entry);
            return true;
        };
        work.prior = None;
        if entry.deleting || !replaces(entry.work.as_deref(), &work) {
            return false;
        }
        entry.work = Some(Arc::new(work));
        entry.revision += 1;
        entry.received = now;
        true
    }

    /// A work is to go. From now on nothing else can become of it.
    pub(crate) fn delete(&self, name: &str, now: Timestamp) {
        self.all.lock().entry(name.to_owned()).or_insert_with(|| Entry::leaving(now)).deleting = true;
    }

    /// The same, and this is what it says about what stays. That may change until the end.
    pub(crate) fn leave(&self, work: Work, now: Timestamp) {
        let mut all = self.all.lock();
        let entry = all.entry(work.name.clone()).or_insert_with(|| Entry::leaving(now));
        entry.deleting = true;
        // What is there is still what was applied before.
        let known = entry.work.as_deref().cloned();
        entry.work = Some(Arc::new(match known {
            Some(known) => Work { delete_option: work.delete_option, generation: work.generation, ..known },
            None => Work { prior: None, ..work },
        }));
    }

    /// Takes a work for a pass. Its memory has to be given back.
    pub(crate) fn take(&self, name: &str) -> Option<Turn> {
        let mut all = self.all.lock();
        let entry = all.get_mut(name)?;
        Some(Turn {
            name: name.to_owned(),
            work: entry.work.clone(),
            revision: entry.revision,
            deleting: entry.deleting,
            received: entry.received,
            status: entry.status.clone(),
            memory: std::mem::take(&mut entry.memory),
        })
    }

    pub(crate) fn give_back(&self, name: &str, memory: Memory) {
        if let Some(entry) = self.all.lock().get_mut(name) {
            entry.memory = memory;
        }
    }

    /// Notes what is reported of a work. No: it is another work by now, or on its way out.
    pub(crate) fn record_report(&self, turn: &Turn, status: &Arc<ManifestWorkStatus>) -> bool {
        let mut all = self.all.lock();
        let Some(entry) = all.get_mut(&turn.name) else { return false };
        if entry.revision != turn.revision || entry.deleting != turn.deleting {
            return false;
        }
        entry.status = status.clone();
        true
    }

    /// Forgets a work that has left nothing behind.
    pub(crate) fn forget(&self, name: &str) {
        self.all.lock().remove(name);
    }

    /// The generation of a work and whether it is being deleted.
    pub(crate) fn known(&self, name: &str) -> Option<(i64, bool)> {
        let all = self.all.lock();
        all.get(name).map(|entry| (entry.work.as_ref().map_or(0, |work| work.generation), entry.deleting))
    }

    pub(crate) fn status(&self, name: &str) -> Option<ManifestWorkStatus> {
        self.all.lock().get(name).map(|entry| (*entry.status).clone())
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.all.lock().keys().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.lock().len()
    }
}

/// Whether a work takes the place of what is known: it is not older, and not the same.
fn replaces(known: Option<&Work>, new: &Work) -> bool {
    let Some(known) = known else { return true };
    if new.generation != 0 && new.generation < known.generation {
        return false;
    }
    // Neither has a prior here.
    known != new
}

#[cfg(test)]
mod tests {
    use aro_crds::work::v1::{DeleteOption, DeletePropagationPolicy};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_stays_is_what_a_work_says_when_it_goes() {
        let orphan =
            DeleteOption { propagation_policy: DeletePropagationPolicy::Orphan, ..DeleteOption::default() };
        let works = Works::default();
        assert!(works.put(work(1, "a"), Timestamp::UNIX_EPOCH));
        works.leave(Work { delete_option: Some(orphan.clone()), ..work(2, "b") }, Timestamp::UNIX_EPOCH);
        let leaving = |name: &str| works.take(name).unwrap();
        let known = leaving("w");
        let said = known.work.as_ref().unwrap();
        assert!(known.deleting);
        assert_eq!((said.delete_option.as_ref(), said.generation), (Some(&orphan), 2));
        assert_eq!(said.manifests[0]["data"], "a", "that is what is there");
        let unknown = Work { name: "x".to_owned(), delete_option: Some(orphan.clone()), ..Work::default() };
        works.leave(unknown, Timestamp::UNIX_EPOCH);
        assert_eq!(leaving("x").work.as_ref().unwrap().delete_option, Some(orphan), "after a restart, too");
        works.delete("x", Timestamp::UNIX_EPOCH);
        assert!(leaving("x").work.is_some(), "saying it again forgets nothing");
    }

    fn work(generation: i64, data: &str) -> Work {
        Work {
            name: "w".to_owned(),
            generation,
            manifests: Arc::new(vec![json!({"data": data, "status": {}})]),
            ..Work::default()
        }
    }

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn the_newest_generation_counts_and_the_same_again_is_nothing() {
        let works = Works::default();
        assert!(works.put(work(2, "a"), NOW));
        assert!(!works.put(work(2, "a"), NOW));
        assert!(!works.put(work(1, "b"), NOW), "older");
        assert!(works.put(work(2, "b"), NOW), "labels may change within a generation");
        assert!(works.put(work(3, "b"), NOW));
        assert_eq!(works.known("w"), Some((3, false)));
        assert!(works.put(work(0, "c"), NOW), "the sender does not count");
    }

    #[test]
    fn sdk_go_232_nothing_revives_a_work_that_is_being_deleted() {
        let works = Works::default();
        works.put(work(1, "a"), NOW);
        let turn = works.take("w").unwrap();
        works.delete("w", NOW);
        assert!(!works.put(work(2, "b"), NOW));
        assert!(!works.record_report(&turn, &Arc::default()), "a report about an older state is dropped");
        assert_eq!(works.known("w"), Some((1, true)));
        let turn = works.take("w").unwrap();
        assert!(turn.deleting && works.record_report(&turn, &Arc::default()));
        works.forget("w");
        assert!(works.put(work(1, "a"), NOW), "a new work of that name");
    }

    #[test]
    fn a_pass_of_an_older_state_does_not_report_over_a_newer_one() {
        let works = Works::default();
        works.put(work(1, "a"), NOW);
        let turn = works.take("w").unwrap();
        works.put(work(2, "a"), NOW);
        assert!(!works.record_report(&turn, &Arc::default()));
        works.delete("unheard-of", NOW);
        assert_eq!(works.known("unheard-of"), Some((0, true)));
    }
}
