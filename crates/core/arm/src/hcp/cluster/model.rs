//! The typed form of a cluster: what a caller sets ([`ClusterProperties`], in the newest shape) and what the
//! service adds ([`Hosting`]).
//!
//! Members are declared in alphabetical order, the order of answers. What can be absent in a stored object is an
//! `Option`, also where today's rules require it: older api-versions did not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ResourceId;

/// Everything a caller can set under `properties`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterProperties {
    pub api: Api,
    pub autoscaling: Autoscaling,
    pub cluster_image_registry: ImageRegistry,
    pub crypto_restrictions: CryptoRestrictions,
    #[serde(default, skip_serializing_if = "Dns::is_empty")]
    pub dns: Dns,
    pub etcd: Etcd,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_digest_mirrors: Vec<ImageDigestMirror>,
    pub ingress: Ingress,
    pub network: Network,
    pub node_drain_timeout_minutes: i32,
    pub platform: Platform,
    pub version: Version,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Api {
    /// `None` lets everybody in; an empty list is never stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorized_cidrs: Option<Vec<String>>,
    pub visibility: Visibility,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Visibility {
    Public,
    Private,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Autoscaling {
    pub max_node_provision_time_seconds: i32,
    /// Zero is "no limit" and is not shown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_nodes_total: i32,
    pub max_pod_grace_period_seconds: i32,
    pub pod_priority_threshold: i32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(value: &i32) -> bool {
    *value == 0
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageRegistry {
    pub state: ImageRegistryState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageRegistryState {
    Enabled,
    Disabled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CryptoRestrictions {
    None,
    #[serde(rename = "FIPS")]
    Fips,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Dns {
    /// Made by the service when the caller does not choose it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_domain_prefix: Option<String>,
}

impl Dns {
    pub fn is_empty(&self) -> bool {
        self.base_domain_prefix.is_none()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Etcd {
    pub data_encryption: DataEncryption,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DataEncryption {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer_managed: Option<CustomerManaged>,
    pub key_management_mode: KeyManagementMode,
}

/// Only one mode is offered; the other of the old contracts never was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyManagementMode {
    CustomerManaged,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomerManaged {
    pub encryption_type: EncryptionType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kms: Option<Kms>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EncryptionType {
    #[serde(rename = "KMS")]
    Kms,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kms {
    pub active_key: KmsKey,
    /// `None` means [`KeyVaultType::KeyVault`]; a value that was never set stays absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_vault_type: Option<KeyVaultType>,
    #[serde(default)]
    pub vault_name: String,
    pub visibility: Visibility,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyVaultType {
    KeyVault,
    #[serde(rename = "ManagedHSM")]
    ManagedHsm,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct KmsKey {
    pub name: String,
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageDigestMirror {
    #[serde(default)]
    pub mirrors: Vec<String>,
    #[serde(default)]
    pub source: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ingress {
    #[serde(rename = "type")]
    pub kind: IngressType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum IngressType {
    Public,
    Private,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    pub host_prefix: i32,
    pub machine_cidr: String,
    pub network_type: NetworkType,
    pub pod_cidr: String,
    pub service_cidr: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkType {
    #[serde(rename = "OVNKubernetes")]
    OvnKubernetes,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Platform {
    #[serde(default, skip_serializing_if = "ContainerRegistry::is_empty")]
    pub container_registry: ContainerRegistry,
    #[serde(default)]
    pub managed_resource_group: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_security_group_id: Option<ResourceId>,
    pub operators_authentication: OperatorsAuthentication,
    pub outbound_type: OutboundType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<ResourceId>,
    /// Absent on clusters made before there was such a subnet; it can only be set at creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vnet_integration_subnet_id: Option<ResourceId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerRegistry {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_identity: Option<ResourceId>,
}

impl ContainerRegistry {
    pub fn is_empty(&self) -> bool {
        self.managed_identity.is_none()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorsAuthentication {
    pub user_assigned_identities: OperatorIdentities,
}

/// Operator name → identity. Empty maps are shown: they are required members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorIdentities {
    pub control_plane_operators: BTreeMap<String, ResourceId>,
    pub data_plane_operators: BTreeMap<String, ResourceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_managed_identity: Option<ResourceId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutboundType {
    LoadBalancer,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    pub channel_group: String,
    /// `major.minor`; which patch runs is the service's affair.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
}

/// What the service knows of a hosted cluster beyond what it keeps about every resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hosting {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_domain: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing_document_id: Option<String>,
    /// Names the cluster apart from one of the same id that was deleted before.
    pub cluster_uid: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console_url: Option<String>,
    #[serde(default, skip_serializing_if = "ExperimentalFeatures::is_empty")]
    pub experimental_features: ExperimentalFeatures,
    /// Where the credentials of the assigned identities are fetched; never changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer_url: Option<String>,
    /// The Clusters Service id that is being asked for, before it is known to exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_cluster_service_id: Option<String>,
    /// The revocation that is running, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoke_credentials_operation_id: Option<String>,
}

impl Hosting {
    pub fn new(cluster_uid: Uuid, identity_url: Option<String>) -> Self {
        Self {
            api_url: None,
            base_domain: None,
            billing_document_id: None,
            cluster_uid,
            console_url: None,
            experimental_features: ExperimentalFeatures::default(),
            identity_url,
            issuer_url: None,
            pending_cluster_service_id: None,
            revoke_credentials_operation_id: None,
        }
    }
}

/// Settings for subscriptions that try what is not offered to everybody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct ExperimentalFeatures {
    /// The release the control plane is pinned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_exact_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_operator_image: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub single_replica: bool,
    /// The control plane runs with the least resources.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub minimal_size: bool,
}

impl ExperimentalFeatures {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
