//! ReplicaSets: keeps as many pods of a template as were asked for.
//!
//! What it is not: it knows no rollouts; that is the deployment controller's work on several of these.
//!
//! The flow of a pass: find the pods that are the set's (adopting and releasing by label), make or delete the
//! difference, then count what there is and write it down once. `plan` decides which and how many.
//!
//! Invariants: pods are made in growing groups, so that a refusal is met once and not a thousand times; a set that is
//! being deleted is only counted.

mod plan;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use aro_control::{Outcome, Queue, Reconcile};
use aro_kube::informer::{Cache, Change, ObjectKey, key_of, owner_key};
use aro_kube_apimachinery::selector::LabelSelector;
use aro_runtime::{Fault, Scope};
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::caches::ORPHANS;
use crate::context::{Context, is_missing, refused};
use crate::pods::adoption::sort_out;
use crate::pods::batch::{all, slow_start};
use crate::pods::select::{owning_selector, selects};
use crate::pods::{controller_of, is_active, of_template};
use plan::{Scale, Trouble};
pub(crate) use plan::{is_namespace_ending, said};

/// Changes of pods that only change counts are looked at together: for so long, and a little longer for each pod, since
/// every look goes over all of them.
const GATHER: Duration = Duration::from_millis(20);
const GATHER_PER_POD: Duration = Duration::from_micros(250);
const GATHER_AT_MOST: Duration = Duration::from_millis(250);
/// Pods made or deleted in one pass; then the set is looked at again.
const BURST: usize = 500;
/// Events of one kind written in one pass; more would say the same again.
const MAX_EVENTS: usize = 10;

pub fn start(context: &Context, scope: &Scope) {
    let queue = Queue::new();
    let caches = &context.caches;
    let sets = caches.replica_sets.cache().clone();
    context
        .runner(Controller { context: context.clone() }, &queue)
        .with_source(caches.replica_sets.objects())
        .with_source(caches.pods.mapped(move |change, queue| enqueue_for_pod(change, &sets, queue)))
        .start(scope);
}

fn enqueue_for_pod(change: &Change<Pod>, sets: &Cache<ReplicaSet>, queue: &Queue<ObjectKey>) {
    for key in owners(change) {
        if changes_counts_only(change) {
            let wanted = sets.get(&key).and_then(|set| set.spec.as_ref()?.replicas).unwrap_or_default();
            queue.add_after(key, gather(wanted));
        } else {
            queue.add(key);
        }
    }
    // A set may adopt an orphan.
    if let Some(orphan) = change.now().filter(|pod| controller_of(&***pod).is_none() && is_active(pod)) {
        for set in sets.in_namespace(&orphan.namespace().unwrap_or_default()) {
            let selector =
                owning_selector(&set.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default());
            if selector.is_some_and(|selector| selects(&selector, orphan.metadata.labels.as_ref())) {
                queue.add(key_of(&*set));
            }
        }
    }
}

/// How long changes of a set's pods are gathered.
fn gather(pods: i32) -> Duration {
    (GATHER + GATHER_PER_POD * u32::try_from(pods).unwrap_or_default()).min(GATHER_AT_MOST)
}

/// The sets a pod belongs or belonged to.
fn owners(change: &Change<Pod>) -> Vec<ObjectKey> {
    let both = change.now().into_iter().chain(change.before());
    let mut keys: Vec<ObjectKey> = both.filter_map(|pod| owner_key::<ReplicaSet>(&**pod)).collect();
    keys.dedup();
    keys
}

/// Whether a change can only change what is counted, and not how many pods are missing.
fn changes_counts_only(change: &Change<Pod>) -> bool {
    match (change.before(), change.now()) {
        (Some(before), Some(now)) => {
            is_active(before) == is_active(now) && before.metadata.labels == now.metadata.labels
        }
        _ => false,
    }
}

struct Controller {
    context: Context,
}

impl Reconcile for Controller {
    type Key = ObjectKey;
    type Error = Fault;
    const NAME: &'static str = "replica-set";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Fault> {
        self.context.caches.synced().await;
        let Some(set) = self.context.caches.replica_sets.cache().get(key) else {
            return Ok(Outcome::Settled);
        };
        let Some(selector) = set.spec.as_ref().and_then(|spec| owning_selector(&spec.selector)) else {
            return Ok(Outcome::Settled);
        };
        let mine = self.claim(&set, &selector).await?;
        let scale = plan::scale(&set, &mine, self.related(&set).as_deref(), BURST);
        let more = scale.is_partial();
        let trouble = self.scale(&set, scale).await;
        // What was just made and deleted is in the cache.
        let now = self.context.clock.now();
        let mine: Vec<Arc<Pod>> = self.children(&set, &selector);
        let (status, next) = plan::status(&set, &mine, trouble.as_ref(), now);
        self.write_status(&set, status).await?;
        match trouble {
            Some(trouble) => Err(Fault::new(trouble.message)),
            None if more => Ok(Outcome::RequeueAfter(Duration::ZERO)),
            None => Ok(next.map_or(Outcome::Settled, Outcome::RequeueAfter)),
        }
    }
}

