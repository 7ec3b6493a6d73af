//! What a deployment's status says. Pure.

use std::time::Duration;

use aro_base::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus};
use kube::ResourceExt as _;

use super::rolling::Limits;
use super::sets::Set;
use crate::replica_set::time;

pub const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "Available";
const FAILURE: &str = "ReplicaFailure";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const COMPLETE: &str = "NewReplicaSetAvailable";
const PAUSED: &str = "DeploymentPaused";

/// How long a rollout may stand still; `None`: without limit.
pub fn patience(deployment: &Deployment) -> Option<SignedDuration> {
    let seconds = deployment.spec.as_ref()?.progress_deadline_seconds?;
    (seconds != i32::MAX).then(|| SignedDuration::from_secs(seconds.into()))
}

/// Conditions by type; each kept as it is unless its state or reason changes.
#[derive(Debug, Clone)]
pub struct Conditions(Vec<DeploymentCondition>);

impl Conditions {
    pub fn of(deployment: &Deployment) -> Self {
        Self(deployment.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default())
    }

    pub fn get(&self, kind: &str) -> Option<&DeploymentCondition> {
        self.0.iter().find(|condition| condition.type_ == kind)
    }

    fn reason(&self, kind: &str) -> Option<&str> {
        self.get(kind)?.reason.as_deref()
    }

    pub fn remove(&mut self, kind: &str) {
        self.0.retain(|condition| condition.type_ != kind);
    }

    pub fn set(&mut self, kind: &str, state: &str, reason: &str, message: String, now: Timestamp) {
        let same = |known: &&DeploymentCondition| known.status == state;
        let known = self.get(kind);
        if known.filter(same).is_some_and(|known| known.reason.as_deref() == Some(reason)) {
            return;
        }
        self.replace(kind, state, reason, message, now);
    }

    /// The same even if nothing but the time changes.
    fn replace(&mut self, kind: &str, state: &str, reason: &str, message: String, now: Timestamp) {
        let since = self.get(kind).filter(|known| known.status == state);
        let since = since.and_then(|known| known.last_transition_time.clone());
        let condition = DeploymentCondition {
            type_: kind.to_owned(),
            status: state.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message),
            last_update_time: Some(time(now)),
            last_transition_time: since.or_else(|| Some(time(now))),
        };
        self.remove(kind);
        self.0.push(condition);
    }
}

/// Tells of a pause or its end, so that the time of a pause does not count as standing still.
pub fn note_pause(deployment: &Deployment, conditions: &mut Conditions, now: Timestamp) {
    if patience(deployment).is_none() || conditions.reason(PROGRESSING) == Some(TIMED_OUT) {
        return;
    }
    let paused = deployment.spec.as_ref().and_then(|spec| spec.paused).unwrap_or(false);
    let told = conditions.reason(PROGRESSING) == Some(PAUSED);
    if paused && !told {
        conditions.set(PROGRESSING, "Unknown", PAUSED, "Deployment is paused".to_owned(), now);
    } else if !paused && told {
        conditions.set(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed".to_owned(), now);
    }
}

/// The counts, and whether enough is available. Other conditions are as given.
pub fn counted(
    deployment: &Deployment,
    limits: &Limits,
    new: Option<&Set>,
    old: &[Set],
    mut conditions: Conditions,
    now: Timestamp,
) -> DeploymentStatus {
    let sum = |count: fn(&Set) -> i32| old.iter().chain(new).map(count).fold(0, i32::saturating_add);
    let available = sum(|set| set.status().available_replicas.unwrap_or(0));
    if available >= limits.least() {
        let message = "Deployment has minimum availability.".to_owned();
        conditions.set(AVAILABLE, "True", "MinimumReplicasAvailable", message, now);
    } else {
        let message = "Deployment does not have minimum availability.".to_owned();
        conditions.set(AVAILABLE, "False", "MinimumReplicasUnavailable", message, now);
    }
    let some = |count: i32| Some(count).filter(|count| *count != 0);
    DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(sum(|set| set.status().replicas)),
        updated_replicas: some(new.map_or(0, |new| new.status().replicas)),
        ready_replicas: some(sum(|set| set.status().ready_replicas.unwrap_or(0))),
        available_replicas: some(available),
        unavailable_replicas: some((sum(Set::before) - available).max(0)),
        terminating_replicas: terminating(new, old),
        collision_count: deployment.status.as_ref().and_then(|status| status.collision_count),
        conditions: Some(conditions.0),
    }
}

/// `None`: a set that was looked at does not tell.
fn terminating(new: Option<&Set>, old: &[Set]) -> Option<i32> {
    let mut sum = 0_i32;
    for status in old.iter().chain(new).map(Set::status) {
        match status.terminating_replicas {
            Some(count) => sum = sum.saturating_add(count),
            None if status.observed_generation.unwrap_or(0) == 0 => {}
            None => return None,
        }
    }
    Some(sum)
}

