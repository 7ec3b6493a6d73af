//! The agent's own record, on the managed cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which work of which hub.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1",
    kind = "AppliedManifestWork",
    plural = "appliedmanifestworks",
    singular = "appliedmanifestwork",
    status = "AppliedManifestWorkStatus",
    doc = "What an agent applied for one work of a hub. It outlives the work for as long as something of it is left to take away.",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestWorkSpec {
    /// A digest of the hub's address: works of two hubs may have the same name.
    pub hub_hash: String,
    /// Which agent; several may work on one cluster.
    #[serde(rename = "agentID", default, skip_serializing_if = "String::is_empty")]
    pub agent_id: String,
    /// The work's name.
    pub manifest_work_name: String,
}

/// What is there because of the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestWorkStatus {
    /// The objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied_resources: Vec<AppliedManifestResourceMeta>,
    /// Since when the hub has not known the work any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_start_time: Option<Time>,
}

/// One object that was applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedManifestResourceMeta {
    /// Its API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The version it was applied in.
    pub version: String,
    /// Its resource.
    pub resource: String,
    /// Its name.
    pub name: String,
    /// Its namespace; empty when it has none.
    #[serde(default)]
    pub namespace: String,
    /// Its uid: another object of the same name is not ours to delete.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}
