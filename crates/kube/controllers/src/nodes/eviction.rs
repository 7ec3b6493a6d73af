//! Pods that do not tolerate a taint with the effect NoExecute go: at once, or after the time they tolerate it.

use std::time::Duration;

use aro_base::{SignedDuration, Timestamp};
use aro_control::{Outcome, Queue, Reconcile};
use aro_kube::informer::{ObjectKey, key_of};
use aro_runtime::{Fault, Scope};
use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams};
use kube::{Resource as _, ResourceExt as _};
use serde_json::json;

use crate::caches::BY_NODE;
use crate::context::{Context, is_missing, refused};
use crate::pods;

struct Evictions {
    context: Context,
    /// Since when we look: time before that does not count against anybody.
    began: Timestamp,
}

pub fn start(context: &Context, scope: &Scope) {
    let queue = Queue::new();
    let caches = &context.caches;
    let nodes = caches.nodes.cache().clone();
    let bound = caches.pods.mapped(move |change, queue| {
        if let Some(pod) = change.now()
            && let Some(node) = nodes.get(&ObjectKey::new("", pods::node_name(pod)))
            && moving(&node).next().is_some()
        {
            queue.add(key_of(&**pod));
        }
    });
    let pods_ = caches.pods.cache().clone();
    let tainted = caches.nodes.mapped(move |change, queue| {
        let taints = |node: &Node| moving(node).cloned().collect::<Vec<Taint>>();
        let Some(now) = change.now().map(|node| taints(node)) else { return };
        // An own write is in the cache before the watch delivers it, so that both look alike.
        let same_version = change
            .before()
            .is_some_and(|before| before.meta().resource_version == change.object().meta().resource_version);
        let same_taints = change.before().is_some_and(|before| taints(before) == now);
        if now.is_empty() || same_taints && !same_version {
            return;
        }
        for pod in pods_.by(BY_NODE, &change.object().name_any()) {
            queue.add(key_of(&*pod));
        }
    });
    let controller = Evictions { context: context.clone(), began: context.clock.now() };
    context.runner(controller, &queue).with_source(bound).with_source(tainted).start(scope);
}

/// The taints of a node that move pods away.
fn moving(node: &Node) -> impl Iterator<Item = &Taint> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.into_iter().flatten().filter(|taint| taint.effect == "NoExecute")
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let effect = text(&toleration.effect);
    let key = text(&toleration.key);
    if !effect.is_empty() && effect != taint.effect || !key.is_empty() && key != taint.key {
        return false;
    }
    match toleration.operator.as_deref() {
        Some("Exists") => true,
        // Without a key, only `Exists` means everything.
        None | Some("" | "Equal") => !key.is_empty() && text(&toleration.value) == text(&taint.value),
        Some(_) => false,
    }
}

/// Until when a pod may stay. `None`: for ever. `began` is when time began to count.
fn stays_until(pod: &Pod, node: &Node, began: Timestamp) -> Option<Timestamp> {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
    let ends = moving(node).filter_map(|taint| {
        let matching: Vec<&Toleration> =
            tolerations.iter().filter(|toleration| tolerates(toleration, taint)).collect();
        if matching.is_empty() {
            return Some(Timestamp::MIN);
        }
        let seconds = matching.iter().filter_map(|toleration| toleration.toleration_seconds).min()?;
        let since = taint.time_added.as_ref().map_or(began, |added| added.0).max(began);
        let allowed = SignedDuration::from_secs(seconds.max(0));
        Some(since.saturating_add(allowed).unwrap_or(Timestamp::MAX))
    });
    ends.min()
}

impl Reconcile for Evictions {
    type Key = ObjectKey;
    type Error = Fault;
    const NAME: &'static str = "taint-eviction";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, Fault> {
        let caches = &self.context.caches;
        caches.synced().await;
        let Some(pod) = caches.pods.cache().get(key).filter(|pod| !pods::is_terminating(pod)) else {
            return Ok(Outcome::Settled);
        };
        let node = caches.nodes.cache().get(&ObjectKey::new("", pods::node_name(&pod)));
        let Some(until) = node.and_then(|node| stays_until(&pod, &node, self.began)) else {
            return Ok(Outcome::Settled);
        };
        let left = Duration::try_from(until.duration_since(self.context.clock.now())).unwrap_or_default();
        if !left.is_zero() {
            return Ok(Outcome::RequeueAfter(left));
        }
        self.evict(&pod).await?;
        Ok(Outcome::Settled)
    }
}

impl Evictions {
    async fn evict(&self, pod: &Pod) -> Result<(), Fault> {
        let key = key_of(pod);
        self.context.events.normal(pod, "TaintManagerEviction", format!("Marking for deletion Pod {key}"));
        let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": Time(self.context.clock.now())});
        let patch = json!({"metadata": {"uid": pod.uid()}, "status": {"conditions": [condition]}});
        let api = self.context.api::<Pod>(&key.namespace);
        match api.patch_status(&key.name, &PatchParams::default(), &Patch::Strategic(&patch)).await {
            Ok(patched) => drop(self.context.caches.pods.cache().wrote(patched)),
            Err(error) if is_missing(&error) => return Ok(()),
            Err(error) => return Err(refused(format!("say why the pod {key} goes"))(error)),
        }
        self.context.delete_pod(pod).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn node(taints: &Value) -> Node {
        serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": {"taints": taints}})).unwrap()
    }

    fn until(tolerations: &Value, taints: &Value) -> Option<i64> {
        let pod = json!({"spec": {"containers": [], "tolerations": tolerations}});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let began = Timestamp::from_second(1000).unwrap();
        stays_until(&pod, &node(taints), began).map(|until| until.as_second())
    }

    #[test]
    fn the_least_tolerated_taint_decides() {
        let lost = json!([{"key": "lost", "effect": "NoExecute", "timeAdded": "1970-01-01T00:20:00Z"}]);
        let now = Some(Timestamp::MIN.as_second());
        for (tolerations, taints, expected) in [
            (json!([]), json!([]), None),
            (json!([]), json!([{"key": "x", "effect": "NoSchedule"}]), None),
            (json!([]), lost.clone(), now),
            (json!([{"operator": "Exists"}]), lost.clone(), None),
            (json!([{"key": "lost", "operator": "Exists", "effect": "NoSchedule"}]), lost.clone(), now),
            (
                json!([{"key": "lost", "operator": "Exists", "tolerationSeconds": 300}]),
                lost.clone(),
                Some(1500),
            ),
            (
                json!([{"key": "lost", "operator": "Exists", "tolerationSeconds": -5}]),
                lost.clone(),
                Some(1200),
            ),
            (json!([{"key": "lost", "value": "a"}]), lost.clone(), now),
            (json!([{"key": "lost"}]), lost.clone(), None),
            (
                json!([{"key": "lost", "tolerationSeconds": 300}, {"key": "y", "operator": "Exists"}]),
                json!([{"key": "y", "effect": "NoExecute"}, lost[0]]),
                Some(1500),
            ),
        ] {
            assert_eq!(until(&tolerations, &taints), expected, "{tolerations} {taints}");
        }
    }

    #[test]
    fn time_before_we_looked_does_not_count() {
        let old = json!([{"key": "lost", "effect": "NoExecute", "timeAdded": "1970-01-01T00:00:00Z"}]);
        assert_eq!(until(&json!([{"key": "lost", "tolerationSeconds": 300}]), &old), Some(1300));
    }
}
