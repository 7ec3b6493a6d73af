//! `NodePool`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Members, Release};
use crate::schema::LABEL;

/// The desired state of a pool of nodes.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hypershift.openshift.io",
    version = "v1beta1",
    kind = "NodePool",
    plural = "nodepools",
    singular = "nodepool",
    shortname = "np",
    shortname = "nps",
    namespaced,
    status = "NodePoolStatus",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"),
    doc = "Nodes of a hosted cluster that are alike.",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Cluster","type":"string","jsonPath":".spec.clusterName"}"#,
    printcolumn = r#"{"name":"Desired Nodes","type":"integer","jsonPath":".spec.replicas"}"#,
    printcolumn = r#"{"name":"Current Nodes","type":"integer","jsonPath":".status.replicas"}"#,
    printcolumn = r#"{"name":"Autoscaling","type":"string","jsonPath":".status.conditions[?(@.type==\"AutoscalingEnabled\")].status"}"#,
    printcolumn = r#"{"name":"Autorepair","type":"string","jsonPath":".status.conditions[?(@.type==\"AutorepairEnabled\")].status"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".status.version"}"#,
    printcolumn = r#"{"name":"UpdatingVersion","type":"string","jsonPath":".status.conditions[?(@.type==\"UpdatingVersion\")].status"}"#,
    printcolumn = r#"{"name":"UpdatingConfig","type":"string","jsonPath":".status.conditions[?(@.type==\"UpdatingConfig\")].status"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct NodePoolSpec {
    /// The hosted cluster, in the same namespace.
    #[schemars(length(max = 253), regex(pattern = LABEL))]
    pub cluster_name: String,
    /// The release of the nodes.
    pub release: Release,
    /// The platform of the nodes.
    pub platform: Members,
    /// How nodes are upgraded and repaired.
    pub management: NodePoolManagement,
    /// How many nodes there are; absent with autoscaling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Between which numbers the cluster autoscaler chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_scaling: Option<Autoscaling>,
    /// How long a node is drained before it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_drain_timeout: Option<String>,
    /// How long volumes may take to be detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_volume_detach_timeout: Option<String>,
    /// Labels of the nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_labels: BTreeMap<String, String>,
    /// Taints of the nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub taints: Vec<Taint>,
    /// Until when the operator leaves the pool alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<String>,
    /// The architecture of the nodes.
    #[serde(default = "amd64")]
    pub arch: String,
    /// Members that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

fn amd64() -> String {
    "amd64".to_owned()
}

/// How nodes are upgraded and repaired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct NodePoolManagement {
    /// Whether nodes are replaced or changed.
    pub upgrade_type: UpgradeType,
    /// How they are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace: Option<Replace>,
    /// Whether unhealthy nodes are replaced.
    #[serde(default)]
    pub auto_repair: bool,
}

/// How an upgrade reaches nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpgradeType {
    /// By new nodes.
    Replace,
    /// On the nodes there are.
    InPlace,
}

/// How nodes are replaced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replace {
    /// `RollingUpdate` or `OnDelete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// `maxSurge` and `maxUnavailable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<Members>,
}

/// Between which numbers the cluster autoscaler chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Autoscaling {
    /// The least.
    #[schemars(range(min = 0))]
    pub min: i32,
    /// The most.
    #[schemars(range(min = 1))]
    pub max: i32,
}

/// A taint of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// What it does.
    pub effect: TaintEffect,
}

/// What a taint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// Pods that do not tolerate it are not scheduled there.
    NoSchedule,
    /// They are scheduled there only when there is no other node.
    PreferNoSchedule,
    /// They are evicted, too.
    NoExecute,
}

/// The observed state of a pool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct NodePoolStatus {
    /// The nodes there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Their release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What is true of the pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<NodePoolCondition>,
    /// Members that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

/// A condition of a pool; laxer than those of other objects, as published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolCondition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// How bad it is, where the status is `False`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// Since when.
    pub last_transition_time: Time,
    /// The reason in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reason as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
