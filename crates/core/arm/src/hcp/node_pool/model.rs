//! The typed form of a node pool, in the newest shape. Members are declared in alphabetical order, as in answers.

use serde::{Deserialize, Serialize};

use crate::ResourceId;

/// Everything a caller can set under `properties`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolProperties {
    pub auto_repair: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_scaling: Option<AutoScaling>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
    /// `None` takes the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_drain_timeout_minutes: Option<i32>,
    pub platform: Platform,
    pub replicas: i32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    pub version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoScaling {
    pub max: i32,
    pub min: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    #[serde(default)]
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taint {
    pub effect: Effect,
    #[serde(default)]
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Platform {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    pub enable_encryption_at_host: bool,
    pub os_disk: OsDisk,
    /// Defaults to the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<ResourceId>,
    #[serde(default)]
    pub vm_size: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OsDisk {
    pub disk_storage_account_type: DiskStorageAccountType,
    pub disk_type: DiskType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_set_id: Option<ResourceId>,
    #[serde(rename = "sizeGiB")]
    pub size_gib: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::enum_variant_names, reason = "the names Azure gives them")]
pub enum DiskStorageAccountType {
    #[serde(rename = "Premium_LRS")]
    PremiumLrs,
    #[serde(rename = "StandardSSD_LRS")]
    StandardSsdLrs,
    #[serde(rename = "Standard_LRS")]
    StandardLrs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiskType {
    Managed,
    Ephemeral,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    pub channel_group: String,
    /// `major.minor.patch`; absent where the oldest api-version left the choice to the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}
