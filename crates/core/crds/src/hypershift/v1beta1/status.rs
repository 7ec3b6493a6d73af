//! Versions and endpoints in statuses.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which release is rolled out, and which ones were.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ClusterVersionStatus {
    /// The release that is wanted.
    #[serde(default)]
    pub desired: ReleaseUpdate,
    /// The releases, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<UpdateHistory>,
    /// The generation that this is about.
    #[serde(default)]
    pub observed_generation: i64,
    /// Releases that it can be upgraded to; `null` while they are not known.
    #[serde(default)]
    pub available_updates: Option<Vec<ReleaseUpdate>>,
}

/// Which release of the control plane is rolled out, and which ones were.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ControlPlaneVersionStatus {
    /// The release that is wanted.
    #[serde(default)]
    pub desired: ReleaseUpdate,
    /// The releases, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<UpdateHistory>,
    /// The generation that this is about.
    #[serde(default)]
    pub observed_generation: i64,
}

/// A release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ReleaseUpdate {
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// Its image.
    #[serde(default)]
    pub image: String,
    /// The channels that it is in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<String>,
}

/// The rollout of one release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct UpdateHistory {
    /// Whether it is complete.
    pub state: UpdateState,
    /// When it began.
    pub started_time: Time,
    /// When it was complete, or another release took its place.
    #[serde(default)]
    pub completion_time: Option<Time>,
    /// The release's version.
    #[serde(default)]
    pub version: String,
    /// The release's image.
    #[serde(default)]
    pub image: String,
    /// Whether the release's signature was verified.
    #[serde(default)]
    pub verified: bool,
}

/// Whether a rollout is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateState {
    /// Everything runs the release.
    Completed,
    /// Something does not run it yet, or never did.
    Partial,
}

/// Where an API server is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Endpoint {
    /// The host.
    pub host: String,
    /// The port.
    pub port: i32,
}
