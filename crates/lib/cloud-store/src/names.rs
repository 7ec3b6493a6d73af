//! Names of documents.

use aro_arm::ResourceId;
use aro_store::{Container, DocId, DocKey, PartitionKey};

/// Every resource of the local cloud.
pub const CLOUD: Container = Container::new("Cloud");

/// The partition of what lies in no subscription: built-in roles, tenants' own resources.
pub const TENANT_SCOPE: &str = "tenant";

/// The partition of a subscription's resources, or of the tenant's where there is none.
pub fn partition_of(subscription: Option<&str>) -> PartitionKey {
    PartitionKey::new(subscription.unwrap_or(TENANT_SCOPE))
}

/// The document of a resource.
pub fn key_of(id: &ResourceId) -> DocKey {
    DocKey {
        container: CLOUD,
        partition: partition_of(id.subscription()),
        id: DocId::new(&id.to_lower().replace('/', "|")),
    }
}
