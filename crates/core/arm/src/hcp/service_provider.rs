//! Documents the service keeps beside a resource: what it wants and what it observed. Callers never see them.

use aro_base::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::openshift_version::Release;
use super::resource::Condition;
use crate::ResourceId;

/// Type name of [`ServiceProviderCluster`] below a cluster; its only name is [`DEFAULT_NAME`].
pub const SERVICE_PROVIDER_CLUSTERS: &str = "serviceProviderClusters";
/// Type name of [`ServiceProviderNodePool`] below a node pool.
pub const SERVICE_PROVIDER_NODE_POOLS: &str = "serviceProviderNodePools";
pub const DEFAULT_NAME: &str = "default";

/// The service's own document of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceProviderCluster {
    pub spec: ClusterSpec,
    pub status: ClusterStatus,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSpec {
    pub control_plane_version: DesiredVersion,
    /// The HostedCluster as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_hosted_cluster: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_hosted_cluster_control_plane_size: Option<ControlPlaneSize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_schedule_state: Option<BackupScheduleState>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    pub conditions: Vec<Condition>,
    pub control_plane_version: ObservedVersions,
    /// `<group>-<x.y>` channels the update service offers for the desired version; empty while unknown.
    pub desired_version_channels: Vec<String>,
    pub validations: Vec<Validation>,
    pub maestro_readonly_bundles: Vec<BundleReference>,
    /// Set once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub management_cluster_resource_id: Option<ResourceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_hosted_cluster_control_plane_size: Option<ControlPlaneSize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosted_cluster_namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_namespace: Option<String>,
    /// PEM of the authorities that sign what the API server shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving_ca_bundle: Option<String>,
    pub azure_resources: AzureResources,
    pub msi_managed_identities: Vec<ResolvedIdentity>,
    pub data_plane_operators_managed_identities: Vec<ResolvedIdentity>,
}

/// The service's own document of a node pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceProviderNodePool {
    pub spec: NodePoolSpec,
    pub status: NodePoolStatus,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct NodePoolSpec {
    pub node_pool_version: DesiredVersion,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct NodePoolStatus {
    pub conditions: Vec<Condition>,
    pub node_pool_version: ObservedVersions,
    pub validations: Vec<Validation>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct DesiredVersion {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_version: Option<Release>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct ObservedVersions {
    pub active_versions: Vec<ObservedVersion>,
}

impl ObservedVersions {
    /// The versions alone, as admission wants them.
    pub fn versions(&self) -> Vec<Release> {
        self.active_versions.iter().map(|active| active.version.clone()).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedVersion {
    pub version: Release,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<RolloutState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RolloutState {
    Completed,
    Partial,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ControlPlaneSize {
    Small,
    Medium,
    Large,
    Xlarge,
    XXlarge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackupScheduleState {
    Enabled,
    Disabled,
}

/// One check of what a customer has to provide, and how it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Validation {
    pub name: String,
    pub succeeded: bool,
    #[serde(default)]
    pub message: String,
    pub checked_at: Timestamp,
}

/// A bundle that mirrors objects of the management cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleReference {
    pub name: String,
    pub bundle_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct AzureResources {
    pub deny_assignments: Vec<ResourceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_resource_group: Option<ResourceId>,
}

/// An identity and the attributes of its credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedIdentity {
    pub resource_id: ResourceId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_document_is_a_valid_one() {
        let cluster: ServiceProviderCluster = serde_json::from_value(json!({})).unwrap();
        assert_eq!(cluster, ServiceProviderCluster::default());
        let pool: ServiceProviderNodePool = serde_json::from_value(json!({"spec": {}})).unwrap();
        assert_eq!(pool, ServiceProviderNodePool::default());
    }

    #[test]
    fn documents_survive_storage() {
        let stored = json!({
            "spec": {"controlPlaneVersion": {"desiredVersion": "4.22.3"},
                     "desiredHostedClusterControlPlaneSize": "XXlarge", "backupScheduleState": "Enabled"},
            "status": {
                "conditions": [{"type": "RequirementsValid", "status": "True", "reason": "Valid", "message": "",
                                "lastTransitionTime": "2026-09-04T23:30:07Z"}],
                "controlPlaneVersion": {"activeVersions": [{"version": "4.22.3", "state": "Partial"},
                                                           {"version": "4.21.9", "state": "Completed"}]},
                "desiredVersionChannels": ["stable-4.22"],
            },
        });
        let cluster: ServiceProviderCluster = serde_json::from_value(stored).unwrap();
        let versions: Vec<String> =
            cluster.status.control_plane_version.versions().iter().map(ToString::to_string).collect();
        assert_eq!(versions, ["4.22.3", "4.21.9"]);
        let again = serde_json::from_value(serde_json::to_value(&cluster).unwrap()).unwrap();
        assert_eq!(cluster, again);
    }
}
