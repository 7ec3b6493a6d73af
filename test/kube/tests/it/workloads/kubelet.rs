//! A kubelet that pretends: it has nodes and says of pods that they run.
//!
//! What a pod does is told by its annotation `test/behaviour`:
//! * nothing: a pod that restarts always becomes ready; any other ends well;
//! * `run`: it becomes ready and stays, however it restarts;
//! * `stuck`: it is never started;
//! * `unready`: it runs and is never ready;
//! * `fail`: it ends badly (one that restarts on failure goes on and counts its restarts);
//! * `linger`: it becomes ready, and when it is deleted it stays until the annotation is gone.
//!
//! A pod with an image whose name begins with `broken` waits for its image for ever.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use aro_runtime::{Fault, Phase, Scope, TaskKind};
use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

/// What a pretending kubelet has.
#[derive(Debug, Clone)]
pub struct KubeletOptions {
    /// The names of its nodes.
    pub nodes: Vec<String>,
    /// Whether the scheduler gives them nothing.
    pub cordoned: bool,
}

impl KubeletOptions {
    pub fn with_nodes(names: &[&str]) -> Self {
        Self { nodes: names.iter().map(|name| (*name).to_owned()).collect(), cordoned: false }
    }
}

/// Runs until it is stopped or its world ends.
pub struct TestKubelet {
    scope: Scope,
}

/// How often it says that its nodes are there.
const RENEWAL: Duration = Duration::from_secs(1);
const AT_ONCE: usize = 64;

impl TestKubelet {
    pub async fn start(client: Client, options: KubeletOptions, scope: &Scope) -> Result<Self> {
        let scope = scope.child(Phase::Roles, "kubelet");
        for name in &options.nodes {
            register(&client, name, options.cordoned).await?;
        }
        let (leases, names) = (client.clone(), options.nodes.clone());
        scope.spawn(TaskKind::Helper, "leases", async move {
            let mut tick = tokio::time::interval(RENEWAL);
            loop {
                tick.tick().await;
                for name in &names {
                    let _ = renew(&leases, name).await;
                }
            }
            #[allow(unreachable_code, reason = "tells what a failure would be")]
            Ok::<_, Fault>(())
        });
        scope.spawn(TaskKind::Helper, "pods", async move {
            let ours: BTreeSet<String> = options.nodes.iter().cloned().collect();
            let state = Arc::new(State { client: client.clone(), ours });
            let events = watcher(Api::<Pod>::all(client), watcher::Config::default()).default_backoff();
            events
                .applied_objects()
                .for_each_concurrent(AT_ONCE, |pod| {
                    let state = state.clone();
                    async move {
                        // What failed because the pod changed meanwhile is done when that change comes.
                        if let Ok(pod) = pod {
                            let _ = state.look(&pod).await;
                        }
                    }
                })
                .await;
            Ok::<_, Fault>(())
        });
        Ok(Self { scope })
    }

    /// Falls silent; its nodes stay registered.
    pub async fn stop(self) {
        let _ = self.scope.close(Duration::from_secs(5)).await;
    }
}

struct State {
    client: Client,
    ours: BTreeSet<String>,
}

#[allow(clippy::disallowed_methods, reason = "a kubelet of its own, on the machine's clock")]
fn now() -> k8s_openapi::jiff::Timestamp {
    k8s_openapi::jiff::Timestamp::now()
}

async fn register(client: &Client, name: &str, cordoned: bool) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let capacity = json!({"cpu": "1000", "memory": "4000Gi", "pods": "20000", "ephemeral-storage": "4000Gi"});
    let node = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
        "spec": {"unschedulable": cordoned},
    });
    nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    let status = json!({"status": {
        "capacity": capacity, "allocatable": capacity,
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
            "lastHeartbeatTime": now(), "lastTransitionTime": now()}],
    }});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    renew(client, name).await
}

