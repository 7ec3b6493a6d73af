//! Whether and how a job ends, and what its conditions say. Pure.

use std::time::Duration;

use aro_base::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};

use super::count::Tally;
use super::indexes::Indexes;
use super::member::has_failed;
use super::plan::Seen;
use super::policy::{self, Verdict};
use crate::pods::phase;
use crate::replica_set::time;

/// How a job ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub well: bool,
    pub reason: String,
    pub message: String,
}

impl End {
    pub fn badly(reason: &str, message: impl Into<String>) -> Self {
        Self { well: false, reason: reason.to_owned(), message: message.into() }
    }

    pub fn well(reason: &str, message: impl Into<String>) -> Self {
        Self { well: true, reason: reason.to_owned(), message: message.into() }
    }

    /// What is said before the pods are counted, and what when it is over.
    fn words(&self) -> (&'static str, &'static str) {
        if self.well { ("SuccessCriteriaMet", "Complete") } else { ("FailureTarget", "Failed") }
    }
}

pub fn condition<'a>(job: &'a Job, kind: &str) -> Option<&'a JobCondition> {
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

/// What the status says already about how it ends.
pub fn known_end(job: &Job) -> Option<End> {
    let end = |kind: &str, well: bool| {
        condition(job, kind).map(|known| End {
            well,
            reason: known.reason.clone().unwrap_or_default(),
            message: known.message.clone().unwrap_or_default(),
        })
    };
    end("SuccessCriteriaMet", true).or_else(|| end("FailureTarget", false))
}

pub fn bad_end(seen: &Seen, tally: &Tally, started: Option<Timestamp>) -> Option<End> {
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

pub fn too_many_restarts(seen: &Seen, limit: i32) -> bool {
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

pub fn deadline_at(job: &Job, started: Option<Timestamp>) -> Option<Timestamp> {
    let seconds = job.spec.as_ref()?.active_deadline_seconds?;
    Some(started?.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX))
}

pub fn deadline(job: &Job, started: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let at = deadline_at(job, started).filter(|_| !is_suspended(job))?;
    Duration::try_from(at.duration_since(now)).ok()
}

pub fn note_suspension(status: &mut JobStatus, suspended: bool, now: Timestamp) {
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

pub fn new_condition(kind: &str, state: &str, reason: &str, message: &str, now: Timestamp) -> JobCondition {
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
pub fn write_end(status: &mut JobStatus, end: &End, first: bool, over: bool, now: Timestamp) {
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
