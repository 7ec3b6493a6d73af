//! The life of nodes: who fell silent, who is back, and what that means for pods.
//!
//! What it is not: it registers no nodes and posts no statuses for them; that is what kubelets do.
//!
//! Invariants:
//! * A renewed lease costs nothing but a note; a node gets a pass when something is due or changed.
//! * Time counts from the start of the controller: no node is lost because the controller was down.
//! * When all nodes are lost, nothing is moved.

mod disruption;
mod eviction;
mod health;
mod plan;

use std::sync::Arc;

use aro_base::Timestamp;
use aro_control::{Outcome, Queue, Reconcile};
use aro_kube::informer::{ObjectKey, key_of};
use aro_runtime::{Fault, Scope};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use tokio::time::Instant;

use crate::caches::{BY_NODE, NODE_LEASES};
use crate::context::{Context, is_missing, refused};
use crate::pods;
use disruption::{Gate, Mode};
use health::Health;
use plan::{Moving, Readiness};

const AT_ONCE: usize = 32;

struct Controller {
    context: Context,
    health: Health,
    gate: Gate,
    queue: Queue<ObjectKey>,
}

pub fn start(context: &Context, scope: &Scope) {
    let (queue, health) = (Queue::new(), Health::default());
    let caches = &context.caches;
    let signs = health.clone();
    let nodes = caches.nodes.mapped(move |change, queue| {
        let name = change.object().name_any();
        match change.now() {
            Some(node) => signs.posted(&name, plan::heartbeat(node), Instant::now()),
            None => signs.forget(&name),
        }
        queue.add(ObjectKey::new("", name));
    });
    let signs = health.clone();
    // A renewal needs no pass: the next one reads it.
    let leases = caches.leases.mapped(move |change, _| {
        if let Some(lease) = change.now() {
            signs.renewed(&lease.name_any(), renewed(lease), Instant::now());
        }
    });
    let known = caches.nodes.cache().clone();
    let pods = caches.pods.mapped(move |change, queue| {
        // A pod whose status is ready on a node that is lost.
        if let Some(pod) = change.now().filter(|pod| pods::is_ready(pod))
            && let Some(node) = known.get(&ObjectKey::new("", pods::node_name(pod)))
            && is_lost(&node)
        {
            queue.add(key_of(&*node));
        }
    });
    let controller =
        Controller { context: context.clone(), health, gate: Gate::default(), queue: queue.clone() };
    context.runner(controller, &queue).with_source(nodes).with_source(leases).with_source(pods).start(scope);
    eviction::start(context, scope);
}

fn renewed(lease: &Lease) -> Option<Timestamp> {
    lease.spec.as_ref()?.renew_time.as_ref().map(|time| time.0)
}

fn is_lost(node: &Node) -> bool {
    matches!(plan::readiness(node), Readiness::NotReady | Readiness::Unknown)
}

impl Reconcile for Controller {
    type Key = ObjectKey;
    type Error = Fault;
    const NAME: &'static str = "nodes";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Fault> {
        let caches = &self.context.caches;
        let Some(mut node) = caches.nodes.cache().get(key) else {
            self.judge();
            return Ok(Outcome::Settled);
        };
        let mut left = self.health.left(&key.name, self.context.node_grace, Instant::now());
        if left.is_zero() && plan::readiness(&node) != Readiness::Unknown {
            self.ask_lease(&key.name).await?;
            left = self.health.left(&key.name, self.context.node_grace, Instant::now());
        }
        if left.is_zero() {
            node = self.silence(node).await?;
        }
        if is_lost(&node) || self.gate.mode() != Mode::Normal {
            self.judge();
        }
        let (moving, again) = if is_lost(&node) {
            self.gate.ask(plan::wants_moving(&node), Instant::now())
        } else {
            (Moving::Later, None)
        };
        node = self.taint(node, moving).await?;
        if is_lost(&node) {
            self.mark_pods(&node).await?;
        }
        // The status of a lost node enqueues it again; the others get a pass when they could be lost.
        let next = Some(left).filter(|left| !left.is_zero());
        let next = [again, next].into_iter().flatten().min();
        Ok(next.map_or(Outcome::Settled, Outcome::RequeueAfter))
    }
}

