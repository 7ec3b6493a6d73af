//! What the pipelines made for a cluster or a node pool: the typed results of their steps.

use std::collections::BTreeMap;

use aro_ocm::Time;
use serde::{Deserialize, Serialize};

/// What was made for a cluster. A member is set once its step is done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provisioned {
    /// The resource id of the managed resource group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_resource_group: Option<String>,
    /// The identities of operators, by operator; the service's own is `service`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub identities: BTreeMap<String, ResolvedIdentity>,
    /// The role assignments that were made, by resource id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub role_assignments: Vec<String>,
    /// The issuer of service account tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer_url: Option<String>,
    /// The name of the vault secret with the key that signs service account tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signing_key_secret: Option<String>,
    /// The load balancer of nodes, by resource id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<String>,
    /// The public address of nodes, by resource id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_address_id: Option<String>,
    /// The public address of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_address: Option<String>,
    /// The zone of the cluster, by resource id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The name servers of that zone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub name_servers: Vec<String>,
    /// The address of the management cluster's shared ingress, which the API's records point at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_address: Option<String>,
    /// Vault secrets with certificates, by purpose.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub certificates: BTreeMap<String, String>,
    /// The name of the vault secret with the pull secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_secret: Option<String>,
    /// The cluster's UUID inside of OpenShift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_uuid: Option<String>,
    /// When everything was made for the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<Time>,
}

/// A managed identity with what the cloud knows of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResolvedIdentity {
    /// Its client id.
    pub client_id: String,
    /// Its object id.
    pub principal_id: String,
    /// The name of the vault secret with its credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// When its credential has to be renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew_after: Option<Time>,
}

/// What was made for a node pool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodePoolProvisioned {
    /// When everything was made for the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<Time>,
}
