//! Deployments: rolls a template out over replica sets, and back.
//!
//! What it is not: it makes no pods; each of its replica sets does.
//!
//! The flow of a pass: find the replica sets (adopting and releasing by label), let `plan` decide, do it, write the
//! status. A pass goes one step; the change of a replica set that follows from it brings the next pass.
//!
//! Invariants: there is one replica set per template; an old one of the same template is used again and its revision
//! moves up. Names of replica sets follow from the template, so that a restarted process makes none twice.

mod plan;
mod rolling;
mod scaling;
mod sets;
mod status;
mod template;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use aro_control::{Outcome, Queue, Reconcile};
use aro_kube::informer::{Change, ObjectKey, key_of, owner_key};
use aro_runtime::{Fault, Scope};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Map, Value, json};

use crate::caches::{Caches, ORPHANS};
use crate::context::{Context, is_conflict, is_missing, refused};
use crate::pods::adoption::sort_out;
use crate::pods::select::{owning_selector, selects};
use crate::pods::{controller_of, is_finished};
use plan::{Act, Plan, Seen, plan};
use sets::{REVISION, Set};

/// Changes that only change counts are looked at together.
const GATHER: Duration = Duration::from_millis(20);

pub fn start(context: &Context, scope: &Scope) {
    let queue = Queue::new();
    let caches = &context.caches;
    let (of_sets, of_pods) = (caches.clone(), caches.clone());
    context
        .runner(Controller { context: context.clone() }, &queue)
        .with_source(caches.deployments.objects())
        .with_source(
            caches.replica_sets.mapped(move |change, queue| enqueue_for_set(change, &of_sets, queue)),
        )
        .with_source(caches.pods.mapped(move |change, queue| enqueue_for_pod(change, &of_pods, queue)))
        .start(scope);
}

/// The strategy `Recreate` waits for the last pod of the old sets; every other decision is made by the counts of the sets.
fn enqueue_for_pod(change: &Change<Pod>, caches: &Caches, queue: &Queue<ObjectKey>) {
    let Change::Deleted(pod) = change else { return };
    let Some(set) = owner_key::<ReplicaSet>(&**pod) else { return };
    if let Some(key) = caches.replica_sets.cache().get(&set).and_then(|set| owner_key::<Deployment>(&*set)) {
        queue.add_after(key, GATHER);
    }
}

fn enqueue_for_set(change: &Change<ReplicaSet>, caches: &Caches, queue: &Queue<ObjectKey>) {
    let counts_only = change
        .before()
        .zip(change.now())
        .is_some_and(|(before, now)| before.metadata.generation == now.metadata.generation);
    for set in change.now().into_iter().chain(change.before()) {
        if let Some(key) = owner_key::<Deployment>(&**set) {
            queue.add_after(key, if counts_only { GATHER } else { Duration::ZERO });
        }
    }
    let Some(orphan) = change.now().filter(|set| controller_of(&***set).is_none()) else { return };
    for deployment in caches.deployments.cache().in_namespace(&orphan.namespace().unwrap_or_default()) {
        let selector = deployment.spec.as_ref().and_then(|spec| owning_selector(&spec.selector));
        if selector.is_some_and(|selector| selects(&selector, orphan.metadata.labels.as_ref())) {
            queue.add(key_of(&*deployment));
        }
    }
}

struct Controller {
    context: Context,
}

impl Reconcile for Controller {
    type Key = ObjectKey;
    type Error = Fault;
    const NAME: &'static str = "deployment";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Fault> {
        self.context.caches.synced().await;
        let Some(deployment) = self.context.caches.deployments.cache().get(key) else {
            return Ok(Outcome::Settled);
        };
        let Some(seen) = self.observe(deployment.clone()).await? else {
            let message = "This deployment is selecting all pods. A non-empty selector is required.";
            self.context.events.warning(&*deployment, "SelectingAll", message);
            return Ok(Outcome::Settled);
        };
        let Plan { acts, status, revision, next } = plan(&seen);
        for act in acts {
            self.apply(&seen.deployment, act).await?;
        }
        self.write(&seen.deployment, status, revision).await?;
        Ok(next.map_or(Outcome::Settled, Outcome::RequeueAfter))
    }
}

impl Controller {
    /// `None`: it selects nothing that could be its own.
    async fn observe(&self, deployment: Arc<Deployment>) -> Result<Option<Seen>, Fault> {
        let Some(selector) = deployment.spec.as_ref().and_then(|spec| owning_selector(&spec.selector)) else {
            return Ok(None);
        };
        let caches = &self.context.caches;
        let cache = caches.replica_sets.cache();
        let controlled = cache.controlled_by(&deployment.uid().unwrap_or_default());
        let orphans = cache.by(ORPHANS, &deployment.namespace().unwrap_or_default());
        let deleting = deployment.metadata.deletion_timestamp.is_some();
        let sorted = sort_out(deleting, &selector, controlled, orphans);
        let sets = self.context.settle_ownership(&*deployment, cache, sorted).await?;
        let running =
            |uid: &String| caches.pods.cache().controlled_by(uid).iter().any(|pod| !is_finished(pod));
        let recreate = rolling::Limits::of(&deployment).recreate;
        let uids = sets.iter().filter(|_| recreate).filter_map(|set| set.uid());
        let running = uids.filter(running).collect();
        Ok(Some(Seen { deployment, sets, running, now: self.context.clock.now() }))
    }

