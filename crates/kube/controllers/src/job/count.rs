//! Counting pods that ended, exactly. Pure.
//!
//! An order that holds across crashes: a pod that ended is noted by uid in the status, then loses its finalizer, then
//! moves from the note to the counter. A pod without the finalizer is never counted again, and one with it is never gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::batch::v1::JobStatus;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

use super::backoff::{Backoff, grown};
use super::end::End;
use super::indexes::Indexes;
use super::member::{self, ended_at, has_failed, index, is_indexed, is_tracked};
use super::plan::Seen;
use super::policy::{self, Verdict};
use crate::pods::{is_active, phase};

/// Pods noted at once: the note must stay small.
const NOTED: usize = 500;

/// What was counted up to now, and what will be.
pub struct Tally {
    pub note: Note,
    pub succeeded: i32,
    pub failed: i32,
    /// For indexed jobs.
    pub succeeded_indexes: Indexes,
    pub failed_indexes: Option<Indexes>,
    pub completions: Option<u32>,
}

/// The note of pods that ended and still have their finalizer.
#[derive(Debug, Clone, Default)]
pub struct Note {
    pub succeeded: Vec<String>,
    pub failed: Vec<String>,
}

/// Moves what has lost its finalizer from the note to the counters, and counts what is not noted yet.
pub fn tally(seen: &Seen, status: &mut JobStatus) -> (Tally, Backoff) {
    let job = &*seen.job;
    let tracked: BTreeSet<String> =
        seen.pods.iter().filter(|pod| is_tracked(pod)).map(|pod| uid(pod)).collect();
    let before = status.uncounted_terminated_pods.take().unwrap_or_default();
    let settle = |uids: Option<Vec<String>>, counter: &mut Option<i32>| {
        let (kept, counted): (Vec<_>, Vec<_>) =
            uids.unwrap_or_default().into_iter().partition(|uid| tracked.contains(uid));
        *counter = Some(counter.unwrap_or(0).saturating_add(to_i32(counted.len())));
        kept
    };
    let note = Note {
        succeeded: settle(before.succeeded, &mut status.succeeded),
        failed: settle(before.failed, &mut status.failed),
    };
    let spec = job.spec.as_ref();
    let fresh = |noted: &[String], ended: &dyn Fn(&Pod) -> bool| -> Vec<Arc<Pod>> {
        let new = seen.pods.iter().filter(|pod| is_tracked(pod) && ended(pod) && !noted.contains(&uid(pod)));
        new.cloned().collect()
    };
    let new_succeeded = fresh(&note.succeeded, &|pod| phase(pod) == "Succeeded");
    let new_failed = fresh(&note.failed, &|pod| has_failed(job, pod));
    let counting = new_failed.iter().filter(|pod| policy::of_failure(job, pod) != Verdict::Ignore).count();
    let completions = is_indexed(job).then(|| spec.and_then(|spec| spec.completions)).flatten();
    let completions = completions.and_then(|completions| u32::try_from(completions).ok());
    let mut succeeded_indexes = Indexes::default();
    let mut failed_indexes = None;
    if let Some(completions) = completions {
        succeeded_indexes =
            Indexes::parse(status.completed_indexes.as_deref().unwrap_or_default(), completions);
        for index in new_succeeded.iter().filter_map(|pod| index(pod)).filter(|index| *index < completions) {
            succeeded_indexes.insert(index);
        }
        if let Some(limit) = spec.and_then(|spec| spec.backoff_limit_per_index) {
            let mut lost = Indexes::parse(status.failed_indexes.as_deref().unwrap_or_default(), completions);
            for pod in seen.pods.iter().filter(|pod| is_tracked(pod) && has_failed(job, pod)) {
                let verdict = policy::of_failure(job, pod);
                let spent = verdict != Verdict::Ignore && member::failures(pod).0 >= limit;
                if let Some(index) = index(pod).filter(|index| *index < completions)
                    && (verdict == Verdict::FailIndex || spent)
                    && !succeeded_indexes.contains(index)
                {
                    lost.insert(index);
                }
            }
            failed_indexes = Some(lost);
        }
    }
    let succeeded = match completions {
        Some(_) => i32::try_from(succeeded_indexes.len()).unwrap_or(i32::MAX),
        None => status.succeeded.unwrap_or(0) + to_i32(note.succeeded.len() + new_succeeded.len()),
    };
    let failed = status.failed.unwrap_or(0) + to_i32(note.failed.len() + counting);
    let backoff = grown(seen.backoff, &new_succeeded, &new_failed);
    (Tally { note, succeeded, failed, succeeded_indexes, failed_indexes, completions }, backoff)
}

