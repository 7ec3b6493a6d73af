//! Nodes that are cordoned, drained, lost and back.

use anyhow::{Context, Result, ensure};
use aro_fixtures::wait;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::kubelet::KubeletOptions;
use super::world::{World, on_ours, on_real};

struct Desk {
    namespace: String,
    pods: Api<Pod>,
    nodes: Api<Node>,
}

impl Desk {
    async fn new(world: &World, prefix: &str) -> Result<Self> {
        let namespace = world.namespace(prefix).await?;
        Ok(Self { pods: world.api(&namespace), nodes: Api::all(world.client.clone()), namespace })
    }

    async fn pod(&self, name: &str, node: &str, tolerations: Value) -> Result<()> {
        let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": node, "tolerations": tolerations,
            "terminationGracePeriodSeconds": 5, "containers": [{"name": "c", "image": "x"}]}});
        self.pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        self.until_ready(name, "True").await
    }

    async fn until_ready(&self, name: &str, word: &str) -> Result<()> {
        wait::until(&format!("{name} to be ready: {word}"), || async {
            let status = self.pods.get(name).await?.status.unwrap_or_default();
            let ready = status.conditions.into_iter().flatten().find(|one| one.type_ == "Ready");
            Ok(ready.filter(|ready| ready.status == word).map(|_| ()))
        })
        .await
    }

    /// The taints of a node, as words, in order.
    async fn taints(&self, node: &str) -> Result<Vec<String>> {
        let taints = self.nodes.get(node).await?.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let mut words: Vec<String> =
            taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect();
        words.sort();
        Ok(words)
    }

    async fn until_taints(&self, node: &str, wanted: &[&str]) -> Result<()> {
        let found = wait::until(&format!("{node} to have the taints {wanted:?}"), || async {
            Ok((self.taints(node).await? == wanted).then_some(()))
        })
        .await;
        match found {
            Ok(()) => Ok(()),
            Err(error) => Err(error.context(format!("{:?}", self.taints(node).await?))),
        }
    }

    async fn is_going(&self, name: &str) -> Result<bool> {
        let pod = self.pods.get_opt(name).await?;
        Ok(pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()))
    }

    async fn until_going(&self, name: &str) -> Result<()> {
        wait::until(&format!("{name} to go"), || async { Ok(self.is_going(name).await?.then_some(())) }).await
    }
}

#[allow(clippy::disallowed_methods, reason = "a kubelet of its own, on the machine's clock")]
fn now() -> k8s_openapi::jiff::Timestamp {
    k8s_openapi::jiff::Timestamp::now()
}

const UNREACHABLE: [&str; 2] =
    ["node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/unreachable:NoSchedule"];

/// A node falls silent: it and its pods say so, those who do not tolerate it go; then it is back.
async fn a_node_is_lost_and_back(world: &World) -> Result<()> {
    let desk = Desk::new(world, "lost").await?;
    let stays = world.kubelet(KubeletOptions::with_nodes(&["stays"])).await?;
    let silent = world.kubelet(KubeletOptions::with_nodes(&["silent"])).await?;
    desk.until_taints("silent", &[]).await?;
    let brief = json!([{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}]);
    desk.pod("patient", "silent", json!([])).await?;
    desk.pod("brief", "silent", brief).await?;
    desk.pod("elsewhere", "stays", json!([])).await?;
    let tolerations =
        desk.pods.get("patient").await?.spec.and_then(|spec| spec.tolerations).unwrap_or_default();
    ensure!(tolerations.iter().filter(|one| one.toleration_seconds == Some(300)).count() == 2);
    silent.stop().await;
    desk.until_taints("silent", &UNREACHABLE).await?;
    let conditions =
        desk.nodes.get("silent").await?.status.and_then(|status| status.conditions).unwrap_or_default();
    let ready = conditions.iter().find(|one| one.type_ == "Ready").context("a condition")?;
    ensure!(ready.status == "Unknown" && ready.reason.as_deref() == Some("NodeStatusUnknown"), "{ready:?}");
    ensure!(ready.message.as_deref() == Some("Kubelet stopped posting node status."));
    desk.until_ready("patient", "False").await?;
    desk.until_going("brief").await?;
    let gone = desk.pods.get("brief").await?.status.and_then(|status| status.conditions).unwrap_or_default();
    ensure!(gone.iter().any(|one| one.type_ == "DisruptionTarget"), "it says why");
    ensure!(!desk.is_going("patient").await? && !desk.is_going("elsewhere").await?);
    desk.until_ready("elsewhere", "True").await?;
    // It speaks again.
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
        "lastHeartbeatTime": now(), "lastTransitionTime": now()}]}});
    desk.nodes.patch_status("silent", &PatchParams::default(), &Patch::Strategic(&status)).await?;
    desk.until_taints("silent", &[]).await?;
    ensure!(!desk.is_going("patient").await?);
    // When everybody is silent, it is us who are cut off: nothing is moved.
    stays.stop().await;
    for node in ["stays", "silent"] {
        desk.until_taints(node, &UNREACHABLE[1..]).await?;
    }
    ensure!(!desk.is_going("patient").await? && !desk.is_going("elsewhere").await?);
    for node in ["stays", "silent"] {
        desk.nodes.delete(node, &kube::api::DeleteParams::default()).await?;
    }
    Ok(())
}

