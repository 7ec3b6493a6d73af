//! One pass over a deployment, decided. Pure: the same sight gives the same plan.

use std::sync::Arc;
use std::time::Duration;

use aro_base::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet};
use kube::ResourceExt as _;

use super::rolling::{Limits, scale_new, scale_old};
use super::scaling;
use super::sets::{REVISION, Set, fresh, next_revision, refresh, tell_apart};
use super::status::{self, Conditions, PROGRESSING};

/// Everything a pass looks at.
#[derive(Debug, Clone)]
pub struct Seen {
    pub deployment: Arc<Deployment>,
    /// Those that are the deployment's.
    pub sets: Vec<Arc<ReplicaSet>>,
    /// Sets, by uid, of which some pod has not ended yet.
    pub running: Vec<String>,
    pub now: Timestamp,
}

/// One thing to do.
#[derive(Debug, Clone)]
pub enum Act {
    /// Make the set of the current template.
    Create(Box<ReplicaSet>),
    /// Write what is different about a set.
    Update(Box<Set>),
    /// Remove a set beyond the revision history limit.
    Remove(Arc<ReplicaSet>),
}

/// What to do, and what to write down then.
#[derive(Debug, Clone)]
pub struct Plan {
    pub acts: Vec<Act>,
    pub status: DeploymentStatus,
    /// The deployment's revision, if it has to be written.
    pub revision: Option<String>,
    pub next: Option<Duration>,
}

pub fn plan(seen: &Seen) -> Plan {
    let deployment = &*seen.deployment;
    let limits = Limits::of(deployment);
    let (mut new, mut old) = tell_apart(deployment, seen.sets.clone());
    let revision = next_revision(&old);
    let mut conditions = Conditions::of(deployment);
    let mut acts = Vec::new();
    if deployment.metadata.deletion_timestamp.is_some() {
        let status = status::counted(deployment, &limits, new.as_ref(), &old, conditions, seen.now);
        return Plan { acts, status, revision: None, next: None };
    }
    status::note_pause(deployment, &mut conditions, seen.now);
    if let Some(new) = &mut new {
        refresh(new, deployment, revision);
        if status::patience(deployment).is_some() && conditions.get(PROGRESSING).is_none() {
            let message = format!("Found new replica set {:?}", new.known.name_any());
            conditions.set(PROGRESSING, "True", "FoundNewReplicaSet", message, seen.now);
        }
    }
    let told = deployment.metadata.annotations.as_ref().and_then(|all| all.get(REVISION));
    let mut current = new.as_ref().and_then(|new| new.annotations.get(REVISION).cloned());
    let paused = deployment.spec.as_ref().and_then(|spec| spec.paused).unwrap_or(false);
    let all: Vec<&Set> = new.iter().chain(&old).collect();
    let status = if paused || scaling::is_due(&limits, &all) {
        let shown = deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or(0);
        scaling::scale(&limits, new.as_mut(), &mut old, shown);
        if paused {
            acts.extend(forgotten(deployment, &old));
        }
        status::counted(deployment, &limits, new.as_ref(), &old, conditions, seen.now)
    } else {
        if let Some(set) = roll(seen, &limits, &mut new, &mut old, revision) {
            let message = format!("Created new replica set {:?}", set.name_any());
            if status::patience(deployment).is_some() {
                conditions.set(PROGRESSING, "True", "NewReplicaSetCreated", message, seen.now);
            }
            current = Some(revision.to_string());
            acts.push(Act::Create(Box::new(set)));
        }
        let before = deployment.status.clone().unwrap_or_default();
        if acts.is_empty() && status::is_complete(deployment, &limits, &before) {
            acts.extend(forgotten(deployment, &old));
        }
        let counted = status::counted(deployment, &limits, new.as_ref(), &old, conditions, seen.now);
        status::with_progress(deployment, &limits, new.as_ref(), &old, counted, seen.now)
    };
    let next = status::next_check(deployment, &limits, &status, seen.now);
    acts.extend(new.into_iter().chain(old).filter(Set::is_changed).map(|set| Act::Update(Box::new(set))));
    let revision = current.filter(|current| told != Some(current));
    Plan { acts, status, revision, next }
}

/// One step of a rollout. Returns the set to be made, if there is none for the template.
fn roll(
    seen: &Seen,
    limits: &Limits,
    new: &mut Option<Set>,
    old: &mut [Set],
    revision: i64,
) -> Option<ReplicaSet> {
    let deployment = &*seen.deployment;
    let total = old.iter().map(|set| set.replicas).fold(0, i32::saturating_add);
    if limits.recreate {
        if total > 0 {
            for set in old.iter_mut().filter(|set| set.replicas > 0) {
                set.resize(0, limits.desired, limits.surge);
            }
            return None;
        }
        if old.iter().any(|set| set.status().replicas > 0 || seen.running.contains(&uid(set))) {
            return None;
        }
    }
    let Some(new) = new else {
        return fresh(deployment, limits, revision, limits.room_for_new(0, total));
    };
    if !scale_new(limits, new, old) && !limits.recreate {
        scale_old(limits, new, old);
    }
    None
}

fn uid(set: &Set) -> String {
    set.known.uid().unwrap_or_default()
}

/// Old sets without pods beyond those that are kept for going back, oldest revisions first.
fn forgotten(deployment: &Deployment, old: &[Set]) -> Vec<Act> {
    let limit = deployment.spec.as_ref().and_then(|spec| spec.revision_history_limit);
    let Some(limit) = limit.filter(|limit| *limit != i32::MAX) else { return Vec::new() };
    let mut alive: Vec<&Set> =
        old.iter().filter(|set| set.known.metadata.deletion_timestamp.is_none()).collect();
    let surplus = alive.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    alive.sort_by_cached_key(|set| (set.revision(), set.made()));
    let empty = |set: &&&Set| {
        let status = set.status();
        let seen = status.observed_generation >= set.known.metadata.generation;
        set.before() == 0 && set.replicas == 0 && status.replicas == 0 && seen
    };
    alive.iter().take(surplus).filter(empty).map(|set| Act::Remove(set.known.clone())).collect()
}
