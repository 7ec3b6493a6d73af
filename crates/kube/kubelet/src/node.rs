//! Nodes: registered once, then kept alive by leases and now and then a status.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use aro_base::{SharedClock, Timestamp, chain};
use aro_runtime::{Fault, Scope, TaskKind};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    Node, NodeAddress, NodeCondition, NodeSpec as Spec, NodeStatus, NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::time::Instant;

/// A node to register.
#[derive(Debug, Clone)]
pub struct NodeSpec {
    pub name: String,
    /// Beside the standard ones.
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    /// What it offers to pods: `cpu`, `memory`, `pods`, and whatever else.
    pub capacity: BTreeMap<String, String>,
    /// Its address inside the cluster. It is not routed.
    pub address: Ipv4Addr,
}

impl NodeSpec {
    /// A node with room for nearly everything: nothing real is used up on it.
    pub fn roomy(name: impl Into<String>, address: Ipv4Addr) -> Self {
        let capacity =
            [("cpu", "4096"), ("memory", "16Ti"), ("pods", "50000"), ("ephemeral-storage", "16Ti")];
        Self {
            name: name.into(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            capacity: capacity.map(|(name, amount)| (name.to_owned(), amount.to_owned())).into(),
            address,
        }
    }
}

/// Where leases of nodes are.
const LEASES: &str = "kube-node-lease";
/// How long a lease is good for, and how often it is renewed.
const LEASE_SECONDS: i32 = 40;
const RENEW: Duration = Duration::from_secs(10);
/// How often a node says how it is, even though that has not changed.
const REPORT: Duration = Duration::from_mins(5);
/// Nodes that are worked on at once.
const AT_ONCE: usize = 64;

/// Registers the nodes and keeps them alive until the scope is cancelled.
pub fn keep(
    client: Client,
    clock: SharedClock,
    nodes: Vec<NodeSpec>,
    registered: tokio::sync::watch::Sender<bool>,
    scope: &Scope,
) {
    let inside = scope.clone();
    scope.spawn(TaskKind::Helper, "nodes", async move {
        let keeper = Keeper { client, clock };
        let mut pause = Duration::from_millis(50);
        loop {
            let failed: Vec<String> = stream::iter(nodes.clone())
                .map(|node| keeper.clone().registered(node))
                .buffer_unordered(AT_ONCE)
                .collect::<Vec<Option<String>>>()
                .await
                .into_iter()
                .flatten()
                .collect();
            let Some(error) = failed.first() else { break };
            tracing::debug!(nodes = failed.len(), error, "nodes could not be registered; trying again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(10));
        }
        registered.send_replace(true);
        let mut reported = Instant::now();
        while !inside.is_cancelled() {
            tokio::time::sleep(RENEW).await;
            let report = reported.elapsed() >= REPORT;
            if report {
                reported = Instant::now();
            }
            let renewed = stream::iter(nodes.clone())
                .map(|node| keeper.clone().renew(node, report))
                .buffer_unordered(AT_ONCE);
            renewed.collect::<Vec<()>>().await;
        }
        Ok::<_, Fault>(())
    });
}

#[derive(Clone)]
struct Keeper {
    client: Client,
    clock: SharedClock,
}

impl Keeper {
    /// Says what went wrong, if something did.
    async fn registered(self, spec: NodeSpec) -> Option<String> {
        self.register(&spec).await.err().map(|error| chain(&error).to_string())
    }

    async fn register(&self, spec: &NodeSpec) -> Result<(), kube::Error> {
        let api: Api<Node> = Api::all(self.client.clone());
        let node = match api.create(&PostParams::default(), &node(spec)).await {
            Ok(node) => node,
            // An earlier process registered it.
            Err(kube::Error::Api(status)) if status.code == 409 => api.get(&spec.name).await?,
            Err(error) => return Err(error),
        };
        let now = self.clock.now();
        let patch = json!({"status": status(spec, node.status.as_ref(), now)});
        let node = api.patch_status(&spec.name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        self.lease(spec, node.uid().unwrap_or_default()).await
    }

    async fn lease(&self, spec: &NodeSpec, uid: String) -> Result<(), kube::Error> {
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(spec.name.clone()),
                namespace: Some(LEASES.to_owned()),
                owner_references: Some(vec![OwnerReference {
                    api_version: "v1".to_owned(),
                    kind: "Node".to_owned(),
                    name: spec.name.clone(),
                    uid,
                    ..OwnerReference::default()
                }]),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(spec.name.clone()),
                lease_duration_seconds: Some(LEASE_SECONDS),
                renew_time: Some(MicroTime(self.clock.now())),
                ..LeaseSpec::default()
            }),
        };
        let api: Api<Lease> = Api::namespaced(self.client.clone(), LEASES);
        match api.create(&PostParams::default(), &lease).await {
            Err(kube::Error::Api(status)) if status.code == 409 => self.renew_lease(&api, spec).await,
            made => made.map(drop),
        }
    }

