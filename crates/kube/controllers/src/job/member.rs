//! The pods of a job: how they are made, and what is read from them.

use aro_base::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod};
use kube::ResourceExt as _;

use crate::pods::{condition, is_terminating, of_template, phase};

/// Keeps a pod until it has been counted.
pub const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// The annotation and the label of a pod's index.
pub const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
const VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// How long the given part of a generated name may be.
const PREFIX_LENGTH: usize = 58;

pub fn is_indexed(job: &Job) -> bool {
    job.spec.as_ref().and_then(|spec| spec.completion_mode.as_deref()) == Some("Indexed")
}

/// Whether a pod is replaced only when it has failed, and not while it is on its way out.
pub fn waits_for_failure(job: &Job) -> bool {
    let spec = job.spec.as_ref();
    let policy = spec.and_then(|spec| spec.pod_replacement_policy.as_deref());
    policy == Some("Failed") || spec.is_some_and(|spec| spec.pod_failure_policy.is_some())
}

pub fn is_tracked(pod: &Pod) -> bool {
    pod.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
}

/// Whether a pod counts as failed: one that is deleted may never get to say so itself.
pub fn has_failed(job: &Job, pod: &Pod) -> bool {
    phase(pod) == "Failed" || (!waits_for_failure(job) && is_terminating(pod) && phase(pod) != "Succeeded")
}

pub fn index(pod: &Pod) -> Option<u32> {
    pod.annotations().get(INDEX)?.parse().ok()
}

fn number(pod: &Pod, name: &str) -> i32 {
    pod.annotations().get(name).and_then(|text| text.parse().ok()).filter(|number| *number >= 0).unwrap_or(0)
}

/// How often the index of a pod had failed when it was made: counted, and ignored.
pub fn failures(pod: &Pod) -> (i32, i32) {
    (number(pod, FAILURES), number(pod, IGNORED))
}

/// When a pod ended, as far as that can be told.
pub fn ended_at(pod: &Pod) -> Timestamp {
    let statuses =
        pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let ends: Option<Vec<Timestamp>> = statuses
        .iter()
        .map(|status| Some(status.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0))
        .collect();
    let unready = condition(pod, "Ready").filter(|ready| ready.status == "False");
    let deleted = pod.metadata.deletion_timestamp.as_ref().map(|at| {
        let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or(0));
        at.0.saturating_sub(grace).unwrap_or(at.0)
    });
    ends.and_then(|ends| ends.into_iter().max())
        .or_else(|| Some(unready?.last_transition_time.as_ref()?.0))
        .or(deleted)
        .or_else(|| pod.metadata.creation_timestamp.as_ref().map(|at| at.0))
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A pod to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub index: Option<u32>,
    /// How often its index has failed, where that is counted for each.
    pub failures: Option<(i32, i32)>,
}

/// The pod a job makes.
pub fn make(job: &Job, wanted: &Wanted) -> Pod {
    let mut template = job.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    let meta = template.metadata.get_or_insert_default();
    let finalizers = meta.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    let name = job.name_any();
    let mut prefix = format!("{name}-");
    if let Some(index) = wanted.index {
        let notes = meta.annotations.get_or_insert_default();
        notes.insert(INDEX.to_owned(), index.to_string());
        if let Some((counted, ignored)) = wanted.failures {
            notes.insert(FAILURES.to_owned(), counted.to_string());
            if ignored > 0 {
                notes.insert(IGNORED.to_owned(), ignored.to_string());
            }
        }
        meta.labels.get_or_insert_default().insert(INDEX.to_owned(), index.to_string());
        if let Some(spec) = &mut template.spec {
            spec.hostname = Some(format!("{name}-{index}"));
            spec.init_containers.iter_mut().flatten().chain(&mut spec.containers).for_each(tell_index);
        }
        let tail = format!("-{index}-");
        prefix = format!("{}{tail}", name.get(..PREFIX_LENGTH - tail.len()).unwrap_or(&name));
    }
    let mut pod = of_template(&template, job);
    pod.metadata.generate_name = Some(prefix);
    pod
}

fn tell_index(container: &mut Container) {
    let environment = container.env.get_or_insert_default();
    if environment.iter().any(|variable| variable.name == VARIABLE) {
        return;
    }
    let field = ObjectFieldSelector { field_path: format!("metadata.labels['{INDEX}']"), api_version: None };
    environment.push(EnvVar {
        name: VARIABLE.to_owned(),
        value: None,
        value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
    });
}