    async fn apply(&self, deployment: &Deployment, act: Act) -> Result<(), Fault> {
        match act {
            Act::Create(set) => self.create(deployment, &set).await,
            Act::Update(set) => self.update(deployment, &set).await,
            Act::Remove(set) => self.remove(&set).await,
        }
    }

    async fn create(&self, deployment: &Deployment, set: &ReplicaSet) -> Result<(), Fault> {
        let key = key_of(set);
        match self.context.api::<ReplicaSet>(&key.namespace).create(&PostParams::default(), set).await {
            Ok(made) => {
                let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
                if replicas > 0 {
                    let message = format!("Scaled up replica set {} from 0 to {replicas}", key.name);
                    self.context.events.normal(deployment, "ScalingReplicaSet", message);
                }
                self.context.caches.replica_sets.cache().wrote(made);
                Ok(())
            }
            Err(error) if is_conflict(&error) => self.resolve_collision(deployment, set).await,
            Err(error) if crate::replica_set::is_namespace_ending(&error) => Ok(()),
            Err(error) => {
                let said = crate::replica_set::said(&error);
                let message = format!("Failed to create new replica set {:?}: {said}", key.name);
                self.context.events.warning(deployment, "ReplicaSetCreateError", message.clone());
                let status = status::refused(deployment, message, self.context.clock.now());
                self.write(deployment, status, None).await?;
                Err(refused(format!("create the replica set {key}"))(error))
            }
        }
    }

    /// There is a set of that name already: ours, which we did not know of yet, or another with the same hash.
    async fn resolve_collision(&self, deployment: &Deployment, set: &ReplicaSet) -> Result<(), Fault> {
        let key = key_of(set);
        let found = self.context.api::<ReplicaSet>(&key.namespace).get_opt(&key.name).await;
        let found = found.map_err(refused(format!("read the replica set {key}")))?;
        let Some(found) = found else { return Err(Fault::new("the replica set was there and is gone")) };
        let ours = controller_of(&found).is_some_and(|owner| Some(&owner.uid) == deployment.uid().as_ref());
        let template =
            |set: &ReplicaSet| set.spec.as_ref().and_then(|spec| spec.template.clone()).unwrap_or_default();
        if ours && template::same(&template(&found), &template(set)) {
            self.context.caches.replica_sets.cache().wrote(found);
            return Err(Fault::new("the replica set is there already; look again"));
        }
        let mut status = deployment.status.clone().unwrap_or_default();
        status.collision_count = Some(status.collision_count.unwrap_or(0).saturating_add(1));
        self.write(deployment, status, None).await?;
        Err(Fault::new(format!("another replica set has the name {key}")))
    }

    async fn update(&self, deployment: &Deployment, set: &Set) -> Result<(), Fault> {
        let key = key_of(&*set.known);
        let patch = json!({
            "metadata": {"uid": set.known.uid(), "annotations": set.annotations},
            "spec": {"replicas": set.replicas, "minReadySeconds": set.min_ready},
        });
        let api = self.context.api::<ReplicaSet>(&key.namespace);
        let patched = api.patch(&key.name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        let patched = patched.map_err(refused(format!("update the replica set {key}")))?;
        self.context.caches.replica_sets.cache().wrote(patched);
        let (before, now) = (set.before(), set.replicas);
        if before != now {
            let way = if before < now { "up" } else { "down" };
            let message = format!("Scaled {way} replica set {} from {before} to {now}", key.name);
            self.context.events.normal(deployment, "ScalingReplicaSet", message);
        }
        Ok(())
    }

    async fn remove(&self, set: &ReplicaSet) -> Result<(), Fault> {
        let key = key_of(set);
        let uid = set.uid().unwrap_or_default();
        let this = Preconditions { uid: Some(uid.clone()), resource_version: None };
        let parameters = DeleteParams { preconditions: Some(this), ..DeleteParams::background() };
        match self.context.api::<ReplicaSet>(&key.namespace).delete(&key.name, &parameters).await {
            Err(error) if !is_missing(&error) => Err(refused(format!("delete the replica set {key}"))(error)),
            _ => {
                self.context.caches.replica_sets.cache().removed(&key, &uid);
                Ok(())
            }
        }
    }

    async fn write(
        &self,
        deployment: &Deployment,
        status: DeploymentStatus,
        revision: Option<String>,
    ) -> Result<(), Fault> {
        let before = deployment.status.clone().unwrap_or_default();
        if revision.is_none() && before == status {
            return Ok(());
        }
        let key = key_of(deployment);
        let mut metadata = Map::from_iter([("uid".to_owned(), json!(deployment.uid()))]);
        if let Some(revision) = revision {
            metadata.insert("annotations".to_owned(), json!({REVISION: revision}));
        }
        let patch = json!({"metadata": metadata, "status": all_fields(&status)});
        let api = self.context.api::<Deployment>(&key.namespace);
        match api.patch_status(&key.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(written) => {
                self.context.caches.deployments.cache().wrote(written);
                Ok(())
            }
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(refused(format!("write the status of the deployment {key}"))(error)),
        }
    }
}

/// Every field, so that those that are gone are removed.
fn all_fields(status: &DeploymentStatus) -> Value {
    json!({
        "observedGeneration": status.observed_generation,
        "replicas": status.replicas,
        "updatedReplicas": status.updated_replicas,
        "readyReplicas": status.ready_replicas,
        "availableReplicas": status.available_replicas,
        "unavailableReplicas": status.unavailable_replicas,
        "terminatingReplicas": status.terminating_replicas,
        "collisionCount": status.collision_count,
        "conditions": status.conditions,
    })
}