    async fn renew_lease(&self, api: &Api<Lease>, spec: &NodeSpec) -> Result<(), kube::Error> {
        let patch = json!({"spec": {"renewTime": MicroTime(self.clock.now()), "holderIdentity": spec.name}});
        api.patch(&spec.name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
    }

    async fn renew(self, spec: NodeSpec, report: bool) {
        let spec = &spec;
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), LEASES);
        let nodes: Api<Node> = Api::all(self.client.clone());
        let renewed = match self.renew_lease(&leases, spec).await {
            // Lost with its namespace, or never made.
            Err(kube::Error::Api(status)) if status.code == 404 => match nodes.get_opt(&spec.name).await {
                Ok(Some(node)) => self.lease(spec, node.uid().unwrap_or_default()).await,
                // A client deleted the node: it stays deleted until a restart.
                Ok(None) => return,
                Err(error) => Err(error),
            },
            renewed => renewed,
        };
        let reported = if report { self.report(&nodes, spec).await } else { Ok(()) };
        if let Err(error) = renewed.and(reported) {
            tracing::debug!(node = spec.name, error = %chain(&error), "a lease could not be renewed");
        }
    }

    async fn report(&self, nodes: &Api<Node>, spec: &NodeSpec) -> Result<(), kube::Error> {
        let Some(node) = nodes.get_opt(&spec.name).await? else { return Ok(()) };
        let patch = json!({"status": {"conditions": conditions(node.status.as_ref(), self.clock.now())}});
        nodes.patch_status(&spec.name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
    }
}

fn node(spec: &NodeSpec) -> Node {
    let mut labels = spec.labels.clone();
    for (name, value) in [
        ("kubernetes.io/hostname", spec.name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", architecture()),
        ("node.kubernetes.io/instance-type", "virtual"),
    ] {
        labels.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
    Node {
        metadata: ObjectMeta {
            name: Some(spec.name.clone()),
            labels: Some(labels),
            annotations: Some([("aro.dev/virtual".to_owned(), "true".to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(Spec {
            taints: (!spec.taints.is_empty()).then(|| spec.taints.clone()),
            ..Spec::default()
        }),
        status: None,
    }
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn status(spec: &NodeSpec, known: Option<&NodeStatus>, now: Timestamp) -> NodeStatus {
    let amounts: BTreeMap<String, Quantity> =
        spec.capacity.iter().map(|(name, amount)| (name.clone(), Quantity(amount.clone()))).collect();
    let address = |kind: &str, address: String| NodeAddress { type_: kind.to_owned(), address };
    NodeStatus {
        capacity: Some(amounts.clone()),
        allocatable: Some(amounts),
        addresses: Some(vec![
            address("InternalIP", spec.address.to_string()),
            address("Hostname", spec.name.clone()),
        ]),
        conditions: Some(conditions(known, now)),
        node_info: Some(NodeSystemInfo {
            architecture: architecture().to_owned(),
            operating_system: "linux".to_owned(),
            os_image: "aro virtual node".to_owned(),
            kubelet_version: concat!("v1.36.4+aro.", env!("CARGO_PKG_VERSION")).to_owned(),
            container_runtime_version: concat!("aro://", env!("CARGO_PKG_VERSION")).to_owned(),
            machine_id: spec.name.clone(),
            ..NodeSystemInfo::default()
        }),
        ..NodeStatus::default()
    }
}

fn conditions(known: Option<&NodeStatus>, now: Timestamp) -> Vec<NodeCondition> {
    let existing = known.and_then(|known| known.conditions.as_deref()).unwrap_or_default();
    let ours = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    let others = existing.iter().filter(|known| !ours.iter().any(|one| one.0 == known.type_)).cloned();
    let made = ours.into_iter().map(|(kind, status, reason, message)| {
        let same = existing.iter().find(|known| known.type_ == kind && known.status == status);
        NodeCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: same.and_then(|same| same.last_transition_time.clone()).or(Some(Time(now))),
        }
    });
    others.chain(made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_stays_keeps_the_time_it_came() {
        let (then, now) = (Timestamp::from_second(1).unwrap(), Timestamp::from_second(100).unwrap());
        let known = NodeStatus { conditions: Some(conditions(None, then)), ..NodeStatus::default() };
        let again = conditions(Some(&known), now);
        let ready = again.iter().find(|one| one.type_ == "Ready").unwrap();
        assert_eq!(ready.last_transition_time, Some(Time(then)));
        assert_eq!(ready.last_heartbeat_time, Some(Time(now)));
    }
}