/// A node is told to take no more pods, and to get rid of those it has.
async fn a_node_is_cordoned_and_tainted(world: &World) -> Result<()> {
    let desk = Desk::new(world, "cordon").await?;
    let kubelet = world.kubelet(KubeletOptions::with_nodes(&["first", "second"])).await?;
    let kubectl = world.kubectl()?;
    desk.until_taints("first", &[]).await?;
    kubectl.ok("cordon first").await?;
    desk.until_taints("first", &["node.kubernetes.io/unschedulable:NoSchedule"]).await?;
    kubectl.ok("uncordon first").await?;
    desk.until_taints("first", &[]).await?;
    let pressure = json!({"status": {"conditions": [{"type": "DiskPressure", "status": "True", "lastHeartbeatTime": now()}]}});
    desk.nodes.patch_status("first", &PatchParams::default(), &Patch::Strategic(&pressure)).await?;
    desk.until_taints("first", &["node.kubernetes.io/disk-pressure:NoSchedule"]).await?;
    desk.pod("plain", "first", json!([])).await?;
    desk.pod("tolerant", "first", json!([{"key": "work", "operator": "Exists"}])).await?;
    kubectl.ok("taint nodes first work=now:NoExecute").await?;
    desk.until_going("plain").await?;
    ensure!(!desk.is_going("tolerant").await?);
    // Whoever comes later is not welcome either.
    let late = json!({"metadata": {"name": "late"}, "spec": {"nodeName": "first",
        "containers": [{"name": "c", "image": "x"}]}});
    desk.pods.create(&PostParams::default(), &serde_json::from_value(late)?).await?;
    desk.until_going("late").await?;
    kubelet.stop().await;
    for node in ["first", "second"] {
        desk.nodes.delete(node, &kube::api::DeleteParams::default()).await?;
    }
    Ok(())
}

/// A drain empties a node without ever taking more than the budget allows.
async fn a_node_is_drained_within_a_budget(world: &World) -> Result<()> {
    let desk = Desk::new(world, "drain").await?;
    let options = KubeletOptions::with_nodes(&["north", "south"]);
    let kubelet = world.kubelet(options).await?;
    let kubectl = world.kubectl()?;
    let k = async |line: &str| kubectl.ok(&format!("-n {} {line}", desk.namespace)).await;
    k("create deployment web --image=x --replicas=4").await?;
    k("rollout status deployment/web --timeout=30s").await?;
    k("create poddisruptionbudget web --selector=app=web --min-available=3").await?;
    k("drain north --ignore-daemonsets --timeout=60s").await?;
    let pods = desk.pods.list(&ListParams::default()).await?;
    let on_north = pods.iter().filter(|pod| {
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some("north")
            && pod.metadata.deletion_timestamp.is_none()
    });
    let left: Vec<String> = on_north.map(ResourceExt::name_any).collect();
    ensure!(left.is_empty(), "{left:?}");
    k("rollout status deployment/web --timeout=30s").await?;
    desk.until_taints("north", &["node.kubernetes.io/unschedulable:NoSchedule"]).await?;
    kubelet.stop().await;
    Ok(())
}

async fn nodes(world: &World) -> Result<()> {
    a_node_is_cordoned_and_tainted(world).await.context("a_node_is_cordoned_and_tainted")?;
    a_node_is_lost_and_back(world).await.context("a_node_is_lost_and_back")?;
    a_node_is_drained_within_a_budget(world).await.context("a_node_is_drained_within_a_budget")?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_on_ours() -> Result<()> {
    on_ours(nodes).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_on_a_real_api_server() -> Result<()> {
    on_real(nodes).await
}
