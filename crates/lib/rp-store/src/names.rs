//! Keys of documents: container, partition and id as functions of the resource id.

use aro_arm::ResourceId;
use aro_arm::hcp::NAMESPACE;
use aro_arm::hcp::operation::STATUSES;
use aro_store::{Container, DocId, DocKey, PartitionKey};
use uuid::Uuid;

/// Customer-facing resources and the records beside them; partitioned by subscription.
pub const RESOURCES: Container = Container::new("Resources");

/// The namespace of document ids; the same as the original's, so that an existing store can be adopted.
const DOCUMENT_IDS: Uuid = Uuid::from_u128(0xbf1e_e0a1_0147_41ed_a083_d3cb_bf7b_ea99);

/// The key of the document that a resource id names.
pub fn key_of(id: &ResourceId) -> DocKey {
    DocKey { container: RESOURCES, partition: partition_of(id), id: doc_id_of(id) }
}

/// The partition a resource id belongs to: its subscription, or the shared one for what has none.
pub(crate) fn partition_of(id: &ResourceId) -> PartitionKey {
    PartitionKey::new(id.subscription().unwrap_or("-"))
}

/// The document id of a resource id.
pub(crate) fn doc_id_of(id: &ResourceId) -> DocId {
    DocId::new(&Uuid::new_v5(&DOCUMENT_IDS, id.to_lower().as_bytes()).to_string())
}

/// The resource id an operation is stored under: its status id without the location.
pub fn operation_document_id(subscription: &str, operation: &str) -> ResourceId {
    ResourceId::in_subscription(subscription, NAMESPACE, &[(STATUSES, operation)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_document_does_not_depend_on_the_case_of_its_id() {
        let id =
            "/subscriptions/ABC/resourceGroups/G/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/C";
        let a = key_of(&ResourceId::parse(id).unwrap());
        let b = key_of(&ResourceId::parse(&id.to_lowercase()).unwrap());
        assert_eq!(a, b);
        assert_eq!(a.partition.as_str(), "abc");
    }
}
