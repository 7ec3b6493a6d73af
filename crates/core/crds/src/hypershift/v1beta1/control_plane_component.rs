//! `ControlPlaneComponent`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::conditions;

/// Nothing: a component follows from its control plane.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hypershift.openshift.io",
    version = "v1beta1",
    kind = "ControlPlaneComponent",
    plural = "controlplanecomponents",
    singular = "controlplanecomponent",
    shortname = "cpc",
    shortname = "cpcs",
    namespaced,
    status = "ControlPlaneComponentStatus",
    doc = "One component of a control plane, and how far its rollout is.",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".status.version"}"#,
    printcolumn = r#"{"name":"Available","type":"string","jsonPath":".status.conditions[?(@.type==\"Available\")].status"}"#,
    printcolumn = r#"{"name":"RolloutComplete","type":"string","jsonPath":".status.conditions[?(@.type==\"RolloutComplete\")].status"}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type==\"Available\")].message"}"#,
    printcolumn = r#"{"name":"RolloutCompleteMessage","type":"string","jsonPath":".status.conditions[?(@.type==\"RolloutComplete\")].message"}"#,
    crates(kube_core = "::kube_core")
)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ControlPlaneComponentSpec {}

/// The observed state of a component.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneComponentStatus {
    /// What is true of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// The version that is rolled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The objects that it consists of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ComponentResource>,
}

/// An object of a component.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComponentResource {
    /// Its kind.
    pub kind: String,
    /// Its API group.
    pub group: String,
    /// Its name.
    pub name: String,
}
