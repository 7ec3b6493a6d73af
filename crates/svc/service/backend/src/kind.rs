//! What the documents of clusters, node pools and external auths have in common.

use aro_arm::ResourceId;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::resource::Resource;
use aro_arm::hcp::service_provider::{
    DEFAULT_NAME, SERVICE_PROVIDER_CLUSTERS, SERVICE_PROVIDER_NODE_POOLS, ServiceProviderCluster,
    ServiceProviderNodePool,
};
use aro_rp_store::RpDocument;

/// A resource with the service's own document beside it.
pub trait Kind: Resource + RpDocument + PartialEq + std::fmt::Debug {
    /// The document beside it.
    type Provider: RpDocument + Clone + PartialEq + Default + std::fmt::Debug;
    /// What it is called in messages.
    const NOUN: &'static str;

    /// The id of the document beside a resource; `None` for kinds without one.
    fn provider_id(id: &ResourceId) -> Option<ResourceId>;

    /// Clusters Service has refused to create it for good: an id that was chosen for it means nothing any longer.
    fn forget_create(&mut self) {}
}

impl Kind for Cluster {
    type Provider = ServiceProviderCluster;
    const NOUN: &'static str = "cluster";

    fn provider_id(id: &ResourceId) -> Option<ResourceId> {
        Some(id.child(SERVICE_PROVIDER_CLUSTERS, DEFAULT_NAME))
    }

    fn forget_create(&mut self) {
        if self.service.cluster_service_id.is_none() {
            self.hosting.pending_cluster_service_id = None;
        }
    }
}

impl Kind for NodePool {
    type Provider = ServiceProviderNodePool;
    const NOUN: &'static str = "node pool";

    fn provider_id(id: &ResourceId) -> Option<ResourceId> {
        Some(id.child(SERVICE_PROVIDER_NODE_POOLS, DEFAULT_NAME))
    }
}

impl Kind for ExternalAuth {
    type Provider = ServiceProviderNodePool;
    const NOUN: &'static str = "external auth";

    fn provider_id(_: &ResourceId) -> Option<ResourceId> {
        None
    }
}
