//! Pods that no kubelet ends: on nodes that are gone, deleted before they had one, and finished ones when there are too many.
//!
//! What it is not: eviction from nodes that fell silent; that is the node controller's.
//!
//! The flow: a key is a node's name, a pod that is on its way out without a node, or nothing at all (finished pods are
//! counted). A node has to be gone for a while, and to be gone on the server, before its pods are.

mod plan;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use aro_control::{Outcome, Queue, Reconcile};
use aro_kube::informer::{Cache, Change, ObjectKey, key_of};
use aro_runtime::{Fault, Scope};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::caches::BY_NODE;
use crate::context::{Context, is_missing, refused};
use crate::pods::batch::all;
use crate::pods::{is_finished, is_terminating, node_name};
use crate::replica_set::time;
use plan::{MOST_FINISHED, is_out_of_service, surplus};

/// How long a node has to be gone before its pods are.
const QUARANTINE: Duration = Duration::from_secs(40);
/// Finished pods are counted at most this often.
const COUNTING: Duration = Duration::from_secs(1);

/// Counts finished pods.
fn counting() -> ObjectKey {
    ObjectKey::new("", "")
}

fn of_node(name: &str) -> ObjectKey {
    ObjectKey::new("", name)
}

pub fn start(context: &Context, scope: &Scope) {
    let queue = Queue::new();
    let caches = &context.caches;
    let (nodes, pods) = (caches.nodes.cache().clone(), caches.pods.cache().clone());
    context
        .runner(Controller { context: context.clone() }, &queue)
        .with_source(caches.pods.mapped(move |change, queue| enqueue_for_pod(change, &nodes, &pods, queue)))
        .with_source(caches.nodes.mapped(enqueue_for_node))
        .start(scope);
}

fn enqueue_for_node(change: &Change<Node>, queue: &Queue<ObjectKey>) {
    match change {
        Change::Deleted(node) => queue.add_after(of_node(&node.name_any()), QUARANTINE),
        Change::Applied { new, .. } if is_out_of_service(new) => queue.add(of_node(&new.name_any())),
        Change::Applied { .. } => {}
    }
}

fn enqueue_for_pod(change: &Change<Pod>, nodes: &Cache<Node>, pods: &Cache<Pod>, queue: &Queue<ObjectKey>) {
    let Some(pod) = change.now() else { return };
    if is_finished(pod) && pods.len() > MOST_FINISHED {
        queue.add_after(counting(), COUNTING);
    }
    let name = node_name(pod);
    if name.is_empty() {
        if is_terminating(pod) {
            queue.add(key_of(&**pod));
        }
        return;
    }
    let moved = change.before().is_none_or(|before| node_name(before) != name);
    match nodes.get(&of_node(name)) {
        None if moved => queue.add_after(of_node(name), QUARANTINE),
        Some(node) if is_terminating(pod) && is_out_of_service(&node) => queue.add(of_node(name)),
        _ => {}
    }
}

struct Controller {
    context: Context,
}

impl Reconcile for Controller {
    type Key = ObjectKey;
    type Error = Fault;
    const NAME: &'static str = "pod-cleanup";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Fault> {
        self.context.caches.synced().await;
        let pods = self.context.caches.pods.cache();
        if *key == counting() {
            return self.end_all(surplus(pods.all(), MOST_FINISHED), None).await;
        }
        if key.namespace.is_empty() {
            return self.look_at_node(&key.name).await;
        }
        let pod = pods.get(key).filter(|pod| is_terminating(pod) && node_name(pod).is_empty());
        self.end_all(pod.into_iter().collect(), None).await
    }
}

impl Controller {
    async fn look_at_node(&self, name: &str) -> Result<Outcome, Fault> {
        let pods = self.context.caches.pods.cache().by(BY_NODE, name);
        if pods.is_empty() {
            return Ok(Outcome::Settled);
        }
        if let Some(node) = self.context.caches.nodes.cache().get(&of_node(name)) {
            let leaving = pods.into_iter().filter(|pod| is_out_of_service(&node) && is_terminating(pod));
            return self.end_all(leaving.collect(), None).await;
        }
        // The watch may be late, and this cannot be undone.
        let nodes: Api<Node> = Api::all(self.context.client.clone());
        let live = nodes.get_opt(name).await.map_err(refused(format!("read the node {name}")))?;
        if live.is_some() {
            return Ok(Outcome::Settled);
        }
        self.end_all(pods, Some("PodGC: node no longer exists")).await
    }

    async fn end_all(&self, pods: Vec<Arc<Pod>>, why: Option<&str>) -> Result<Outcome, Fault> {
        let ended = all(pods, |pod| async move { self.end(&pod, why).await }).await;
        ended.failed.map_or(Ok(Outcome::Settled), Err)
    }

    /// Says that a pod has failed, unless it has ended already, and removes it at once.
    async fn end(&self, pod: &Pod, why: Option<&str>) -> Result<(), Fault> {
        let key = key_of(pod);
        let uid = pod.uid().unwrap_or_default();
        let api = self.context.api::<Pod>(&key.namespace);
        if !is_finished(pod) {
            let mut status = json!({"phase": "Failed"});
            if let Some(why) = why {
                status["conditions"] = json!([{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
                    "message": why, "lastTransitionTime": time(self.context.clock.now())}]);
            }
            let patch = json!({"metadata": {"uid": &uid}, "status": status});
            let patched =
                api.patch_status(&key.name, &PatchParams::default(), &Patch::Strategic(&patch)).await;
            match patched {
                Ok(patched) => drop(self.context.caches.pods.cache().wrote(patched)),
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(refused(format!("mark the pod {key} as failed"))(error)),
            }
        }
        let this = Preconditions { uid: Some(uid), resource_version: None };
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(this),
            ..DeleteParams::default()
        };
        match api.delete(&key.name, &parameters).await {
            Err(error) if !is_missing(&error) => Err(refused(format!("remove the pod {key}"))(error)),
            _ => Ok(()),
        }
    }
}
