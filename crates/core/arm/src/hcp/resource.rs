//! What the three resources share: the context of a request, the trait they implement, the service's own part.

pub mod envelope;
pub(super) mod experimental;
pub(super) mod render;
pub(super) mod write;

use std::collections::BTreeMap;

use aro_base::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::members::Body;
use super::version::ApiVersion;
use crate::operation::ProvisioningState;
use crate::{FieldError, ResourceId, SystemData};

/// Tags of a tracked resource.
pub type Tags = BTreeMap<String, String>;

/// Everything outside the body that decides about a write.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// From the URL, in its original case; wins over the body.
    pub id: &'a ResourceId,
    /// The server's own region; wins over the body.
    pub location: &'a str,
    /// The parsed header, or the default.
    pub system_data: SystemData,
    /// `X-Ms-Identity-Url`; required when a cluster is created, unless `preflight`.
    pub identity_url: Option<&'a str>,
    pub now: Timestamp,
    /// For the cluster's uid and the name of a generated managed resource group.
    pub new_uid: Uuid,
    /// The subscription has the feature that opens experimental settings.
    pub experimental: bool,
    /// Whether data-plane identities may also be in the top-level identity map.
    pub allow_data_plane_identities: bool,
    /// Only asking: nothing will be stored.
    pub preflight: bool,
}

/// A resource a caller can put, patch and get.
pub trait Resource: Clone + Serialize + serde::de::DeserializeOwned + Send + Sync + 'static {
    /// The full ARM type.
    const TYPE: &'static str;

    /// The table of its members.
    const BODY: &'static Body;

    /// From a body to a checked object: a new one, or the successor of a stored one.
    fn from_body(
        old: Option<&Self>,
        version: ApiVersion,
        body: &Value,
        cx: &Context<'_>,
    ) -> Result<Self, Vec<FieldError>>;

    /// The ARM body: only members that version knows; unset ones are absent; keys in alphabetical order.
    fn render(&self, version: ApiVersion) -> Value;

    fn id(&self) -> &ResourceId;
    fn service(&self) -> &ServiceProperties;
    fn service_mut(&mut self) -> &mut ServiceProperties;

    /// A new object from the body of a PUT.
    fn create(version: ApiVersion, body: &Value, cx: &Context<'_>) -> Result<Self, Vec<FieldError>> {
        Self::from_body(None, version, body, cx)
    }

    /// The stored object replaced by the body of a PUT.
    fn replace(&self, version: ApiVersion, body: &Value, cx: &Context<'_>) -> Result<Self, Vec<FieldError>> {
        Self::from_body(Some(self), version, body, cx)
    }

    /// The stored object changed by a merge patch of its rendering in that version.
    fn patch(&self, version: ApiVersion, patch: &Value, cx: &Context<'_>) -> Result<Self, Vec<FieldError>> {
        let body = write::patched(Self::BODY, version, self.render(version), patch)?;
        self.replace(version, &body, cx)
    }

    fn provisioning_state(&self) -> ProvisioningState {
        self.service().provisioning_state
    }

    fn set_provisioning_state(&mut self, state: ProvisioningState) {
        self.service_mut().provisioning_state = state;
    }
}

/// What the service keeps about every resource; callers see only the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceProperties {
    pub provisioning_state: ProvisioningState,
    /// Clusters Service's reference, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_service_id: Option<String>,
    /// The operation that holds the resource; `None` when it is idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_operation_id: Option<String>,
    /// When deletion was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Timestamp>,
    /// When deletion was handed to Clusters Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_service_deletion_timestamp: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_operation_completion_deadline: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_operation_completion_deadline: Option<Timestamp>,
    /// How long a deletion may take, where it is not the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_operation_completion_timeout_seconds: Option<i64>,
}

/// How long a creation may take unless a tag sets it.
pub const CREATE_TIMEOUT_SECONDS: i64 = 60 * 60;
/// How long a deletion may take unless a tag sets it.
pub const DELETE_TIMEOUT_SECONDS: i64 = 12 * 60 * 60;

impl ServiceProperties {
    /// Of a resource that is about to be created.
    pub fn accepted(create_deadline: Timestamp) -> Self {
        Self {
            provisioning_state: ProvisioningState::Accepted,
            cluster_service_id: None,
            active_operation_id: None,
            deletion_timestamp: None,
            cluster_service_deletion_timestamp: None,
            create_operation_completion_deadline: Some(create_deadline),
            delete_operation_completion_deadline: None,
            delete_operation_completion_timeout_seconds: None,
        }
    }

    /// How long a deletion of this resource may take.
    pub fn delete_timeout_seconds(&self) -> i64 {
        self.delete_operation_completion_timeout_seconds.unwrap_or(DELETE_TIMEOUT_SECONDS)
    }
}

/// `identity` of a tracked resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    #[serde(rename = "type")]
    pub kind: IdentityType,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub user_assigned_identities: BTreeMap<ResourceId, AssignedIdentity>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum IdentityType {
    None,
    SystemAssigned,
    UserAssigned,
    #[serde(rename = "SystemAssigned,UserAssigned")]
    SystemAndUserAssigned,
}

/// What the service learned about an assigned identity. Callers name identities, they never describe them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct AssignedIdentity {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal_id: Option<String>,
}

/// `properties.status`, as callers of newer versions see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// `major.minor` of a cluster, `major.minor.patch` of a node pool; never set on an external auth.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub active_versions: Vec<ActiveVersion>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

impl Status {
    pub fn is_empty(&self) -> bool {
        self.active_versions.is_empty() && self.conditions.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveVersion {
    pub version: String,
}

/// A condition; times are shown in whole seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    #[serde(serialize_with = "whole_seconds")]
    pub last_transition_time: Timestamp,
    #[serde(default)]
    pub message: String,
    pub reason: String,
    pub status: ConditionStatus,
    #[serde(rename = "type")]
    pub kind: String,
}

fn whole_seconds<S: serde::Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Timestamp::from_second(at.as_second()).unwrap_or(*at))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    True,
    False,
    Unknown,
}
