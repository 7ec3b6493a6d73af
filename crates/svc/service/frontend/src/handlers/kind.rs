//! What differs between clusters, node pools and external auths when they are written.

use aro_arm::hcp::admission::{self, ControlPlaneVersions, NodePoolVersions};
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::openshift_version::Release;
use aro_arm::hcp::resource::Resource;
use aro_arm::hcp::service_provider::{
    DEFAULT_NAME, SERVICE_PROVIDER_CLUSTERS, SERVICE_PROVIDER_NODE_POOLS, ServiceProviderCluster,
    ServiceProviderNodePool,
};
use aro_arm::subscription::Subscription;
use aro_arm::{FieldError, FieldPath, ResourceId};
use aro_arm_server::Failure;
use aro_peers::CallContext;
use aro_rp_store::{ClaimKind, ListOf, RpDocument};
use aro_store::Typed;
use tokio::time::timeout;

use crate::claims::Wanted;
use crate::ports::{Asked, PREFLIGHT_DEADLINE, Refusal};
use crate::shared::{Request, Shared};

/// What is known about a write beside the resource itself.
pub struct Surroundings<'a> {
    pub shared: &'a Shared,
    /// The cluster a child belongs to.
    pub parent: Option<&'a Typed<Cluster>>,
    pub experimental: bool,
}

/// A resource as the frontend serves it.
pub trait Kind: Resource + RpDocument {
    /// Whether it lives below a cluster.
    const IS_CHILD: bool;

    /// Fills in what comes from its surroundings and returns what does not fit them.
    fn admit_create(
        &mut self,
        around: &Surroundings<'_>,
    ) -> impl Future<Output = Result<Vec<FieldError>, Failure>> + Send;

    /// Returns what forbids that the stored resource becomes this one.
    fn admit_update(
        &mut self,
        old: &Self,
        around: &Surroundings<'_>,
    ) -> impl Future<Output = Result<Vec<FieldError>, Failure>> + Send;

    /// What only this one resource may use.
    fn claims(&self, around: &Surroundings<'_>) -> Vec<Wanted>;

    /// Asks Clusters Service, before anything is stored.
    fn preflight(
        &self,
        shared: &Shared,
        request: &Request,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        let _ = (shared, request);
        async { Ok(()) }
    }
}

impl Kind for Cluster {
    const IS_CHILD: bool = false;

    async fn admit_create(&mut self, _: &Surroundings<'_>) -> Result<Vec<FieldError>, Failure> {
        Ok(Vec::new())
    }

    async fn admit_update(
        &mut self,
        old: &Self,
        around: &Surroundings<'_>,
    ) -> Result<Vec<FieldError>, Failure> {
        let needs_versions = old.properties.version != self.properties.version
            || old.properties.etcd != self.properties.etcd
            || old.properties.platform.container_registry != self.properties.platform.container_registry;
        if !needs_versions {
            return Ok(Vec::new());
        }
        let control_plane = control_plane_versions(around.shared, &self.id).await?;
        let node_pools = node_pool_versions(around.shared, &self.id).await?;
        Ok(admission::cluster::admit_update(old, self, &control_plane, &node_pools))
    }

    fn claims(&self, _: &Surroundings<'_>) -> Vec<Wanted> {
        cluster_claims(self)
    }

    async fn preflight(&self, shared: &Shared, request: &Request) -> Result<(), Failure> {
        let notified = request.subscription.as_ref().and_then(Subscription::tenant_id);
        let asked = Asked {
            cluster: self,
            tenant: notified.unwrap_or_else(|| request.tenant_id()),
            context: CallContext {
                correlation_id: request.caller.correlation_id.clone(),
                client_request_id: request.caller.client_request_id.clone(),
                trace_parent: request.caller.trace_parent.clone(),
            },
        };
        match timeout(PREFLIGHT_DEADLINE, shared.preflight.would_accept(&asked)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Refusal::Refused(error))) => Err(Failure::Refused(error)),
            Ok(Err(Refusal::Unreachable(cause))) => Err(Failure::Unavailable(cause)),
            Err(elapsed) => Err(Failure::Unavailable(Box::new(elapsed))),
        }
    }
}

/// What a cluster must not share with another one of its subscription.
pub fn cluster_claims(cluster: &Cluster) -> Vec<Wanted> {
    let platform = &cluster.properties.platform;
    let path = |member: &str| FieldPath::new("properties.platform").child(member);
    let claim =
        |kind, what: &str, member| Wanted { kind, what: what.to_owned(), path: path(member), shared: false };
    let mut claims = Vec::with_capacity(3);
    claims.push(claim(
        ClaimKind::ManagedResourceGroup,
        &platform.managed_resource_group,
        "managedResourceGroup",
    ));
    if let Some(subnet) = &platform.subnet_id {
        claims.push(claim(ClaimKind::Subnet, subnet.as_str(), "subnetId"));
    }
    if let Some(group) = &platform.network_security_group_id {
        claims.push(claim(ClaimKind::NetworkSecurityGroup, group.as_str(), "networkSecurityGroupId"));
    }
    claims
}

