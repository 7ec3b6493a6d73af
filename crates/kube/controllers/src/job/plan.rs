//! One look at a job, decided. Pure: the same sight gives the same plan.

use std::sync::Arc;
use std::time::Duration;

use aro_base::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;

use super::backoff::{Backoff, pause};
use super::count::{Tally, countable, last_failures, tally, to_i32, uid};
use super::end::{End, bad_end, deadline, is_suspended, known_end, note_suspension, write_end};
use super::indexes::Indexes;
use super::member::{self, Wanted, ended_at, index, waits_for_failure};
use super::policy::{self, Verdict};
use crate::pods::{is_active, is_finished, is_ready, is_terminating, phase};
use crate::replica_set::time;

/// Pods made or deleted at once.
const BURST: usize = 500;

/// Everything a pass looks at.
#[derive(Debug, Clone)]
pub struct Seen {
    pub job: Arc<Job>,
    pub pods: Vec<Arc<Pod>>,
    pub backoff: Backoff,
    pub now: Timestamp,
}

/// What to do.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The status has to be written before anything else: it says that the job ends.
    pub ends: bool,
    pub make: Vec<Wanted>,
    /// Pods to delete; they count.
    pub delete: Vec<Arc<Pod>>,
    /// Pods to delete that do not count: they are surplus.
    pub discard: Vec<Arc<Pod>>,
    pub status: JobStatus,
    /// Pods that lose their finalizer after the status is written.
    pub strip: Vec<Arc<Pod>>,
    pub backoff: Backoff,
    pub next: Option<Duration>,
}

pub fn plan(seen: &Seen) -> Plan {
    let job = &*seen.job;
    let Some(spec) = job.spec.as_ref() else { return Plan::default() };
    let mut status = job.status.clone().unwrap_or_default();
    let active: Vec<Arc<Pod>> = seen.pods.iter().filter(|pod| is_active(pod)).cloned().collect();
    let (mut tally, backoff) = tally(seen, &mut status);
    let mut plan = Plan { backoff, ..Plan::default() };
    let suspended = is_suspended(job);
    let known = known_end(job);
    if status.start_time.is_none() && !suspended {
        status.start_time = Some(time(seen.now));
    }
    let mut end = known.clone().or_else(|| bad_end(seen, &tally, status.start_time.as_ref().map(|at| at.0)));
    if end.is_none()
        && let Some(completions) = tally.completions
        && let Some(why) = policy::of_success(job, &tally.succeeded_indexes, completions)
    {
        end = Some(End::well("SuccessPolicy", why));
    }
    let wanted = wanted(spec.completions, spec.parallelism, tally.succeeded, active.len());
    if end.is_none() && is_complete(spec.completions, tally.succeeded, active.len()) {
        end = Some(End::well("CompletionsReached", "Reached expected number of succeeded pods"));
    }
    if end.is_some() {
        plan.delete.clone_from(&active);
    } else if job.metadata.deletion_timestamp.is_none() {
        manage(seen, &tally, &active, if suspended { None } else { Some(wanted) }, &mut plan);
        note_suspension(&mut status, suspended, seen.now);
    }
    plan.next = earliest(plan.next, deadline(job, status.start_time.as_ref().map(|at| at.0), seen.now));
    plan.strip = countable(seen, &mut tally, end.as_ref());
    if tally.completions.is_some() {
        status.completed_indexes = Some(tally.succeeded_indexes.to_string()).filter(|text| !text.is_empty());
        status.succeeded = Some(i32::try_from(tally.succeeded_indexes.len()).unwrap_or(i32::MAX));
        status.failed_indexes = tally.failed_indexes.as_ref().map(Indexes::to_string);
    }
    let terminating = seen.pods.iter().filter(|pod| is_terminating(pod) && !is_finished(pod)).count();
    let quiet = tally.note.succeeded.is_empty() && tally.note.failed.is_empty() && plan.strip.is_empty();
    let over = quiet && active.is_empty() && terminating == 0;
    status.active = Some(to_i32(active.len()));
    status.ready = Some(to_i32(active.iter().filter(|pod| is_ready(pod)).count()));
    status.terminating = Some(to_i32(terminating));
    status.uncounted_terminated_pods = Some(UncountedTerminatedPods {
        succeeded: some(tally.note.succeeded),
        failed: some(tally.note.failed),
    });
    if let Some(end) = &end {
        write_end(&mut status, end, known.is_none(), over, seen.now);
    }
    plan.ends = end.is_some() && known.is_none() && !plan.delete.is_empty();
    plan.status = tidy(status);
    plan
}

