//! Removes what is stored of a cluster or a node pool.

use aro_control::FencingToken;
use aro_control::saga::{Journal, Saga as _};
use aro_ocm::{ClusterId, NodePoolId};
use aro_store::{Batch, CollectionError, MAX_BATCH, Op, Page, Query, StoreError};

use super::create::CreateCluster;
use super::delete::DeleteCluster;
use crate::records::{CONTAINER, NodePoolRecord, Records, cluster_key, cluster_partition, node_pool_key};

/// Removes everything of a cluster; the cluster's own record goes last, so that a repetition finds it.
pub(super) async fn remove_cluster(
    records: &Records,
    journal: &dyn Journal,
    id: &ClusterId,
    token: Option<FencingToken>,
) -> Result<(), CollectionError> {
    let partition = cluster_partition(id);
    let cluster = cluster_key(id);
    let query = Query::partition(CONTAINER, partition.clone());
    loop {
        let found = records.store().query(&query, Page::first(MAX_BATCH)).await?;
        let deletions: Vec<Op> = found
            .items
            .iter()
            .filter(|document| document.key != cluster)
            .map(|document| Op::Delete(document.key.id.clone(), document.etag.clone()))
            .collect();
        if deletions.is_empty() {
            break;
        }
        let batch = deletions.into_iter().fold(Batch::new(CONTAINER, partition.clone()), Batch::with);
        records.store().write(batch).await?;
    }
    for saga in [CreateCluster::NAME, DeleteCluster::NAME] {
        let removed = journal.remove(id.as_str(), saga, token).await;
        removed.map_err(|error| CollectionError::Store(StoreError::Unavailable(Box::new(error))))?;
    }
    if let Some(found) = records.clusters.find(&cluster).await? {
        records
            .store()
            .write(records.clusters.batch(&partition).with(records.clusters.delete(&found)))
            .await?;
    }
    Ok(())
}

/// Removes a node pool with its upgrade policies.
pub(super) async fn remove_pool(
    records: &Records,
    cluster: &ClusterId,
    pool: &NodePoolId,
) -> Result<(), CollectionError> {
    let partition = cluster_partition(cluster);
    let Some(found) = records.pools.find(&node_pool_key(cluster, pool)).await? else { return Ok(()) };
    let policies = records.policies.all(&records.policies.in_partition(&partition)).await?;
    let mut batch = records.pools.batch(&partition).with(records.pools.delete(&found));
    for policy in policies.items.iter().filter(|policy| policy.value.pool.as_ref() == Some(pool)) {
        if batch.len() < MAX_BATCH {
            batch.push(records.policies.delete(policy));
        }
    }
    records.store().write(batch).await?;
    Ok(())
}

/// The node pools of a cluster.
pub(super) async fn pools_of(
    records: &Records,
    cluster: &ClusterId,
) -> Result<Vec<NodePoolRecord>, CollectionError> {
    let query = records.pools.in_partition(&cluster_partition(cluster));
    let pools = records.pools.all(&query).await?.complete()?;
    Ok(pools.into_iter().map(|pool| pool.value).collect())
}