impl Controller {
    /// The pods that are the set's, after adopting and releasing.
    async fn claim(&self, set: &ReplicaSet, selector: &LabelSelector) -> Result<Vec<Arc<Pod>>, Fault> {
        let cache = self.context.caches.pods.cache();
        let controlled = cache.controlled_by(&set.uid().unwrap_or_default());
        let orphans = cache.by(ORPHANS, &set.namespace().unwrap_or_default());
        let orphans = orphans.into_iter().filter(|pod| is_active(pod)).collect();
        let deleting = set.metadata.deletion_timestamp.is_some();
        let sorted = sort_out(deleting, selector, controlled, orphans);
        self.context.settle_ownership(set, cache, sorted).await
    }

    fn children(&self, set: &ReplicaSet, selector: &LabelSelector) -> Vec<Arc<Pod>> {
        let controlled = self.context.caches.pods.cache().controlled_by(&set.uid().unwrap_or_default());
        controlled.into_iter().filter(|pod| selects(selector, pod.metadata.labels.as_ref())).collect()
    }

    /// Pods of all sets with the same controller, for choosing whom to delete. `None`: only its own.
    fn related(&self, set: &ReplicaSet) -> Option<Vec<Arc<Pod>>> {
        let owner = controller_of(set)?;
        let caches = &self.context.caches;
        let sets = caches.replica_sets.cache().controlled_by(&owner.uid);
        let of = |set: &Arc<ReplicaSet>| caches.pods.cache().controlled_by(&set.uid().unwrap_or_default());
        (sets.len() > 1).then(|| sets.iter().flat_map(of).collect())
    }

    async fn scale(&self, set: &ReplicaSet, scale: Scale) -> Option<Trouble> {
        match scale {
            Scale::Right => None,
            Scale::Make { now, .. } => self.make(set, now).await,
            Scale::Remove { now, .. } => self.remove(set, now).await,
        }
    }

    async fn make(&self, set: &ReplicaSet, count: usize) -> Option<Trouble> {
        let template = set.spec.as_ref()?.template.as_ref()?;
        let mut pod = of_template(template, set);
        pod.metadata.generate_name = Some(format!("{}-", set.name_any()));
        let pod = &pod;
        let made = slow_start(vec![(); count], |()| self.context.create_pod(pod)).await;
        for pod in made.done.iter().take(MAX_EVENTS) {
            self.context.events.normal(set, "SuccessfulCreate", format!("Created pod: {}", pod.name_any()));
        }
        let error = made.failed?;
        if plan::is_namespace_ending(&error) {
            return None;
        }
        self.context.events.warning(set, "FailedCreate", format!("Error creating: {}", plan::said(&error)));
        Some(Trouble { reason: "FailedCreate", message: plan::said(&error) })
    }

    async fn remove(&self, set: &ReplicaSet, pods: Vec<Arc<Pod>>) -> Option<Trouble> {
        let removed = all(pods, |pod| async move { self.context.delete_pod(&pod).await.map(|()| pod) }).await;
        for pod in removed.done.iter().take(MAX_EVENTS) {
            self.context.events.normal(set, "SuccessfulDelete", format!("Deleted pod: {}", pod.name_any()));
        }
        let fault = removed.failed?;
        let message = aro_base::chain(&fault).to_string();
        self.context.events.warning(set, "FailedDelete", format!("Error deleting: {message}"));
        Some(Trouble { reason: "FailedDelete", message })
    }

    async fn write_status(&self, set: &ReplicaSet, status: ReplicaSetStatus) -> Result<(), Fault> {
        if set.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let key = key_of(set);
        let patch = json!({"metadata": {"uid": set.uid()}, "status": {
            "replicas": status.replicas,
            "fullyLabeledReplicas": status.fully_labeled_replicas,
            "readyReplicas": status.ready_replicas,
            "availableReplicas": status.available_replicas,
            "terminatingReplicas": status.terminating_replicas,
            "observedGeneration": status.observed_generation,
            "conditions": status.conditions,
        }});
        let api = self.context.api::<ReplicaSet>(&key.namespace);
        match api.patch_status(&key.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(written) => {
                self.context.caches.replica_sets.cache().wrote(written);
                Ok(())
            }
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(refused(format!("write the status of the replica set {key}"))(error)),
        }
    }
}

/// A point in time, as the API writes it: whole seconds.
pub(crate) fn time(at: aro_base::Timestamp) -> Time {
    Time(aro_base::Timestamp::from_second(at.as_second()).unwrap_or(at))
}