/// Where failures are counted for each index: the last failed pod of indexes that wait for another. It keeps its
/// finalizer until then, because it knows the count.
pub fn last_failures(seen: &Seen, tally: &Tally, active: &[Arc<Pod>]) -> BTreeMap<u32, Arc<Pod>> {
    let mut last: BTreeMap<u32, Arc<Pod>> = BTreeMap::new();
    let (Some(lost), Some(completions)) = (&tally.failed_indexes, tally.completions) else { return last };
    let busy: BTreeSet<u32> = active.iter().filter_map(|pod| index(pod)).collect();
    for pod in seen.pods.iter().filter(|pod| is_tracked(pod) && has_failed(&seen.job, pod)) {
        let Some(index) = index(pod).filter(|index| *index < completions) else { continue };
        if tally.succeeded_indexes.contains(index) || lost.contains(index) || busy.contains(&index) {
            continue;
        }
        let rank = |pod: &Pod| (member::failures(pod).0 + member::failures(pod).1, ended_at(pod));
        if last.get(&index).is_none_or(|known| rank(known) <= rank(pod)) {
            last.insert(index, pod.clone());
        }
    }
    last
}

/// Notes pods that ended, and names all that may lose their finalizer once that is written.
pub fn countable(seen: &Seen, tally: &mut Tally, end: Option<&End>) -> Vec<Arc<Pod>> {
    let job = &*seen.job;
    let active: Vec<Arc<Pod>> = seen.pods.iter().filter(|pod| is_active(pod)).cloned().collect();
    let waiting: BTreeSet<String> = if end.is_some() || job.metadata.deletion_timestamp.is_some() {
        BTreeSet::new()
    } else {
        last_failures(seen, tally, &active).values().map(|pod| uid(pod)).collect()
    };
    let mut strip = Vec::new();
    for pod in seen.pods.iter().filter(|pod| is_tracked(pod)) {
        let failed = has_failed(job, pod);
        let over = job.metadata.deletion_timestamp.is_some() || end.is_some() || phase(pod) == "Succeeded";
        // A pod at work keeps it until it is deleted, so that its end is seen.
        if (is_active(pod) && job.metadata.deletion_timestamp.is_none())
            || !(over || failed)
            || waiting.contains(&uid(pod))
        {
            continue;
        }
        if tally.note.succeeded.len() + tally.note.failed.len() >= NOTED {
            break;
        }
        strip.push(pod.clone());
        let uid = uid(pod);
        if phase(pod) == "Succeeded" && !tally.note.failed.contains(&uid) {
            // Of an indexed job, the index says all.
            if tally.completions.is_none() && !tally.note.succeeded.contains(&uid) {
                tally.note.succeeded.push(uid);
            }
        } else if failed || end.is_some_and(|end| !end.well) {
            let right = tally.completions.is_none_or(|all| index(pod).is_some_and(|index| index < all));
            let ignored = policy::of_failure(job, pod) == Verdict::Ignore;
            if right && !ignored && !tally.note.failed.contains(&uid) {
                tally.note.failed.push(uid);
            }
        }
    }
    strip
}

pub fn uid(pod: &Pod) -> String {
    pod.uid().unwrap_or_default()
}

pub fn to_i32(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
