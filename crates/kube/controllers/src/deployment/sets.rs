//! The replica sets of a deployment while a pass decides about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use aro_base::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec, ReplicaSetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;

use super::rolling::Limits;
use super::template::{HASH_LABEL, hash, same};
use crate::pods::controller_reference;

pub const REVISION: &str = "deployment.kubernetes.io/revision";
pub const HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations of the deployment that its replica sets do not get.
const OWN: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAXIMUM,
    "deprecated.deployment.rollback.to",
];
/// How long the list of former revisions may grow.
const HISTORY_LENGTH: usize = 2000;
/// How long names may be.
const NAME_LENGTH: usize = 253;

/// One replica set: as it is, and as it shall be.
#[derive(Debug, Clone)]
pub struct Set {
    pub known: Arc<ReplicaSet>,
    pub replicas: i32,
    pub min_ready: i32,
    pub annotations: BTreeMap<String, String>,
}

impl Set {
    pub fn new(known: Arc<ReplicaSet>) -> Self {
        let spec = known.spec.as_ref();
        Self {
            replicas: spec.and_then(|spec| spec.replicas).unwrap_or(1),
            min_ready: spec.and_then(|spec| spec.min_ready_seconds).unwrap_or(0),
            annotations: known.metadata.annotations.clone().unwrap_or_default(),
            known,
        }
    }

    /// How many it was asked for before this pass.
    pub fn before(&self) -> i32 {
        self.known.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
    }

    /// Whether something about it has to be written.
    pub fn is_changed(&self) -> bool {
        let now = Self::new(self.known.clone());
        (now.replicas, now.min_ready, &now.annotations) != (self.replicas, self.min_ready, &self.annotations)
    }

    pub fn status(&self) -> ReplicaSetStatus {
        self.known.status.clone().unwrap_or_default()
    }

    /// How many of its pods are available for certain: its status may be older than what was asked of it since.
    pub fn available(&self) -> i32 {
        let status = self.known.status.as_ref();
        status.and_then(|status| status.available_replicas).unwrap_or(0).min(self.replicas)
    }

    pub fn made(&self) -> (Timestamp, String) {
        let made = self.known.metadata.creation_timestamp.as_ref().map_or(Timestamp::MIN, |made| made.0);
        (made, self.known.name_any())
    }

    /// Its place in the history; those that tell none were never rolled out.
    pub fn revision(&self) -> i64 {
        number(&self.annotations, REVISION).unwrap_or(0)
    }

    /// Notes what the deployment is like, for telling a change of its size from a rollout later.
    pub fn note_size(&mut self, desired: i32, surge: i32) {
        self.annotations.insert(DESIRED.to_owned(), desired.to_string());
        self.annotations.insert(MAXIMUM.to_owned(), desired.saturating_add(surge).to_string());
    }

    /// Asks for another number of pods.
    pub fn resize(&mut self, to: i32, desired: i32, surge: i32) {
        self.replicas = to.max(0);
        self.note_size(desired, surge);
    }
}

/// A number in an annotation.
pub fn number<T: std::str::FromStr>(annotations: &BTreeMap<String, String>, name: &str) -> Option<T> {
    annotations.get(name)?.parse().ok()
}

/// The replica sets of a deployment: the one of its template, if it is there, and the others, oldest first.
pub fn tell_apart(deployment: &Deployment, sets: Vec<Arc<ReplicaSet>>) -> (Option<Set>, Vec<Set>) {
    let mut sets: Vec<Set> = sets.into_iter().map(Set::new).collect();
    sets.sort_by_cached_key(Set::made);
    let wanted = deployment.spec.as_ref().map(|spec| &spec.template);
    let is_new = |set: &Set| {
        let template = set.known.spec.as_ref().and_then(|spec| spec.template.as_ref());
        template.zip(wanted).is_some_and(|(one, other)| same(one, other))
    };
    let new = sets.iter().position(is_new).map(|position| sets.remove(position));
    (new, sets)
}

/// The revision of what is rolled out now: one more than all before.
pub fn next_revision(old: &[Set]) -> i64 {
    old.iter().map(Set::revision).max().unwrap_or(0).saturating_add(1)
}

/// Brings the set of the current template up to date with its deployment.
pub fn refresh(set: &mut Set, deployment: &Deployment, next: i64) {
    copy_annotations(deployment, &mut set.annotations);
    set.min_ready = deployment.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
    let had = set.annotations.get(REVISION).cloned();
    // One that cannot be read was not written by us, and is left alone.
    let Ok(now) = had.as_deref().map_or(Ok(0), str::parse::<i64>) else { return };
    if now >= next {
        return;
    }
    set.annotations.insert(REVISION.to_owned(), next.to_string());
    if let Some(had) = had {
        // It comes back: what it was before is remembered.
        let past = set.annotations.get(HISTORY).map(String::as_str).unwrap_or_default();
        let past = longer_history(past, &had);
        set.annotations.insert(HISTORY.to_owned(), past);
    }
}

/// Adds a revision to a list of former ones; the oldest are dropped when it gets too long.
fn longer_history(past: &str, revision: &str) -> String {
    let mut all: Vec<&str> = past.split(',').filter(|one| !one.is_empty()).chain([revision]).collect();
    while all.len() > 1 && all.iter().map(|one| one.len() + 1).sum::<usize>() > HISTORY_LENGTH {
        all.remove(0);
    }
    all.join(",")
}

fn copy_annotations(deployment: &Deployment, into: &mut BTreeMap<String, String>) {
    for (name, value) in deployment.metadata.annotations.iter().flatten() {
        if !OWN.contains(&name.as_str()) {
            into.insert(name.clone(), value.clone());
        }
    }
}

/// The replica set for the current template; `replicas` is still to be decided.
pub fn fresh(deployment: &Deployment, limits: &Limits, revision: i64, replicas: i32) -> Option<ReplicaSet> {
    let spec = deployment.spec.as_ref()?;
    let word = hash(&spec.template, deployment.status.as_ref().and_then(|status| status.collision_count));
    let mut template = spec.template.clone();
    let meta = template.metadata.get_or_insert_default();
    let labels = meta.labels.get_or_insert_default();
    labels.insert(HASH_LABEL.to_owned(), word.clone());
    let labels = labels.clone();
    let mut selector = spec.selector.clone();
    selector.match_labels.get_or_insert_default().insert(HASH_LABEL.to_owned(), word.clone());
    let mut annotations = BTreeMap::new();
    copy_annotations(deployment, &mut annotations);
    annotations.insert(REVISION.to_owned(), revision.to_string());
    let mut set = ReplicaSet {
        metadata: ObjectMeta {
            name: Some(set_name(&deployment.name_any(), &word)),
            namespace: deployment.namespace(),
            labels: Some(labels),
            owner_references: Some(vec![controller_reference(deployment)]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(replicas),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        }),
        status: None,
    };
    annotations.insert(DESIRED.to_owned(), limits.desired.to_string());
    annotations.insert(MAXIMUM.to_owned(), limits.desired.saturating_add(limits.surge).to_string());
    set.metadata.annotations = Some(annotations);
    Some(set)
}

fn set_name(deployment: &str, hash: &str) -> String {
    let room = NAME_LENGTH - hash.len() - 1;
    // Names are ASCII.
    format!("{}-{hash}", deployment.get(..room).unwrap_or(deployment))
}
