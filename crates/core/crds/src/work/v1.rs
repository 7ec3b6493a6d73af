//! Version `v1`.

mod applied;
mod config;
mod delete;
mod executor;
mod status;

use kube_derive::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use applied::{
    AppliedManifestResourceMeta, AppliedManifestWork, AppliedManifestWorkSpec, AppliedManifestWorkStatus,
};
pub use config::{
    ConditionRule, ConditionRuleType, FeedbackRule, FeedbackScrapeType, FeedbackType, IgnoreField,
    IgnoreFieldCondition, JsonPath, ManifestConfigOption, ResourceIdentifier, ServerSideApplyConfig,
    UpdateStrategy, UpdateStrategyType,
};
pub use delete::{DeleteOption, DeletePropagationPolicy, SelectivelyOrphan};
pub use executor::{ExecutorSubject, ExecutorSubjectType, ManifestWorkExecutor, ServiceAccountSubject};
pub use status::{
    FeedbackValue, FieldValue, ManifestCondition, ManifestResourceMeta, ManifestResourceStatus,
    ManifestWorkStatus, StatusFeedbackResult, ValueType,
};

/// What is to be on the managed cluster.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1",
    kind = "ManifestWork",
    plural = "manifestworks",
    singular = "manifestwork",
    namespaced,
    status = "ManifestWorkStatus",
    doc = "Objects that are to be on a managed cluster. It lies in the cluster's namespace on the hub; the cluster's agent applies what it says and reports back.",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkSpec {
    /// The objects.
    #[serde(default)]
    pub workload: ManifestsTemplate,
    /// What becomes of them when this goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_option: Option<DeleteOption>,
    /// How single objects are to be treated, and what to report of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifest_configs: Vec<ManifestConfigOption>,
    /// On whose behalf they are applied; on the agent's own, when it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ManifestWorkExecutor>,
}

/// Objects in the order in which they are applied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestsTemplate {
    /// The objects, complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<Manifest>,
}

/// Any object of Kubernetes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Manifest(pub Value);

impl JsonSchema for Manifest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Manifest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Any object of Kubernetes.",
            "type": "object",
            "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
        })
    }
}