/// Whether every pod is of the current template and available, and no other is there.
pub fn is_complete(deployment: &Deployment, limits: &Limits, status: &DeploymentStatus) -> bool {
    [status.updated_replicas, status.replicas, status.available_replicas]
        .iter()
        .all(|count| count.unwrap_or(0) == limits.desired)
        && status.observed_generation >= deployment.metadata.generation
}

fn has_moved(before: &DeploymentStatus, now: &DeploymentStatus) -> bool {
    let old = |status: &DeploymentStatus| status.replicas.unwrap_or(0) - status.updated_replicas.unwrap_or(0);
    now.updated_replicas > before.updated_replicas
        || old(now) < old(before)
        || now.ready_replicas > before.ready_replicas
        || now.available_replicas > before.available_replicas
}

/// Adds how the rollout goes to a status with counts.
pub fn with_progress(
    deployment: &Deployment,
    limits: &Limits,
    new: Option<&Set>,
    old: &[Set],
    mut status: DeploymentStatus,
    now: Timestamp,
) -> DeploymentStatus {
    let mut conditions = Conditions(status.conditions.take().unwrap_or_default());
    let what = match new {
        Some(new) => format!("ReplicaSet {:?}", new.known.name_any()),
        None => format!("Deployment {:?}", deployment.name_any()),
    };
    match patience(deployment) {
        None => conditions.remove(PROGRESSING),
        Some(patience) => {
            let settled = conditions.reason(PROGRESSING) == Some(COMPLETE)
                && status.replicas == status.updated_replicas;
            let before = deployment.status.clone().unwrap_or_default();
            if settled {
                // Nothing is being rolled out.
            } else if is_complete(deployment, limits, &status) {
                conditions.set(
                    PROGRESSING,
                    "True",
                    COMPLETE,
                    format!("{what} has successfully progressed."),
                    now,
                );
            } else if has_moved(&before, &status) {
                conditions.replace(
                    PROGRESSING,
                    "True",
                    "ReplicaSetUpdated",
                    format!("{what} is progressing."),
                    now,
                );
            } else if stands_still(&conditions, patience, now) {
                conditions.set(
                    PROGRESSING,
                    "False",
                    TIMED_OUT,
                    format!("{what} has timed out progressing."),
                    now,
                );
            }
        }
    }
    let failure =
        |set: &Set| set.status().conditions.into_iter().flatten().find(|known| known.type_ == FAILURE);
    match new.and_then(failure).or_else(|| old.iter().find_map(failure)) {
        None => conditions.remove(FAILURE),
        Some(failure) => {
            let at = failure.last_transition_time.map_or(now, |at| at.0);
            let (reason, message) = (failure.reason.unwrap_or_default(), failure.message.unwrap_or_default());
            conditions.set(FAILURE, &failure.status, &reason, message, at);
        }
    }
    status.conditions = Some(conditions.0);
    status
}

fn stands_still(conditions: &Conditions, patience: SignedDuration, now: Timestamp) -> bool {
    let Some(condition) = conditions.get(PROGRESSING) else { return false };
    match condition.reason.as_deref() {
        Some(COMPLETE) => false,
        Some(TIMED_OUT) => true,
        _ => condition.last_update_time.as_ref().is_some_and(|at| now.duration_since(at.0) > patience),
    }
}

/// When to look again whether a rollout stands still.
pub fn next_check(
    deployment: &Deployment,
    limits: &Limits,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<Duration> {
    let patience = patience(deployment)?;
    let condition = status.conditions.iter().flatten().find(|condition| condition.type_ == PROGRESSING)?;
    let over = matches!(condition.reason.as_deref(), Some(TIMED_OUT | PAUSED | COMPLETE));
    if over || is_complete(deployment, limits, status) {
        return None;
    }
    let at = condition.last_update_time.as_ref()?.0;
    let left = patience.saturating_sub(now.duration_since(at));
    // Times are written in whole seconds: one more makes it certain.
    Some(Duration::try_from(left).unwrap_or_default() + Duration::from_secs(1))
}

/// The status as it is, with why the replica set of the template could not be made.
pub fn refused(deployment: &Deployment, message: String, now: Timestamp) -> DeploymentStatus {
    let mut conditions = Conditions::of(deployment);
    if patience(deployment).is_some() {
        conditions.set(PROGRESSING, "False", "ReplicaSetCreateError", message, now);
    }
    DeploymentStatus { conditions: Some(conditions.0), ..deployment.status.clone().unwrap_or_default() }
}
