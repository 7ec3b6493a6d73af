//! The scheduler: gives every pod that waits for one a node that has room for it and that it may run on.
//!
//! What it looks at: resources, node names and selectors, required node affinity, taints and tolerations, cordoned
//! nodes, claims that are not bound yet. What it does not look at: affinity between pods, spread, priorities.
//!
//! The flow: [`Ledger`] knows what is promised on which node, kept by the informers. A pass takes a pod, decides in
//! memory ([`fit`]) and notes the promise before it asks the API server, so that passes side by side do not promise the
//! same room twice. A pod that fits nowhere waits until a node or the room on one changes.
//!
//! Invariant: what the API server refuses is taken back; what it accepted stays promised until the pod ends.

mod amounts;
mod fit;
mod ledger;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use aro_control::{Outcome, Queue, Reconcile, RunnerOptions};
use aro_kube::informer::{ObjectKey, key_of};
use aro_runtime::{Fault, Scope};
use k8s_openapi::api::core::v1::{Binding, Node, ObjectReference, PersistentVolumeClaim, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::json;

use crate::context::{Context, is_conflict, is_missing, refused};
use crate::pods;
use ledger::Ledger;

/// Whose pods are ours.
const NAME: &str = "default-scheduler";
/// Annotation on a claim that waits for its first pod: where that pod will run.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

struct Scheduler {
    context: Context,
    ledger: Arc<Mutex<Ledger>>,
    /// Those that fit nowhere.
    waiting: Arc<Mutex<HashSet<ObjectKey>>>,
}

pub fn start(context: &Context, scope: &Scope) {
    let queue: Queue<ObjectKey> = Queue::new();
    let ledger: Arc<Mutex<Ledger>> = Arc::default();
    let waiting: Arc<Mutex<HashSet<ObjectKey>>> = Arc::default();
    let retry = {
        let waiting = waiting.clone();
        move |queue: &Queue<ObjectKey>| waiting.lock().drain().for_each(|key| queue.add(key))
    };
    let pods = {
        let (ledger, waiting, retry) = (ledger.clone(), waiting.clone(), retry.clone());
        context.caches.pods.mapped(move |change, queue| {
            let pod = change.object();
            let freed = match change.now() {
                Some(pod) => ledger.lock().saw(pod),
                None => ledger.lock().ended(&pod.uid().unwrap_or_default()),
            };
            let key = key_of(&**pod);
            if change.now().is_some() && wants_node(pod) {
                queue.add(key);
            } else {
                waiting.lock().remove(&key);
            }
            if freed {
                retry(queue);
            }
        })
    };
    let nodes = {
        let (ledger, retry) = (ledger.clone(), retry.clone());
        context.caches.nodes.mapped(move |change, queue| {
            let changed = match change.now() {
                Some(node) => ledger.lock().node(node),
                None => ledger.lock().node_gone(&change.object().name_any()),
            };
            if changed {
                retry(queue);
            }
        })
    };
    context
        .runner(Scheduler { context: context.clone(), ledger, waiting }, &queue)
        .with_options(RunnerOptions { concurrency: 64, ..RunnerOptions::default() })
        .with_source(pods)
        .with_source(nodes)
        .with_source(context.caches.claims.mapped(move |_, queue| retry(queue)))
        .start(scope);
}

/// Whether a pod waits for us.
fn wants_node(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let ours = spec.scheduler_name.as_deref().is_none_or(|name| name == NAME);
    let gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
    ours && !gated && spec.node_name.is_none() && pods::is_active(pod)
}

impl Reconcile for Scheduler {
    type Key = ObjectKey;
    type Error = Fault;
    const NAME: &'static str = "scheduler";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Fault> {
        self.context.caches.synced().await;
        let Some(pod) = self.context.caches.pods.cache().get(key).filter(|pod| wants_node(pod)) else {
            return Ok(Outcome::Settled);
        };
        let claims = match self.claims(&pod) {
            Ok(claims) => claims,
            Err(why) => return self.put_off(key, &pod, why).await,
        };
        let uid = pod.uid().unwrap_or_default();
        if self.ledger.lock().is_bound(&uid) {
            // The watch is late.
            return Ok(Outcome::Settled);
        }
        let chosen = self.ledger.lock().promise(&pod);
        let node = match chosen {
            Ok(node) => node,
            Err(why) => return self.put_off(key, &pod, why).await,
        };
        let bound = self.bind(&pod, &node, claims).await;
        match bound {
            Ok(true) => self.ledger.lock().bound(&uid),
            _ => self.ledger.lock().take_back(&uid),
        }
        match bound {
            Ok(true) => Ok(Outcome::Settled),
            Ok(false) => {
                self.waiting.lock().insert(key.clone());
                Ok(Outcome::Waiting { on: "the claims of the pod", recheck: Some(RECHECK) })
            }
            Err(error) if is_missing(&error) => Ok(Outcome::Settled),
            // Another scheduler bound it; the watch will deliver that.
            Err(error) if is_conflict(&error) => Ok(Outcome::RequeueAfter(Duration::from_secs(1))),
            Err(error) => Err(refused(format!("bind {key} to {node}"))(error)),
        }
    }
}

