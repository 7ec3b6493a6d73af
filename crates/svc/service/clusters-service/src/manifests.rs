//! What Clusters Service puts on a management cluster for a hosted cluster: pure rendering of stored records.
//!
//! Each [`Bundle`] holds one object for the Maestro agent. For a cluster these are a ManifestWork with its namespaces, one with
//! the HostedCluster and what belongs to it, one for each node pool, and the ManagedCluster. ManifestWorks are for the
//! management cluster's own work agent (namespace `local-cluster`), so feedback is nested: the inner work reports scalars of its
//! objects, the bundle reports the status of the inner work as JSON ([`feedback`] names the values, `maestro` reads them).
//!
//! All bundles are published at once: the work agent repeats what fails, so an object whose namespace is not there yet is applied
//! a moment later.
//!
//! Invariants:
//! * The same records give the same bytes: a repeated publish changes nothing.
//! * One writer for each object: everything of an object is rendered from the records, nothing is read back and merged.

pub(crate) mod feedback;
mod hosted_cluster;
mod managed_cluster;
mod namespaces;
mod node_pool;
mod objects;
mod oidc_provider;
mod work;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use aro_base::Secret;
use aro_crds::work::v1::ManifestConfigOption;
use aro_ocm::{Cluster, ClusterId, ExternalAuth, NodePool, NodePoolId, names};
use serde_json::Value;
use uuid::Uuid;

pub(crate) use aro_ocm::names::Environment;
pub(crate) use node_pool::minutes;

/// Generation of the desired state that an object was rendered from.
pub(crate) const GENERATION: &str = "aro.dev/generation";
/// The version of the release image that an object names: an image says nothing about it.
pub(crate) const RELEASE_VERSION: &str = "aro.dev/release-version";
/// The name of the object that a bundle holds.
pub(crate) const OBJECT: &str = "aro.dev/object";

/// One object for a management cluster, and what is reported of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bundle {
    /// Its id in Maestro.
    pub(crate) id: Uuid,
    /// Names the object among those of the cluster.
    pub(crate) object: String,
    /// The bundle's own labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// The object.
    pub(crate) manifest: Value,
    /// What is reported of it.
    pub(crate) config: ManifestConfigOption,
}

/// What of a cluster does not depend on one of its objects.
#[derive(Debug, Clone)]
pub(crate) struct Context<'a> {
    /// The environment.
    pub(crate) environment: &'a Environment,
    /// The source of the shard's bundles.
    pub(crate) source_id: &'a str,
    /// The cluster.
    pub(crate) id: &'a ClusterId,
    /// The cluster's name.
    pub(crate) name: &'a str,
    /// The domain prefix: the name of the HostedCluster.
    pub(crate) domain_prefix: &'a str,
    /// The id of the cluster in Azure Resource Manager.
    pub(crate) arm_id: &'a str,
    /// The correlation id of the request that caused the latest change.
    pub(crate) correlation_id: Option<&'a str>,
    /// Its trace.
    pub(crate) traceparent: Option<&'a str>,
}

/// What the pipeline made or found for a cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// The domain of its names, without the prefix.
    pub(crate) base_domain: String,
    /// The name of its infrastructure.
    pub(crate) infra_id: String,
    /// The id that the cluster reports itself with.
    pub(crate) cluster_uuid: String,
    /// The token issuer.
    pub(crate) issuer: String,
    /// The region.
    pub(crate) location: String,
    /// The image of the release.
    pub(crate) release_image: String,
    /// The network that the subnet is in.
    pub(crate) vnet_id: String,
    /// The vault with credentials of identities.
    pub(crate) identities_vault: String,
    /// The vault with certificates, and its tenant.
    pub(crate) certificates_vault: String,
    /// The tenant of both vaults.
    pub(crate) vault_tenant: String,
    /// The identity by which the management cluster reads the vaults.
    pub(crate) vault_reader_client_id: String,
    /// Identities of operators in the control plane, by operator.
    pub(crate) control_plane: BTreeMap<String, IdentityFacts>,
    /// Client ids of identities of operators on the nodes, by operator.
    pub(crate) data_plane: BTreeMap<String, String>,
    /// The host of the registry with the platform's images.
    pub(crate) ocp_registry: String,
    /// Addresses that the service adds to the customer's allow-list: those by which the nodes reach the API server.
    pub(crate) internal_cidrs: Vec<String>,
    /// The certificate of the API server in the vault; `None` while certificates are switched off.
    pub(crate) api_certificate: Option<String>,
    /// The certificate of the default ingress in the vault.
    pub(crate) ingress_certificate: Option<String>,
}

/// An operator's identity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IdentityFacts {
    /// Its client id.
    pub(crate) client_id: String,
    /// The secret with its credential.
    pub(crate) secret: String,
}

