//! The key of a resource in the controllers' queues.

use std::fmt;

use aro_arm::ResourceId;
use aro_arm::hcp::{CLUSTER_TYPE, NAMESPACE};

/// A cluster, node pool or external auth by its id. Printed it is the id of its cluster, which the shard is derived from: one
/// replica works on a cluster and everything in it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key(pub ResourceId);

impl Key {
    /// The cluster it is or is in.
    pub fn cluster(&self) -> ResourceId {
        cluster_of(&self.0)
    }
}

/// The cluster that a resource is or is in.
pub fn cluster_of(id: &ResourceId) -> ResourceId {
    id.parent().unwrap_or_else(|| id.clone())
}

/// The resource that a cluster names as its own.
pub fn owner_of(found: &aro_ocm::Cluster) -> Option<ResourceId> {
    let azure = found.azure.as_ref()?;
    let kind = CLUSTER_TYPE.rsplit('/').next().unwrap_or_default();
    Some(ResourceId::in_group(
        azure.subscription_id.as_deref()?,
        azure.resource_group_name.as_deref()?,
        NAMESPACE,
        &[(kind, azure.resource_name.as_deref()?)],
    ))
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cluster().to_lower())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_in_the_shard_of_its_cluster_whatever_its_case() {
        let cluster =
            "/subscriptions/S/resourceGroups/G/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/C";
        let key = |text: &str| Key(ResourceId::parse(text).unwrap());
        let child = key(&format!("{cluster}/nodePools/np"));
        assert_eq!(child.to_string(), key(cluster).to_string());
        assert_eq!(child.to_string(), key(&cluster.to_lowercase()).to_string());
        assert_eq!(key(cluster), key(&cluster.to_lowercase()));
    }
}