/// How often a pod that fits nowhere is looked at even though nothing has changed.
const RECHECK: Duration = Duration::from_mins(1);

impl Scheduler {
    /// The claims of a pod that wait for it to get a node. Others have to be bound first.
    fn claims(&self, pod: &Pod) -> Result<Vec<Arc<PersistentVolumeClaim>>, String> {
        let namespace = pod.namespace().unwrap_or_default();
        let mut open = Vec::new();
        for name in claim_names(pod) {
            let key = ObjectKey::new(namespace.clone(), name.clone());
            let Some(claim) = self.context.caches.claims.cache().get(&key) else {
                return Err(format!("persistentvolumeclaim \"{name}\" not found"));
            };
            if claim.metadata.deletion_timestamp.is_some() {
                return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
            }
            let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
            if phase == Some("Bound") {
                continue;
            }
            if !self.waits_for_consumer(&claim) {
                return Err("pod has unbound immediate PersistentVolumeClaims".to_owned());
            }
            open.push(claim);
        }
        Ok(open)
    }

    fn waits_for_consumer(&self, claim: &PersistentVolumeClaim) -> bool {
        let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.clone()).unwrap_or_default();
        let class = self.context.caches.storage_classes.cache().get(&ObjectKey::new("", class));
        class.is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"))
    }

    /// Binds the pod, unless its claims have to be bound to that node first.
    async fn bind(
        &self,
        pod: &Pod,
        node: &str,
        claims: Vec<Arc<PersistentVolumeClaim>>,
    ) -> Result<bool, kube::Error> {
        let namespace = pod.namespace().unwrap_or_default();
        if !claims.is_empty() {
            for claim in claims {
                if claim.annotations().get(SELECTED_NODE).is_some_and(|known| known == node) {
                    continue;
                }
                let patch = json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
                let api = self.context.api::<PersistentVolumeClaim>(&namespace);
                api.patch(&claim.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
            }
            return Ok(false);
        }
        let binding = Binding {
            metadata: ObjectMeta { name: pod.metadata.name.clone(), uid: pod.uid(), ..ObjectMeta::default() },
            target: ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: Some(node.to_owned()),
                ..ObjectReference::default()
            },
        };
        let api = self.context.api::<Pod>(&namespace);
        let _: serde_json::Value =
            api.create_subresource("binding", &pod.name_any(), &PostParams::default(), &binding).await?;
        let message = format!("Successfully assigned {namespace}/{} to {node}", pod.name_any());
        self.context.events.normal(pod, "Scheduled", message);
        Ok(true)
    }

    /// Nothing fits now: records that once, and waits for a change.
    async fn put_off(&self, key: &ObjectKey, pod: &Pod, why: String) -> Result<Outcome, Fault> {
        self.waiting.lock().insert(key.clone());
        let said = pods::condition(pod, "PodScheduled");
        let same = said.is_some_and(|said| said.status == "False" && said.message.as_deref() == Some(&why));
        if !same {
            self.context.events.warning(pod, "FailedScheduling", why.clone());
            let since =
                said.filter(|said| said.status == "False").and_then(|said| said.last_transition_time.clone());
            let condition = PodCondition {
                type_: "PodScheduled".to_owned(),
                status: "False".to_owned(),
                reason: Some("Unschedulable".to_owned()),
                message: Some(why),
                last_transition_time: since.or_else(|| Some(Time(self.context.clock.now()))),
                ..PodCondition::default()
            };
            let patch = json!({"metadata": {"uid": pod.uid()}, "status": {"conditions": [condition]}});
            let api = self.context.api::<Pod>(&key.namespace);
            match api.patch_status(&key.name, &PatchParams::default(), &Patch::Strategic(&patch)).await {
                Ok(pod) => drop(self.context.caches.pods.cache().wrote(pod)),
                Err(error) if is_missing(&error) || is_conflict(&error) => {}
                Err(error) => return Err(refused(format!("say why {key} has no node"))(error)),
            }
        }
        Ok(Outcome::Waiting { on: "room on a node", recheck: Some(RECHECK) })
    }
}

fn claim_names(pod: &Pod) -> Vec<String> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let named = |volume: &k8s_openapi::api::core::v1::Volume| {
        let ephemeral = volume.ephemeral.as_ref().map(|_| format!("{}-{}", pod.name_any(), volume.name));
        volume.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.clone()).or(ephemeral)
    };
    spec.volumes.iter().flatten().filter_map(named).collect()
}

/// What a node lets run: cordoned ones count as tainted.
fn taints_of(node: &Node) -> Vec<k8s_openapi::api::core::v1::Taint> {
    let spec = node.spec.as_ref();
    let mut taints = spec.and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let cordoned = spec.and_then(|spec| spec.unschedulable).unwrap_or_default();
    if cordoned && !taints.iter().any(|taint| taint.key == fit::UNSCHEDULABLE) {
        taints.push(k8s_openapi::api::core::v1::Taint {
            key: fit::UNSCHEDULABLE.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Default::default()
        });
    }
    taints
}
