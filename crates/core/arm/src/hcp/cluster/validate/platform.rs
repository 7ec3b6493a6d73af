//! Where a cluster lives in Azure: groups, networks, and how they must relate.

use crate::hcp::cluster::{Cluster, Visibility};
use crate::hcp::openshift_version::{LINE_4_22, Line};
use crate::hcp::version::ApiVersion;
use crate::schema::pattern;
use crate::schema::problems::Problems;
use crate::{FieldError, FieldPath, ResourceId};

pattern!(
    RESOURCE_GROUP,
    r"^[\p{L}\p{N}_\-.()]{0,89}[\p{L}\p{N}_\-()]$",
    "must be a resource group name: at most 90 letters, digits, '_', '-', '.', '(' or ')', not ending in '.'"
);

pub fn check(cluster: &Cluster, api_version: ApiVersion, properties: &FieldPath, problems: &mut Problems) {
    let platform = &cluster.properties.platform;
    let path = properties.child("platform");
    let managed = platform.managed_resource_group.as_str();
    let at = path.child("managedResourceGroup");
    if !RESOURCE_GROUP.matches(managed) {
        problems.push(FieldError::invalid(&at, managed, RESOURCE_GROUP.why));
    }
    if let Some(group) = cluster.id.resource_group()
        && same_group(group, managed)
    {
        problems.push(FieldError::invalid(&at, managed, not_group(group)));
    }

    for (name, id) in [
        ("subnetId", &platform.subnet_id),
        ("vnetIntegrationSubnetId", &platform.vnet_integration_subnet_id),
        ("networkSecurityGroupId", &platform.network_security_group_id),
    ] {
        if let Some(id) = id {
            check_neighbour(cluster, id, &path.child(name), problems);
        }
    }
    if let (Some(subnet), Some(integration)) = (&platform.subnet_id, &platform.vnet_integration_subnet_id)
        && let (Some(network), Some(other)) = (subnet.parent(), integration.parent())
        && network != other
    {
        let why = format!("must be in the same virtual network as subnetId: {:?}", network.as_str());
        problems.push(FieldError::invalid(&path.child("vnetIntegrationSubnetId"), integration.as_str(), why));
    }
    if cluster.properties.api.visibility == Visibility::Private
        && platform.vnet_integration_subnet_id.is_none()
    {
        let why = if api_version == ApiVersion::V2024_06_10Preview {
            "needs vnetIntegrationSubnetId, which this api-version does not have"
        } else {
            "needs platform.vnetIntegrationSubnetId"
        };
        problems.push(FieldError::invalid(&properties.child("api").child("visibility"), "Private", why));
    }

    if let Some(identity) = &platform.container_registry.managed_identity {
        let at = path.child("containerRegistry").child("managedIdentity");
        check_not_managed(managed, identity, &at, problems);
        if Line::parse(&cluster.properties.version.id).is_some_and(|line| line < LINE_4_22) {
            problems.push(FieldError::forbidden(&at, format!("needs OpenShift {LINE_4_22} or later")));
        }
    }
}

/// A resource of the customer that a cluster uses: in its subscription, and not in the group the service owns.
pub fn check_neighbour(cluster: &Cluster, id: &ResourceId, at: &FieldPath, problems: &mut Problems) {
    if !cluster.id.same_subscription(id) {
        let subscription = cluster.id.subscription().unwrap_or_default();
        let why = format!("must be in the same Azure subscription: {subscription:?}");
        problems.push(FieldError::invalid(at, id.as_str(), why));
    }
    check_not_managed(&cluster.properties.platform.managed_resource_group, id, at, problems);
}

fn check_not_managed(managed: &str, id: &ResourceId, at: &FieldPath, problems: &mut Problems) {
    if id.resource_group().is_some_and(|group| same_group(group, managed)) {
        problems.push(FieldError::invalid(at, id.as_str(), not_group(managed)));
    }
}

fn not_group(group: &str) -> String {
    format!("must not be the same resource group name: {group:?}")
}

fn same_group(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}
