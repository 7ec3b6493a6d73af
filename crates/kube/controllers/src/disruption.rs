//! Disruption budgets: how many pods may be disrupted voluntarily at once.
//!
//! What it is not: it evicts no pod. The API server takes one from `disruptionsAllowed` for each eviction and notes the
//! pod; here the number is made right again.
//!
//! Invariant: the status is written only on top of the very version it was computed from, because evictions change it,
//! too.

mod plan;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aro_control::{Outcome, Queue, Reconcile};
use aro_kube::informer::{Change, Informer, InformerSource, Kept, ObjectKey, key_of};
use aro_runtime::{Fault, Scope};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::caches::Caches;
use crate::context::{Context, is_missing, refused};
use crate::pods::controller_of;
use crate::pods::select::{selector, selects};
use plan::{Owner, Seen, plan};

/// Changes of pods are looked at together.
const GATHER: Duration = Duration::from_millis(50);

pub fn start(context: &Context, scope: &Scope) {
    let queue = Queue::new();
    let caches = &context.caches;
    let of_pods = caches.clone();
    context
        .runner(Controller { context: context.clone() }, &queue)
        .with_source(caches.budgets.objects())
        .with_source(caches.pods.mapped(move |change, queue| enqueue_for_pod(change, &of_pods, queue)))
        .with_source(owners(&caches.deployments, caches))
        .with_source(owners(&caches.replica_sets, caches))
        .with_source(owners(&caches.stateful_sets, caches))
        .with_source(owners(&caches.jobs, caches))
        .start(scope);
}

fn enqueue_for_pod(change: &Change<Pod>, caches: &Caches, queue: &Queue<ObjectKey>) {
    let pod = change.object();
    for budget in caches.budgets.cache().in_namespace(&pod.namespace().unwrap_or_default()) {
        let both = change.now().into_iter().chain(change.before());
        let selector = budget.spec.as_ref().and_then(|spec| selector(spec.selector.as_ref()?));
        if selector
            .is_some_and(|wanted| both.into_iter().any(|pod| selects(&wanted, pod.metadata.labels.as_ref())))
        {
            queue.add_after(key_of(&*budget), GATHER);
        }
    }
}

/// A new size of an owner of pods may change how many are expected.
fn owners<K: Kept>(owners: &Informer<K>, caches: &Caches) -> InformerSource<K, ObjectKey> {
    let budgets = caches.budgets.cache().clone();
    owners.mapped(move |change, queue| {
        let same = change.before().zip(change.now());
        if same.is_some_and(|(before, now)| before.meta().generation == now.meta().generation) {
            return;
        }
        for budget in budgets.in_namespace(&change.object().namespace().unwrap_or_default()) {
            queue.add_after(key_of(&*budget), GATHER);
        }
    })
}

struct Controller {
    context: Context,
}

impl Reconcile for Controller {
    type Key = ObjectKey;
    type Error = Fault;
    const NAME: &'static str = "disruption";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Fault> {
        self.context.caches.synced().await;
        let Some(budget) = self.context.caches.budgets.cache().get(key) else { return Ok(Outcome::Settled) };
        if budget.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Settled);
        }
        let seen = self.observe(&budget);
        let plan = plan(&seen);
        for pod in &plan.overdue {
            let message = format!("Pod was expected by PDB {key} to be deleted but it wasn't");
            self.context.events.warning(&**pod, "NotDeleted", message);
        }
        if seen.pods.is_empty() && budget.status.as_ref() != Some(&plan.status) {
            self.context.events.normal(&*budget, "NoPods", "No matching pods found");
        }
        self.write(&budget, &plan.status).await?;
        Ok(plan.next.map_or(Outcome::Settled, Outcome::RequeueAfter))
    }
}