/// What must not be in the records.
#[derive(Debug, Clone)]
pub(crate) struct Secrets {
    /// The configuration of registry credentials, as nodes read it.
    pub(crate) pull_secret: Secret<String>,
    /// The public half of the key for nodes.
    pub(crate) ssh_key: String,
    /// The key that signs service account tokens, as PEM.
    pub(crate) service_account_key: Secret<String>,
}

/// A cluster as it is to be rendered.
#[derive(Debug, Clone)]
pub(crate) struct ClusterInput<'a> {
    pub(crate) cx: Context<'a>,
    pub(crate) cluster: &'a Cluster,
    pub(crate) generation: u64,
    pub(crate) external_auths: &'a [ExternalAuth],
    pub(crate) facts: &'a Facts,
    pub(crate) secrets: &'a Secrets,
}

/// A node pool as it is to be rendered.
#[derive(Debug, Clone)]
pub(crate) struct PoolInput<'a> {
    pub(crate) cx: Context<'a>,
    pub(crate) pool_id: &'a NodePoolId,
    pub(crate) pool: &'a NodePool,
    pub(crate) generation: u64,
    pub(crate) release_image: &'a str,
    /// The cluster's subnet, for a pool without its own.
    pub(crate) cluster_subnet: &'a str,
    /// The cluster's drain time, for a pool without its own.
    pub(crate) cluster_drain_minutes: f64,
    pub(crate) arm_id: &'a str,
}

impl Context<'_> {
    fn labels(&self) -> BTreeMap<String, String> {
        let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        BTreeMap::from([
            label(names::label::ID, self.id.as_str()),
            label(names::label::NAME, self.name),
            label(names::label::ENVIRONMENT, self.environment.as_str()),
        ])
    }

    fn annotations(&self, generation: u64) -> BTreeMap<String, String> {
        let mut all = BTreeMap::from([
            (GENERATION.to_owned(), generation.to_string()),
            (names::label::ARM_ID.to_owned(), self.arm_id.to_owned()),
        ]);
        let traces = [
            (names::label::CORRELATION_ID, self.correlation_id),
            (names::label::TRACEPARENT, self.traceparent),
        ];
        for (key, value) in traces {
            if let Some(value) = value {
                all.insert(key.to_owned(), value.to_owned());
            }
        }
        all
    }

    /// The namespace of the HostedCluster.
    pub(crate) fn namespace(&self) -> String {
        self.environment.hosted_cluster_namespace(self.id)
    }

    /// The namespace of the control plane.
    pub(crate) fn control_plane_namespace(&self) -> String {
        self.environment.control_plane_namespace(self.id, self.domain_prefix)
    }

    fn bundle_id(&self, object: &str) -> Uuid {
        names::bundle_id(self.source_id, object)
    }
}

/// The number of a version: `4.20.8` of `openshift-v4.20.8-candidate`.
fn version_number(version: Option<&aro_ocm::Version>) -> String {
    let Some(version) = version else { return String::new() };
    if let Some(number) = version.raw_id.as_ref().filter(|number| !number.is_empty()) {
        return number.clone();
    }
    let id = version.id.as_deref().unwrap_or_default();
    let number = id.strip_prefix("openshift-v").unwrap_or(id);
    let group = version.channel_group.as_deref().filter(|group| !group.is_empty());
    group.and_then(|group| number.strip_suffix(group)?.strip_suffix('-')).unwrap_or(number).to_owned()
}

/// The bundles of a cluster, without its node pools.
pub(crate) fn cluster_bundles(input: &ClusterInput<'_>) -> Vec<Bundle> {
    vec![
        namespaces::bundle(&input.cx, input.generation),
        hosted_cluster::bundle(input),
        managed_cluster::bundle(&input.cx, input.generation),
    ]
}

/// The bundle of a node pool.
pub(crate) fn pool_bundle(input: &PoolInput<'_>) -> Bundle {
    node_pool::bundle(input)
}

/// The names and ids of the bundles of a cluster, without its node pools: the ManagedCluster is removed first, the namespaces
/// last.
pub(crate) fn cluster_bundle_ids(source_id: &str, id: &ClusterId) -> [(String, Uuid); 3] {
    [managed_cluster::object(id), names::cluster_work(id), names::namespaces_work(id)].map(|object| {
        let bundle = names::bundle_id(source_id, &object);
        (object, bundle)
    })
}

/// The id of the bundle of a node pool.
pub(crate) fn pool_bundle_id(source_id: &str, id: &ClusterId, pool: &NodePoolId) -> Uuid {
    names::bundle_id(source_id, &names::node_pool_work(id, pool))
}