impl Kind for NodePool {
    const IS_CHILD: bool = true;

    async fn admit_create(&mut self, around: &Surroundings<'_>) -> Result<Vec<FieldError>, Failure> {
        let Some(parent) = around.parent else { return Ok(Vec::new()) };
        let control_plane = control_plane_versions(around.shared, &parent.value.id).await?;
        Ok(admission::node_pool::admit_create(self, &parent.value, &control_plane))
    }

    async fn admit_update(
        &mut self,
        old: &Self,
        around: &Surroundings<'_>,
    ) -> Result<Vec<FieldError>, Failure> {
        let Some(parent) = around.parent else { return Ok(Vec::new()) };
        if old.properties.version == self.properties.version {
            return Ok(Vec::new());
        }
        let control_plane = control_plane_versions(around.shared, &parent.value.id).await?;
        let running = versions_of_node_pool(around.shared, old).await?;
        let experimental = around.experimental;
        Ok(admission::node_pool::admit_update(
            old,
            self,
            &parent.value,
            &control_plane,
            &running,
            experimental,
        ))
    }

    /// A subnet of its own keeps clusters away from it. The cluster's subnet is the cluster's claim.
    fn claims(&self, around: &Surroundings<'_>) -> Vec<Wanted> {
        let cluster_subnet =
            around.parent.and_then(|parent| parent.value.properties.platform.subnet_id.as_ref());
        match &self.properties.platform.subnet_id {
            Some(subnet) if Some(subnet) != cluster_subnet => vec![Wanted {
                kind: ClaimKind::Subnet,
                what: subnet.as_str().to_owned(),
                path: FieldPath::new("properties.platform.subnetId"),
                shared: true,
            }],
            _ => Vec::new(),
        }
    }
}

impl Kind for ExternalAuth {
    const IS_CHILD: bool = true;

    async fn admit_create(&mut self, _: &Surroundings<'_>) -> Result<Vec<FieldError>, Failure> {
        Ok(Vec::new())
    }

    async fn admit_update(&mut self, _: &Self, _: &Surroundings<'_>) -> Result<Vec<FieldError>, Failure> {
        Ok(Vec::new())
    }

    /// One per cluster: the claim is on the cluster.
    fn claims(&self, around: &Surroundings<'_>) -> Vec<Wanted> {
        let cluster = around.parent.map(|parent| parent.value.id.as_str().to_owned());
        let claim = |what| Wanted {
            kind: ClaimKind::ExternalAuth,
            what,
            path: FieldPath::new("name"),
            shared: false,
        };
        cluster.map(claim).into_iter().collect()
    }
}

async fn control_plane_versions(
    shared: &Shared,
    cluster: &ResourceId,
) -> Result<ControlPlaneVersions, Failure> {
    let id = cluster.child(SERVICE_PROVIDER_CLUSTERS, DEFAULT_NAME);
    let stored = shared.documents.find::<ServiceProviderCluster>(&id).await?;
    Ok(stored.map(|stored| stored.value.status).map_or_else(ControlPlaneVersions::default, |status| {
        ControlPlaneVersions {
            active: status.control_plane_version.versions(),
            channels: status.desired_version_channels,
        }
    }))
}

async fn node_pool_versions(shared: &Shared, cluster: &ResourceId) -> Result<Vec<NodePoolVersions>, Failure> {
    let subscription = cluster.subscription().unwrap_or_default();
    let list = ListOf::<NodePool>::in_subscription(subscription).below(cluster.as_str());
    let mut versions = Vec::new();
    for stored in shared.documents.all(&list).await?.complete()? {
        if stored.value.service().deletion_timestamp.is_none() {
            versions.push(versions_of_node_pool(shared, &stored.value).await?);
        }
    }
    Ok(versions)
}

async fn versions_of_node_pool(shared: &Shared, node_pool: &NodePool) -> Result<NodePoolVersions, Failure> {
    let id = node_pool.id.child(SERVICE_PROVIDER_NODE_POOLS, DEFAULT_NAME);
    let stored = shared.documents.find::<ServiceProviderNodePool>(&id).await?;
    let active = stored.map(|stored| stored.value.status.node_pool_version.versions()).unwrap_or_default();
    let requested = node_pool.properties.version.id.as_deref().and_then(Release::parse);
    Ok(NodePoolVersions { name: node_pool.id.name().to_owned(), requested, active })
}
