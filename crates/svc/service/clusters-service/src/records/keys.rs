//! The names of documents.

use aro_ocm::{ClusterId, CredentialId, ExternalAuthId, NodePoolId, ShardId};
use aro_store::{DocId, DocKey, Names, PartitionKey};

use super::{AttributeRecord, CONTAINER, ClusterRecord, SHARDS};

/// The document of a cluster in its partition.
const CLUSTER: &str = "cluster";

/// The partition of everything of a cluster.
pub fn cluster_partition(id: &ClusterId) -> PartitionKey {
    PartitionKey::new(id.as_str())
}

fn key(partition: PartitionKey, id: DocId) -> DocKey {
    DocKey { container: CONTAINER, partition, id }
}

/// The document of a cluster.
pub fn cluster_key(id: &ClusterId) -> DocKey {
    key(cluster_partition(id), DocId::new(CLUSTER))
}

/// The prefix of the resource ids of clusters.
pub(crate) const CLUSTERS: &str = "/subscriptions/";

/// The prefix of the resource ids of clusters with these attributes. A slash would reach into the next segment.
pub(crate) fn clusters_prefix(subscription: &str, group: Option<&str>, name: Option<&str>) -> String {
    let segment = |text: &str| text.replace('/', "|");
    let mut prefix = format!("{CLUSTERS}{}/", segment(subscription));
    for part in [group, name] {
        let Some(part) = part else { break };
        prefix = format!("{prefix}{}/", segment(part));
    }
    prefix
}

/// What names the document of a cluster: its resource id begins with subscription, resource group and name.
pub fn cluster_names(record: &ClusterRecord) -> Names {
    let azure = record.cluster.azure.as_ref();
    let part =
        |text: Option<&String>| text.filter(|text| !text.is_empty()).map_or("-", String::as_str).to_owned();
    let subscription = part(azure.and_then(|azure| azure.subscription_id.as_ref()));
    let group = part(azure.and_then(|azure| azure.resource_group_name.as_ref()));
    let name = part(azure.and_then(|azure| azure.resource_name.as_ref()));
    let prefix = clusters_prefix(&subscription, Some(&group), Some(&name));
    Names { id: DocId::new(CLUSTER), resource_id: format!("{prefix}{}", record.id) }
}

/// What names a document of a cluster's child.
pub(super) fn names_in(cluster: &ClusterId, kind: &str, path: &str, id: DocId) -> Names {
    Names { id, resource_id: format!("/clusters/{cluster}/{kind}/{path}") }
}

pub(super) fn node_pool_id(id: &NodePoolId) -> DocId {
    DocId::new(&format!("pool.{id}"))
}

pub(super) fn external_auth_id(id: &ExternalAuthId) -> DocId {
    DocId::new(&format!("auth.{id}"))
}

pub(super) fn policy_id(id: &str) -> DocId {
    DocId::new(&format!("policy.{id}"))
}

pub(super) fn check_id(id: &str) -> DocId {
    DocId::new(&format!("check.{id}"))
}

pub(super) fn credential_id(id: &CredentialId) -> DocId {
    DocId::new(&format!("credential.{id}"))
}

/// The document of a node pool.
pub fn node_pool_key(cluster: &ClusterId, id: &NodePoolId) -> DocKey {
    key(cluster_partition(cluster), node_pool_id(id))
}

/// The document of an external auth.
pub fn external_auth_key(cluster: &ClusterId, id: &ExternalAuthId) -> DocKey {
    key(cluster_partition(cluster), external_auth_id(id))
}

/// The document of an upgrade policy.
pub fn policy_key(cluster: &ClusterId, id: &str) -> DocKey {
    key(cluster_partition(cluster), policy_id(id))
}

/// The document of an inflight check.
pub fn check_key(cluster: &ClusterId, id: &str) -> DocKey {
    key(cluster_partition(cluster), check_id(id))
}

/// The document of a break-glass credential.
pub fn credential_key(cluster: &ClusterId, id: &CredentialId) -> DocKey {
    key(cluster_partition(cluster), credential_id(id))
}

/// What names the document of an attribute.
pub fn attribute_names(record: &AttributeRecord) -> Names {
    let prefix = record.attribute.prefix(&record.value);
    Names {
        id: DocId::new(&format!("by.{}", record.attribute.field())),
        resource_id: format!("{prefix}{}", record.cluster_id),
    }
}

/// The prefix of the resource ids of shards and slots.
pub(crate) const SHARD_PREFIX: &str = "/provision_shards/";

pub(super) fn names_of_shard(id: ShardId) -> Names {
    Names { id: DocId::new(&format!("shard.{id}")), resource_id: format!("{SHARD_PREFIX}{id}") }
}

pub(super) fn names_of_slots(id: ShardId, part: usize) -> Names {
    Names {
        id: DocId::new(&format!("slots.{id}.{part}")),
        resource_id: format!("{SHARD_PREFIX}{id}/slots/{part}"),
    }
}

/// The document of a shard.
pub fn shard_key(id: ShardId) -> DocKey {
    key(PartitionKey::new(SHARDS), names_of_shard(id).id)
}

/// The document of a part of a shard's slots.
pub fn slots_key(id: ShardId, part: usize) -> DocKey {
    key(PartitionKey::new(SHARDS), names_of_slots(id, part).id)
}
