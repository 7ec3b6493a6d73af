//! How many pods are missing or too many, which ones go, and what the counts are. Pure.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;

use super::time;
use crate::pods::select::has_all;
use crate::pods::{
    Available, availability, condition, is_active, is_finished, is_ready, is_terminating, node_name, phase,
};

/// What has to happen to the number of pods.
#[derive(Debug)]
pub enum Scale {
    /// Nothing.
    Right,
    /// Make some now and maybe others later.
    Make { now: usize, later: usize },
    /// Remove these now and maybe others later.
    Remove { now: Vec<Arc<Pod>>, later: usize },
}

impl Scale {
    /// Whether another pass is needed for the rest.
    pub fn is_partial(&self) -> bool {
        matches!(self, Self::Make { later: 1.., .. } | Self::Remove { later: 1.., .. })
    }
}

/// Why the number of pods could not be made right.
#[derive(Debug, Clone)]
pub struct Trouble {
    pub reason: &'static str,
    pub message: String,
}

/// How many pods a set wants.
pub fn wanted(set: &ReplicaSet) -> usize {
    let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    usize::try_from(replicas).unwrap_or(0)
}

/// What has to happen to the number of pods, at most `burst` at once.
pub fn scale(set: &ReplicaSet, mine: &[Arc<Pod>], related: Option<&[Arc<Pod>]>, burst: usize) -> Scale {
    if set.metadata.deletion_timestamp.is_some() {
        return Scale::Right;
    }
    let active: Vec<Arc<Pod>> = mine.iter().filter(|pod| is_active(pod)).cloned().collect();
    let wanted = wanted(set);
    match active.len().cmp(&wanted) {
        Ordering::Equal => Scale::Right,
        Ordering::Less => {
            let missing = wanted - active.len();
            Scale::Make { now: missing.min(burst), later: missing.saturating_sub(burst) }
        }
        Ordering::Greater => {
            let surplus = active.len() - wanted;
            let now = victims(active, related.unwrap_or(mine), surplus.min(burst));
            Scale::Remove { now, later: surplus.saturating_sub(burst) }
        }
    }
}

/// The pods that are missed least: not bound, not started, not ready, cheap to delete, on crowded nodes, ready for a
/// short time only, restarted often, new. In this order.
fn victims(mut active: Vec<Arc<Pod>>, related: &[Arc<Pod>], count: usize) -> Vec<Arc<Pod>> {
    if count >= active.len() {
        return active;
    }
    let mut crowd: HashMap<&str, usize> = HashMap::new();
    for pod in related.iter().filter(|pod| is_active(pod) && is_ready(pod)) {
        *crowd.entry(node_name(pod)).or_default() += 1;
    }
    active.sort_by_cached_key(|pod| {
        let ready = is_ready(pod);
        let crowded =
            if node_name(pod).is_empty() { 0 } else { crowd.get(node_name(pod)).copied().unwrap_or(0) };
        (
            (!node_name(pod).is_empty(), started(pod), ready, deletion_cost(pod), Reverse(crowded)),
            Reverse(ready.then(|| ready_since(pod)).map(|since| since.unwrap_or(Timestamp::MAX))),
            Reverse(restarts(pod)),
            Reverse(pod.metadata.creation_timestamp.as_ref().map_or(Timestamp::MAX, |made| made.0)),
            pod.metadata.uid.clone(),
        )
    });
    active.truncate(count);
    active
}

fn started(pod: &Pod) -> u8 {
    match phase(pod) {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    }
}

fn deletion_cost(pod: &Pod) -> i32 {
    let cost = pod
        .metadata
        .annotations
        .as_ref()
        .and_then(|all| all.get("controller.kubernetes.io/pod-deletion-cost"));
    cost.and_then(|cost| cost.parse().ok()).unwrap_or(0)
}

fn ready_since(pod: &Pod) -> Option<Timestamp> {
    Some(condition(pod, "Ready")?.last_transition_time.as_ref()?.0)
}

fn restarts(pod: &Pod) -> i32 {
    let containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    containers.map(|container| container.restart_count).max().unwrap_or(0)
}

/// What a count looks like in a status: nothing is not written.
pub(crate) fn count(number: usize) -> Option<i32> {
    i32::try_from(number).ok().filter(|number| *number > 0)
}

/// The whole status, and when it has to be looked at again because a pod becomes available by then.
pub fn status(
    set: &ReplicaSet,
    mine: &[Arc<Pod>],
    trouble: Option<&Trouble>,
    now: Timestamp,
) -> (ReplicaSetStatus, Option<Duration>) {
    let spec = set.spec.as_ref();
    let labels = spec.and_then(|spec| spec.template.as_ref()?.metadata.as_ref()?.labels.as_ref());
    let min_ready = spec.and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
    let (mut active, mut labelled, mut ready, mut available, mut terminating) = (0_i32, 0, 0, 0, 0_i32);
    let mut next: Option<Duration> = None;
    for pod in mine {
        if is_terminating(pod) && !is_finished(pod) {
            terminating += 1;
        }
        if !is_active(pod) {
            continue;
        }
        active += 1;
        labelled += usize::from(has_all(pod.metadata.labels.as_ref(), labels));
        ready += usize::from(is_ready(pod));
        match availability(pod, min_ready, now) {
            Available::Yes => available += 1,
            Available::After(left) => next = Some(next.map_or(left, |known| known.min(left))),
            Available::No => {}
        }
    }
    let status = ReplicaSetStatus {
        replicas: active,
        fully_labeled_replicas: count(labelled),
        ready_replicas: count(ready),
        available_replicas: count(available),
        terminating_replicas: Some(terminating),
        observed_generation: set.metadata.generation,
        conditions: conditions(set, trouble, now),
    };
    (status, next)
}

/// A failure is recorded once and its condition stays unchanged until it is over.
fn conditions(
    set: &ReplicaSet,
    trouble: Option<&Trouble>,
    now: Timestamp,
) -> Option<Vec<ReplicaSetCondition>> {
    const FAILURE: &str = "ReplicaFailure";
    let mut all = set.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let known = all.iter().any(|condition| condition.type_ == FAILURE);
    match trouble {
        None => all.retain(|condition| condition.type_ != FAILURE),
        Some(trouble) if !known => all.push(ReplicaSetCondition {
            type_: FAILURE.to_owned(),
            status: "True".to_owned(),
            reason: Some(trouble.reason.to_owned()),
            message: Some(trouble.message.clone()),
            last_transition_time: Some(time(now)),
        }),
        Some(_) => {}
    }
    (!all.is_empty()).then_some(all)
}

/// What the API server said, in its own words.
pub fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Whether the namespace is on its way out: nothing can be made there, and nothing needs to be.
pub fn is_namespace_ending(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}