impl Controller {
    /// Looks how bad it is. When that changed, every lost node is looked at again.
    fn judge(&self) {
        let nodes = self.context.caches.nodes.cache().all();
        let lost: Vec<&Arc<Node>> = nodes.iter().filter(|node| is_lost(node)).collect();
        let mode = Mode::of(lost.len(), nodes.len());
        if self.gate.set(mode) {
            tracing::info!(
                lost = lost.len(),
                of = nodes.len(),
                ?mode,
                "eviction mode changed with the share of nodes that are not ready"
            );
            for node in lost {
                self.queue.add(key_of(&**node));
            }
        }
    }

    /// Reads the lease itself before a node is given up: it may be our watch that is late.
    async fn ask_lease(&self, name: &str) -> Result<(), Fault> {
        let api = self.context.api::<Lease>(NODE_LEASES);
        let lease = api.get_opt(name).await.map_err(refused(format!("read the lease of the node {name}")))?;
        if let Some(lease) = lease {
            self.health.renewed(name, renewed(&lease), Instant::now());
        }
        Ok(())
    }

    /// Everything the node said is unknown from now on.
    async fn silence(&self, node: Arc<Node>) -> Result<Arc<Node>, Fault> {
        let conditions = plan::silenced(&node, self.context.clock.now());
        if conditions.is_empty() {
            return Ok(node);
        }
        let was_ready = plan::readiness(&node) == Readiness::Ready;
        let name = node.name_any();
        // Guarded by the version: if the node speaks up at this moment, it is right.
        let patch = json!({"metadata": {"resourceVersion": node.resource_version()},
            "status": {"conditions": conditions}});
        let api: Api<Node> = Api::all(self.context.client.clone());
        let patched = api.patch_status(&name, &PatchParams::default(), &Patch::Strategic(&patch)).await;
        let patched = patched.map_err(refused(format!("say that the node {name} is silent")))?;
        if was_ready {
            let message = format!("Node {name} status is now: NodeNotReady");
            self.context.events.normal(&*node, "NodeNotReady", message);
        }
        Ok(self.context.caches.nodes.cache().wrote(patched))
    }

    async fn taint(&self, node: Arc<Node>, moving: Moving) -> Result<Arc<Node>, Fault> {
        let Some(taints) = plan::taints(&node, moving, self.context.clock.now()) else { return Ok(node) };
        let name = node.name_any();
        let patch =
            json!({"metadata": {"resourceVersion": node.resource_version()}, "spec": {"taints": taints}});
        let api: Api<Node> = Api::all(self.context.client.clone());
        let patched = api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        let patched = patched.map_err(refused(format!("change the taints of the node {name}")))?;
        Ok(self.context.caches.nodes.cache().wrote(patched))
    }

    /// Whether pods of a lost node are ready is unknown, so they are not.
    async fn mark_pods(&self, node: &Node) -> Result<(), Fault> {
        let pods = self.context.caches.pods.cache().by(BY_NODE, &node.name_any());
        let ready = pods.into_iter().filter(|pod| pods::is_ready(pod));
        let marked: Vec<Result<(), Fault>> =
            stream::iter(ready).map(|pod| self.mark(pod)).buffer_unordered(AT_ONCE).collect().await;
        marked.into_iter().collect()
    }

    async fn mark(&self, pod: Arc<Pod>) -> Result<(), Fault> {
        let key = key_of(&*pod);
        let condition =
            json!({"type": "Ready", "status": "False", "lastTransitionTime": Time(self.context.clock.now())});
        let patch = json!({"metadata": {"uid": pod.uid()}, "status": {"conditions": [condition]}});
        let api = self.context.api::<Pod>(&key.namespace);
        match api.patch_status(&key.name, &PatchParams::default(), &Patch::Strategic(&patch)).await {
            Ok(patched) => {
                self.context.caches.pods.cache().wrote(patched);
                self.context.events.warning(&*pod, "NodeNotReady", "Node is not ready");
                Ok(())
            }
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(refused(format!("mark the pod {key} as not ready"))(error)),
        }
    }
}
