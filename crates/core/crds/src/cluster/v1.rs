//! Version `v1`.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{LABEL, QUALIFIED, conditions, quantities};

/// How the hub is to treat a cluster.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1",
    kind = "ManagedCluster",
    plural = "managedclusters",
    singular = "managedcluster",
    shortname = "mcl",
    shortname = "mcls",
    status = "ManagedClusterStatus",
    doc = "A cluster that a hub manages. It asks to join, the hub accepts it, and its agent reports how it is.",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Hub Accepted","type":"boolean","jsonPath":".spec.hubAcceptsClient"}"#,
    printcolumn = r#"{"name":"Managed Cluster URLs","type":"string","jsonPath":".spec.managedClusterClientConfigs[*].url"}"#,
    printcolumn = r#"{"name":"Joined","type":"string","jsonPath":".status.conditions[?(@.type==\"ManagedClusterJoined\")].status"}"#,
    printcolumn = r#"{"name":"Available","type":"string","jsonPath":".status.conditions[?(@.type==\"ManagedClusterConditionAvailable\")].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSpec {
    /// Whether the cluster is welcome. Accepting gives its agent a namespace of its own on the hub; taking it back
    /// takes that namespace away.
    #[serde(default)]
    pub hub_accepts_client: bool,
    /// How often the agent renews its lease, in seconds.
    #[serde(default = "lease_duration")]
    pub lease_duration_seconds: i32,
    /// Where the cluster's API can be reached; empty when the hub cannot reach it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_cluster_client_configs: Vec<ClientConfig>,
    /// What keeps placements away from this cluster unless they tolerate it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

impl Default for ManagedClusterSpec {
    fn default() -> Self {
        Self {
            hub_accepts_client: false,
            lease_duration_seconds: lease_duration(),
            managed_cluster_client_configs: Vec::new(),
            taints: Vec::new(),
        }
    }
}

fn lease_duration() -> i32 {
    60
}

/// An address of a cluster's API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientConfig {
    /// Where.
    pub url: String,
    /// Whom to trust there, as PEM; those the system trusts, when it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "byte"))]
    pub ca_bundle: Option<ByteString>,
}

/// A mark that keeps placements away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// What the mark is about.
    #[schemars(length(max = 316), regex(pattern = QUALIFIED))]
    pub key: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub value: String,
    /// What happens to placements that do not tolerate it.
    pub effect: TaintEffect,
    /// Since when.
    #[serde(default)]
    pub time_added: Option<Time>,
}

/// What a taint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// The cluster is not chosen, and no longer chosen where it was.
    NoSelect,
    /// The cluster is chosen only when there are not enough others.
    PreferNoSelect,
    /// The cluster is not chosen anew.
    NoSelectIfNew,
}

/// How a cluster is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterStatus {
    /// Whether it is accepted, has joined, is available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// All its nodes have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "quantities")]
    pub capacity: BTreeMap<String, Quantity>,
    /// What of that workloads can have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "quantities")]
    pub allocatable: BTreeMap<String, Quantity>,
    /// Its version.
    #[serde(default)]
    pub version: ManagedClusterVersion,
    /// What it says about itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_claims: Vec<ManagedClusterClaim>,
    /// The namespaces that its cluster sets give it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["clusterSet", "name"]))]
    pub managed_namespaces: Vec<ClusterSetManagedNamespace>,
}

/// Versions of what runs on a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterVersion {
    /// Of Kubernetes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kubernetes: String,
}

/// One thing a cluster says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterClaim {
    /// What it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// What it says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 1024))]
    pub value: String,
}

/// A namespace that a cluster set gives to its clusters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSetManagedNamespace {
    /// Its name.
    #[schemars(length(max = 63), regex(pattern = LABEL))]
    pub name: String,
    /// Which set gives it.
    pub cluster_set: String,
    /// Whether it is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}
