//! One look at a job, decided. Pure: the same sight gives the same plan.
//!
//! Counting is exact because of an order that holds across crashes: a pod that ended is noted by uid in the status, then
//! loses its finalizer, then moves from the note to the counter. A pod without the finalizer is never counted again, and
//! one with it is never gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use aro_base::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

use super::indexes::Indexes;
use super::member::{self, Wanted, ended_at, has_failed, index, is_indexed, is_tracked, waits_for_failure};
use super::policy::{self, Verdict};
use crate::pods::{is_active, is_finished, is_ready, is_terminating, phase};
use crate::replica_set::time;

/// Pods made or deleted at once.
const BURST: usize = 500;
/// Pods noted at once: the note must stay small.
const NOTED: usize = 500;
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(10);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(10);

/// Failures since the last success, for pauses that grow. Known to this process only, as upstream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backoff {
    pub failures: u32,
    pub last: Option<Timestamp>,
}

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
    /// Pods to delete that do not count: nobody wants them any more.
    pub discard: Vec<Arc<Pod>>,
    pub status: JobStatus,
    /// Pods that lose their finalizer after the status is written.
    pub strip: Vec<Arc<Pod>>,
    pub backoff: Backoff,
    pub next: Option<Duration>,
}

/// How a job ends.
#[derive(Debug, Clone, PartialEq, Eq)]
struct End {
    well: bool,
    reason: String,
    message: String,
}

impl End {
    fn badly(reason: &str, message: impl Into<String>) -> Self {
        Self { well: false, reason: reason.to_owned(), message: message.into() }
    }

    fn well(reason: &str, message: impl Into<String>) -> Self {
        Self { well: true, reason: reason.to_owned(), message: message.into() }
    }

    /// What is said before the pods are counted, and what when it is over.
    fn words(&self) -> (&'static str, &'static str) {
        if self.well { ("SuccessCriteriaMet", "Complete") } else { ("FailureTarget", "Failed") }
    }
}

fn condition<'a>(job: &'a Job, kind: &str) -> Option<&'a JobCondition> {
    let mut all = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    all.find(|condition| condition.type_ == kind && condition.status == "True")
}

/// When a job was over, one way or the other.
pub fn finished_at(job: &Job) -> Option<Timestamp> {
    let end = condition(job, "Complete").or_else(|| condition(job, "Failed"))?;
    Some(end.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |at| at.0))
}

pub fn is_suspended(job: &Job) -> bool {
    job.spec.as_ref().and_then(|spec| spec.suspend).unwrap_or(false)
}

/// What was counted up to now, and what will be.
struct Tally {
    note: Note,
    succeeded: i32,
    failed: i32,
    /// For indexed jobs.
    succeeded_indexes: Indexes,
    failed_indexes: Option<Indexes>,
    completions: Option<u32>,
}

/// The note of pods that ended and still have their finalizer.
#[derive(Debug, Clone, Default)]
struct Note {
    succeeded: Vec<String>,
    failed: Vec<String>,
}

fn uid(pod: &Pod) -> String {
    pod.uid().unwrap_or_default()
}

