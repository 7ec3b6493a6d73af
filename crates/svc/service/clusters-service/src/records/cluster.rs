//! The record of a cluster.

use aro_ocm::{
    Cluster, ClusterAro, ClusterId, ClusterState, ClusterStatus, Condition, ConfigurationMode, Endpoint,
    ShardId, Time, VersionHistoryEntry, names,
};
use aro_store::{Kind, Names};
use serde::{Deserialize, Serialize};

use super::{DeletionRequest, Provisioned, Record, TraceContext, cluster_names};

/// A cluster as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClusterRecord {
    /// The cluster's id.
    pub id: ClusterId,
    /// The object of the API: desired state, and the state inside `state` and `status`.
    pub cluster: Cluster,
    /// Counts changes of the desired state, from 1.
    pub generation: u64,
    /// Where it is placed.
    pub shard: ShardId,
    /// The name of the management cluster behind the shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub management_cluster: Option<String>,
    /// The request that last changed the desired state.
    #[serde(default)]
    pub trace: TraceContext,
    /// Set once its deletion was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<DeletionRequest>,
    /// What came back from the management cluster.
    #[serde(default)]
    pub observed: ClusterObserved,
    /// What the pipelines made.
    #[serde(default)]
    pub provisioning: Provisioned,
}

/// What is known of a cluster's control plane from its management cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterObserved {
    /// The generation of the desired state that the control plane has.
    pub generation: u64,
    /// The conditions of the HostedCluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Its versions, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub version_history: Vec<VersionHistoryEntry>,
    /// Where the API server is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// PEM of the authority of the API server's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving_ca: Option<String>,
    /// The addresses that the service added to the customer's allow-list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub internal_allowed_cidrs: Vec<String>,
    /// When a status was received last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<Time>,
}

impl Record for ClusterRecord {
    const KIND: Kind<Self> = Kind::new("ClustersService/clusters");

    fn names(&self) -> Names {
        cluster_names(self)
    }
}

impl ClusterRecord {
    /// Its state.
    pub fn state(&self) -> ClusterState {
        self.cluster.state.unwrap_or(ClusterState::Validating)
    }

    /// Sets its state. An error of an earlier state is cleared.
    pub fn set_state(&mut self, state: ClusterState, description: impl Into<String>) {
        let description = description.into();
        self.cluster.state = Some(state);
        let status = self.status_mut();
        status.state = Some(state);
        status.description = (!description.is_empty()).then_some(description);
        status.provision_error_code = None;
        status.provision_error_message = None;
    }

    /// Sets the state `error` with the code and the message that callers show.
    pub fn set_error(&mut self, code: &str, message: impl Into<String>) {
        let message = message.into();
        self.set_state(ClusterState::Error, message.clone());
        let status = self.status_mut();
        status.provision_error_code = Some(code.to_owned());
        status.provision_error_message = Some(message);
    }

    /// Its status. There always is one.
    pub fn status_mut(&mut self) -> &mut ClusterStatus {
        self.cluster.status.get_or_insert_with(|| ClusterStatus {
            dns_ready: Some(false),
            oidc_ready: Some(false),
            configuration_mode: Some(ConfigurationMode::Full),
            limited_support_reason_count: Some(0),
            current_compute: Some(0),
            ..ClusterStatus::default()
        })
    }

    /// Its domain prefix.
    pub fn domain_prefix(&self) -> &str {
        self.cluster.domain_prefix.as_deref().unwrap_or_default()
    }

    /// The domain that its names are below.
    pub fn base_domain(&self) -> &str {
        self.cluster.dns.as_ref().and_then(|dns| dns.base_domain.as_deref()).unwrap_or_default()
    }

    /// The ARM id of the cluster.
    pub fn arm_id(&self) -> Option<String> {
        let azure = self.cluster.azure.as_ref()?;
        let (subscription, group) = (azure.subscription_id.as_ref()?, azure.resource_group_name.as_ref()?);
        let name = azure.resource_name.as_ref()?;
        Some(format!(
            "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/{name}"
        ))
    }

    /// What callers see beyond the original's model.
    pub fn aro(&self, environment: &names::Environment) -> ClusterAro {
        let observed = &self.observed;
        ClusterAro {
            hosted_cluster_namespace: Some(environment.hosted_cluster_namespace(&self.id)),
            hcp_namespace: Some(environment.control_plane_namespace(&self.id, self.domain_prefix())),
            conditions: Some(observed.conditions.clone()),
            version_history: Some(observed.version_history.clone()),
            control_plane_endpoint: observed.endpoint.clone(),
            serving_ca: observed.serving_ca.clone(),
            issuer_url: self.cluster.azure.as_ref().and_then(|azure| azure.oidc_issuer_url.clone()),
            management_cluster: self.management_cluster.clone(),
            internal_allowed_cidrs: Some(observed.internal_allowed_cidrs.clone()),
        }
    }
}