impl Controller {
    fn observe(&self, budget: &Arc<PodDisruptionBudget>) -> Seen {
        let caches = &self.context.caches;
        let namespace = budget.namespace().unwrap_or_default();
        let wanted = budget.spec.as_ref().and_then(|spec| selector(spec.selector.as_ref()?));
        let pods: Vec<Arc<Pod>> = wanted.map_or_else(Vec::new, |wanted| {
            let all = caches.pods.cache().in_namespace(&namespace).into_iter();
            all.filter(|pod| selects(&wanted, pod.metadata.labels.as_ref())).collect()
        });
        let mut owners: BTreeMap<String, Option<Owner>> = BTreeMap::new();
        for owner in pods.iter().filter_map(|pod| controller_of(&**pod)) {
            if !owners.contains_key(&owner.uid) {
                owners.insert(owner.uid.clone(), self.owner(&namespace, owner));
            }
        }
        Seen { budget: budget.clone(), pods, owners, now: self.context.clock.now() }
    }

    /// Who decides how many pods there are, and how many.
    fn owner(&self, namespace: &str, reference: &OwnerReference) -> Option<Owner> {
        let caches = &self.context.caches;
        let key = ObjectKey::new(namespace, reference.name.clone());
        let is = |uid: Option<String>| uid.as_deref() == Some(&*reference.uid);
        let owner = |uid: String, size: Option<i32>| Some(Owner { uid, size: size.unwrap_or(1) });
        match reference.kind.as_str() {
            "ReplicaSet" => {
                let set = caches.replica_sets.cache().get(&key).filter(|set| is(set.uid()))?;
                match controller_of(&*set).filter(|above| above.kind == "Deployment") {
                    None => owner(reference.uid.clone(), set.spec.as_ref()?.replicas),
                    Some(above) => {
                        let key = ObjectKey::new(namespace, above.name.clone());
                        let deployment = caches.deployments.cache().get(&key)?;
                        let same = deployment.uid().as_ref() == Some(&above.uid);
                        owner(above.uid.clone(), deployment.spec.as_ref().filter(|_| same)?.replicas)
                    }
                }
            }
            "StatefulSet" => {
                let set = caches.stateful_sets.cache().get(&key).filter(|set| is(set.uid()))?;
                owner(reference.uid.clone(), set.spec.as_ref()?.replicas)
            }
            "Job" => {
                let job = caches.jobs.cache().get(&key).filter(|job| is(job.uid()))?;
                owner(reference.uid.clone(), job.spec.as_ref()?.parallelism)
            }
            _ => None,
        }
    }

    async fn write(
        &self,
        budget: &PodDisruptionBudget,
        status: &PodDisruptionBudgetStatus,
    ) -> Result<(), Fault> {
        if budget.status.as_ref() == Some(status) {
            return Ok(());
        }
        let key = key_of(budget);
        let metadata = json!({"uid": budget.uid(), "resourceVersion": budget.resource_version()});
        let patch = json!({"metadata": metadata, "status": all_fields(budget, status)});
        let api = self.context.api::<PodDisruptionBudget>(&key.namespace);
        match api.patch_status(&key.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(written) => {
                self.context.caches.budgets.cache().wrote(written);
                Ok(())
            }
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(refused(format!("write the status of the budget {key}"))(error)),
        }
    }
}

/// Every field, so that those that are gone are removed.
fn all_fields(budget: &PodDisruptionBudget, status: &PodDisruptionBudgetStatus) -> Value {
    let before = budget.status.as_ref().and_then(|status| status.disrupted_pods.clone()).unwrap_or_default();
    let mut noted: BTreeMap<String, Value> = before.into_keys().map(|name| (name, Value::Null)).collect();
    for (name, at) in status.disrupted_pods.iter().flatten() {
        noted.insert(name.clone(), json!(at));
    }
    json!({
        "currentHealthy": status.current_healthy,
        "desiredHealthy": status.desired_healthy,
        "expectedPods": status.expected_pods,
        "disruptionsAllowed": status.disruptions_allowed,
        "disruptedPods": if noted.is_empty() { Value::Null } else { json!(noted) },
        "observedGeneration": status.observed_generation,
        "conditions": status.conditions,
    })
}