fn to_i32(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
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

/// Moves what has lost its finalizer from the note to the counters, and counts what is not noted yet.
fn tally(seen: &Seen, status: &mut JobStatus) -> (Tally, Backoff) {
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

/// Failures since the last success.
fn grown(before: Backoff, succeeded: &[Arc<Pod>], failed: &[Arc<Pod>]) -> Backoff {
    let since = succeeded.iter().map(|pod| ended_at(pod)).max();
    let before = if since.is_some() { Backoff::default() } else { before };
    let new: Vec<Timestamp> =
        failed.iter().map(|pod| ended_at(pod)).filter(|at| since.is_none_or(|since| *at > since)).collect();
    Backoff {
        failures: before.failures.saturating_add(u32::try_from(new.len()).unwrap_or(u32::MAX)),
        last: new.into_iter().max().or(before.last),
    }
}

/// How long to wait after so many failures.
fn pause(failures: u32, last: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let last = last.filter(|_| failures > 0)?;
    let factor = 1_i32.checked_shl(failures - 1).filter(|factor| *factor > 0).unwrap_or(i32::MAX);
    let pause = FIRST_PAUSE.checked_mul(factor).unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE);
    let left = pause.saturating_sub(now.duration_since(last));
    Duration::try_from(left).ok().filter(|left| !left.is_zero())
}

/// What the status says already about how it ends.
fn known_end(job: &Job) -> Option<End> {
    let end = |kind: &str, well: bool| {
        condition(job, kind).map(|known| End {
            well,
            reason: known.reason.clone().unwrap_or_default(),
            message: known.message.clone().unwrap_or_default(),
        })
    };
    end("SuccessCriteriaMet", true).or_else(|| end("FailureTarget", false))
}

fn bad_end(seen: &Seen, tally: &Tally, started: Option<Timestamp>) -> Option<End> {
    let job = &*seen.job;
    let spec = job.spec.as_ref()?;
    let failed = seen.pods.iter().filter(|pod| has_failed(job, pod));
    for pod in failed {
        if let Verdict::FailJob(why) = policy::of_failure(job, pod) {
            return Some(End::badly("PodFailurePolicy", why));
        }
    }
    let limit = spec.backoff_limit.unwrap_or(6);
    if tally.failed > limit || too_many_restarts(seen, limit) {
        return Some(End::badly("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
    }
    let past = deadline_at(job, started).is_some_and(|at| at <= seen.now);
    if past && !is_suspended(job) {
        return Some(End::badly("DeadlineExceeded", "Job was active longer than specified deadline"));
    }
    let lost = tally.failed_indexes.as_ref().map_or(0, Indexes::len);
    let most = spec.max_failed_indexes.and_then(|most| u32::try_from(most).ok());
    if most.is_some_and(|most| lost > most) {
        let why = "Job has exceeded the specified maximal number of failed indexes";
        return Some(End::badly("MaxFailedIndexesExceeded", why));
    }
    let decided = lost.saturating_add(tally.succeeded_indexes.len());
    (lost > 0 && tally.completions.is_some_and(|all| decided >= all))
        .then(|| End::badly("FailedIndexes", "Job has failed indexes"))
}

fn too_many_restarts(seen: &Seen, limit: i32) -> bool {
    let template = seen.job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    if template.and_then(|spec| spec.restart_policy.as_deref()) != Some("OnFailure") {
        return false;
    }
    let pods = seen.pods.iter().filter(|pod| matches!(phase(pod), "Running" | "Pending"));
    let containers = pods
        .filter_map(|pod| pod.status.as_ref())
        .flat_map(|status| status.container_statuses.iter().chain(&status.init_container_statuses).flatten());
    let restarts: i32 = containers.map(|status| status.restart_count).fold(0, i32::saturating_add);
    if limit == 0 { restarts > 0 } else { restarts >= limit }
}

fn deadline_at(job: &Job, started: Option<Timestamp>) -> Option<Timestamp> {
    let seconds = job.spec.as_ref()?.active_deadline_seconds?;
    Some(started?.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX))
}

fn deadline(job: &Job, started: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let at = deadline_at(job, started).filter(|_| !is_suspended(job))?;
    Duration::try_from(at.duration_since(now)).ok()
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

/// Where failures are counted for each index: the last failed pod of indexes that wait for another. It keeps its
/// finalizer until then, because it knows the count.
fn last_failures(seen: &Seen, tally: &Tally, active: &[Arc<Pod>]) -> BTreeMap<u32, Arc<Pod>> {
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

/// Pods at work that nobody wants: those without a right index, doubles, and then those that got least far.
fn discarded(active: &[Arc<Pod>], completions: Option<u32>, surplus: usize) -> Vec<Arc<Pod>> {
    let mut all = active.to_vec();
    // The furthest first, so that of two with one index it stays.
    all.sort_by_cached_key(|pod| {
        let rank = (is_ready(pod), phase(pod) == "Running", !crate::pods::node_name(pod).is_empty());
        (std::cmp::Reverse(rank), pod.metadata.creation_timestamp.as_ref().map(|at| at.0), uid(pod))
    });
    let mut seen = BTreeSet::new();
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

/// Notes pods that ended, and names all that may lose their finalizer once that is written.
fn countable(seen: &Seen, tally: &mut Tally, end: Option<&End>) -> Vec<Arc<Pod>> {
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

fn note_suspension(status: &mut JobStatus, suspended: bool, now: Timestamp) {
    let all = status.conditions.get_or_insert_default();
    let known = all.iter().position(|condition| condition.type_ == "Suspended");
    let was = known.is_some_and(|known| all[known].status == "True");
    if suspended == was {
        return;
    }
    let new = if suspended {
        new_condition("Suspended", "True", "JobSuspended", "Job suspended", now)
    } else {
        new_condition("Suspended", "False", "JobResumed", "Job resumed", now)
    };
    match known {
        Some(known) => all[known] = new,
        None => all.push(new),
    }
    // The time of a suspension does not count.
    status.start_time = (!suspended).then(|| time(now));
}

fn new_condition(kind: &str, state: &str, reason: &str, message: &str, now: Timestamp) -> JobCondition {
    JobCondition {
        type_: kind.to_owned(),
        status: state.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(time(now)),
        last_transition_time: Some(time(now)),
    }
}

/// Says that it ends, and when everything is counted, that it is over.
fn write_end(status: &mut JobStatus, end: &End, first: bool, over: bool, now: Timestamp) {
    let (before, after) = end.words();
    let all = status.conditions.get_or_insert_default();
    if first {
        all.push(new_condition(before, "True", &end.reason, &end.message, now));
    }
    if over {
        all.push(new_condition(after, "True", &end.reason, &end.message, now));
        if end.well {
            status.completion_time = Some(time(now));
        }
        // Even one that never began has to have begun.
        status.start_time.get_or_insert_with(|| time(now));
    }
}
