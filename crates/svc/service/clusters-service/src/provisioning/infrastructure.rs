//! What the pipelines ask of the cloud, as a port: the sagas are tested without one.

use std::collections::BTreeMap;

use aro_control::saga::StepError;
use aro_ocm::NodePool;
use async_trait::async_trait;

use super::target::Target;
use crate::manifests::Secrets;
use crate::records::ResolvedIdentity;

/// A check of the customer's resources, and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checked {
    /// The check's name.
    pub(crate) name: &'static str,
    /// Why it failed: names the resource and the cause.
    pub(crate) failure: Option<StepError>,
}

/// The way of nodes to the internet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Egress {
    pub(crate) load_balancer: String,
    pub(crate) address_id: String,
    pub(crate) address: String,
}

/// The zone of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Zone {
    pub(crate) id: String,
    pub(crate) name_servers: Vec<String>,
}

/// Identities by operator.
pub(crate) type Identities = BTreeMap<String, ResolvedIdentity>;

/// The operator's name of the service's own identity.
pub(crate) const SERVICE: &str = "service";
/// What precedes the names of operators on the nodes among the identities, as some operators have one on each side.
pub(crate) const DATA_PLANE: &str = "data-plane/";

/// Makes and removes what a cluster needs in the cloud. Every method may be called again at any time: `ensure_` looks first,
/// `delete_` succeeds for what is gone.
#[async_trait]
pub(crate) trait Infrastructure: Send + Sync + 'static {
    /// Checks what the customer has to provide.
    async fn check(&self, target: &Target) -> Vec<Checked>;

    /// Checks what the customer has to provide for a node pool: its subnet, and quota for its machines.
    async fn check_pool(&self, target: &Target, pool: &NodePool) -> Result<(), StepError>;

    /// The managed resource group.
    async fn ensure_group(&self, target: &Target) -> Result<String, StepError>;

    /// Resolves the identities, and keeps the credentials of those in the control plane in the vault.
    async fn ensure_identities(&self, target: &Target) -> Result<Identities, StepError>;

    /// The keys of the cluster, and the documents of its token issuer.
    async fn ensure_issuer(&self, target: &Target) -> Result<String, StepError>;

    /// The pull secret.
    async fn ensure_pull_secret(&self, target: &Target) -> Result<String, StepError>;

    /// The certificates, by purpose.
    async fn ensure_certificates(&self, target: &Target) -> Result<BTreeMap<String, String>, StepError>;

    /// The records of the API server; returns the address they lead to.
    async fn ensure_records(&self, target: &Target) -> Result<String, StepError>;

    /// The roles of identities on the managed group.
    async fn ensure_roles(&self, target: &Target, identities: &Identities) -> Result<Vec<String>, StepError>;

    /// The way of nodes to the internet.
    async fn ensure_egress(&self, target: &Target) -> Result<Egress, StepError>;

    /// The cluster's zone and its delegation.
    async fn ensure_zone(&self, target: &Target) -> Result<Zone, StepError>;

    /// The security group that the service owns.
    async fn ensure_nsg(&self, target: &Target) -> Result<(), StepError>;

    /// The trust of the identities on the nodes in the token issuer.
    async fn ensure_federation(&self, target: &Target) -> Result<(), StepError>;

    /// What is needed for rendering and is in the vault only.
    async fn secrets(&self, target: &Target) -> Result<Secrets, StepError>;

    /// Removes the managed resource group with everything in it.
    async fn delete_group(&self, target: &Target) -> Result<(), StepError>;

    /// Removes the credentials of identities.
    async fn delete_identities(&self, target: &Target) -> Result<(), StepError>;

    /// Removes the keys and the documents of the token issuer.
    async fn delete_issuer(&self, target: &Target) -> Result<(), StepError>;

    /// Removes the pull secret and its token.
    async fn delete_pull_secret(&self, target: &Target) -> Result<(), StepError>;

    /// Removes the certificates.
    async fn delete_certificates(&self, target: &Target) -> Result<(), StepError>;

    /// Removes the records of the API server and the delegation.
    async fn delete_records(&self, target: &Target) -> Result<(), StepError>;

    /// Removes the trust of the identities on the nodes.
    async fn delete_federation(&self, target: &Target) -> Result<(), StepError>;
}