async fn renew(client: &Client, name: &str) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    let spec = json!({"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": MicroTime(now())});
    if leases.get_opt(name).await?.is_none() {
        let lease = json!({"metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": spec});
        leases.create(&PostParams::default(), &serde_json::from_value(lease)?).await?;
        return Ok(());
    }
    leases.patch(name, &PatchParams::default(), &Patch::Merge(&json!({"spec": spec}))).await?;
    Ok(())
}

impl State {
    async fn look(&self, pod: &Pod) -> Result<()> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
        let name = pod.name_any();
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        let behaviour = pod.annotations().get("test/behaviour").map(String::as_str).unwrap_or_default();
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
        if !self.ours.contains(&node) {
            return Ok(());
        }
        if pod.metadata.deletion_timestamp.is_some() {
            if behaviour != "linger" {
                self.end(&pods, pod).await?;
            }
            return Ok(());
        }
        if phase != "Pending" && !phase.is_empty() {
            return Ok(());
        }
        if let Some(status) = outcome(pod, behaviour) {
            let patch = json!({"metadata": {"uid": pod.uid()}, "status": status});
            pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        }
        Ok(())
    }

    /// Its containers have ended: a last status, then it goes.
    async fn end(&self, pods: &Api<Pod>, pod: &Pod) -> Result<()> {
        let uid = pod.uid();
        let ended = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let never = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()) == Some("Never");
        if never && !matches!(ended, Some("Succeeded" | "Failed")) {
            let patch = json!({"metadata": {"uid": &uid}, "status": {"phase": "Failed"}});
            pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
        }
        let this = Preconditions { uid, resource_version: None };
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(this),
            ..DeleteParams::default()
        };
        pods.delete(&pod.name_any(), &parameters).await?;
        Ok(())
    }
}

/// What becomes of a pod that has just been bound. `None`: nothing.
fn outcome(pod: &Pod, behaviour: &str) -> Option<Value> {
    let spec = pod.spec.as_ref()?;
    let restart = spec.restart_policy.as_deref().unwrap_or("Always");
    let broken = spec
        .containers
        .iter()
        .any(|container| container.image.as_deref().is_some_and(|image| image.starts_with("broken")));
    let at = now();
    let (phase, state, ready, restarts) = match behaviour {
        "stuck" => return None,
        _ if broken => ("Pending", json!({"waiting": {"reason": "ImagePullBackOff"}}), false, 0),
        "unready" => ("Running", json!({"running": {"startedAt": at}}), false, 0),
        "fail" if restart == "Never" => {
            ("Failed", json!({"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": at}}), false, 0)
        }
        "fail" => ("Running", json!({"running": {"startedAt": at}}), false, 10),
        "run" | "linger" => ("Running", json!({"running": {"startedAt": at}}), true, 0),
        _ if restart == "Always" => ("Running", json!({"running": {"startedAt": at}}), true, 0),
        _ => {
            let state = json!({"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": at}});
            ("Succeeded", state, false, 0)
        }
    };
    let word = if ready { "True" } else { "False" };
    let condition =
        |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": at});
    let containers: Vec<Value> = spec
        .containers
        .iter()
        .map(|container| {
            json!({"name": container.name, "image": container.image, "imageID": "", "ready": ready,
                "restartCount": restarts, "started": ready, "state": state})
        })
        .collect();
    // An address that differs between pods, for those who look at endpoints.
    let sum = pod
        .uid()
        .unwrap_or_default()
        .bytes()
        .fold(0_u32, |sum, byte| sum.wrapping_mul(131).wrapping_add(byte.into()));
    let address = format!("10.{}.{}.{}", 64 + sum % 64, (sum >> 8) % 256, 1 + (sum >> 16) % 254);
    Some(json!({
        "phase": phase, "startTime": at, "hostIP": "127.0.0.1", "podIP": address, "podIPs": [{"ip": address}],
        "conditions": [
            condition("PodScheduled", "True"), condition("Initialized", "True"),
            condition("ContainersReady", word), condition("Ready", word),
        ],
        "containerStatuses": containers,
    }))
}