fn some(list: Vec<String>) -> Option<Vec<String>> {
    (!list.is_empty()).then_some(list)
}

/// Without zeros where the API leaves them out.
pub fn tidy(mut status: JobStatus) -> JobStatus {
    for count in [&mut status.active, &mut status.succeeded, &mut status.failed] {
        *count = count.filter(|count| *count != 0);
    }
    status.conditions = status.conditions.filter(|all| !all.is_empty());
    status.uncounted_terminated_pods.get_or_insert_default();
    status
}

fn earliest(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// How many pods should be at work.
fn wanted(completions: Option<i32>, parallelism: Option<i32>, succeeded: i32, active: usize) -> usize {
    let parallelism = parallelism.unwrap_or(1);
    let wanted = match completions {
        None if succeeded > 0 => return active,
        None => parallelism,
        Some(completions) => completions.saturating_sub(succeeded).min(parallelism),
    };
    usize::try_from(wanted).unwrap_or(0)
}

fn is_complete(completions: Option<i32>, succeeded: i32, active: usize) -> bool {
    active == 0 && completions.map_or(succeeded > 0, |completions| succeeded >= completions)
}

/// Makes the number of pods at work right. `wanted` is `None` for a job that is suspended.
fn manage(seen: &Seen, tally: &Tally, active: &[Arc<Pod>], wanted: Option<usize>, plan: &mut Plan) {
    let surplus = active.len().saturating_sub(wanted.unwrap_or(0));
    plan.discard = discarded(active, tally.completions, surplus);
    plan.discard.truncate(BURST);
    let Some(wanted) = wanted.filter(|_| plan.discard.is_empty()) else { return };
    let leaving: Vec<&Arc<Pod>> = seen
        .pods
        .iter()
        .filter(|pod| waits_for_failure(&seen.job) && is_terminating(pod) && !is_finished(pod))
        .collect();
    let missing = wanted.saturating_sub(active.len() + leaving.len()).min(BURST);
    if missing == 0 {
        return;
    }
    let each = tally.failed_indexes.is_some();
    if !each && let Some(left) = pause(plan.backoff.failures, plan.backoff.last, seen.now) {
        plan.next = Some(left);
        return;
    }
    let Some(completions) = tally.completions else {
        plan.make = vec![Wanted { index: None, failures: None }; missing];
        return;
    };
    let mut taken = tally.succeeded_indexes.clone();
    active.iter().chain(leaving).filter_map(|pod| index(pod)).for_each(|index| taken.insert(index));
    if let Some(lost) = &tally.failed_indexes {
        taken.extend(lost);
    }
    let last = last_failures(seen, tally, active);
    for index in taken.missing(missing, completions) {
        if !each {
            plan.make.push(Wanted { index: Some(index), failures: None });
            continue;
        }
        let failed = last.get(&index);
        let (mut counted, mut ignored) = failed.map_or((0, 0), |pod| member::failures(pod));
        if let Some(pod) = failed {
            let tries = u32::try_from(counted.saturating_add(ignored)).unwrap_or(0).saturating_add(1);
            if let Some(left) = pause(tries, Some(ended_at(pod)), seen.now) {
                plan.next = earliest(plan.next, Some(left));
                continue;
            }
            if policy::of_failure(&seen.job, pod) == Verdict::Ignore { ignored += 1 } else { counted += 1 }
        }
        plan.make.push(Wanted { index: Some(index), failures: Some((counted, ignored)) });
    }
}

/// Surplus active pods: those without a valid index, doubles, and then those that got least far.
fn discarded(active: &[Arc<Pod>], completions: Option<u32>, surplus: usize) -> Vec<Arc<Pod>> {
    let mut all = active.to_vec();
    // The furthest first, so that of two with one index it stays.
    all.sort_by_cached_key(|pod| {
        let rank = (is_ready(pod), phase(pod) == "Running", !crate::pods::node_name(pod).is_empty());
        (std::cmp::Reverse(rank), pod.metadata.creation_timestamp.as_ref().map(|at| at.0), uid(pod))
    });
    let mut seen = std::collections::BTreeSet::new();
    let right = |pod: &Arc<Pod>| match completions {
        None => true,
        Some(completions) => index(pod).is_some_and(|index| index < completions && seen.insert(index)),
    };
    let (mut kept, mut gone): (Vec<_>, Vec<_>) = all.into_iter().partition(right);
    while gone.len() < surplus {
        let Some(pod) = kept.pop() else { break };
        gone.push(pod);
    }
    gone
}
