//! Writes what the management clusters report into the records.

use std::sync::Arc;

use aro_base::chain;
use aro_control::Queue;
use aro_decisions::Outcome;
use aro_ocm::{ClusterId, NodePoolId, Time, names};
use aro_runtime::Fault;
use async_trait::async_trait;

use super::clusters::ClusterKey;
use super::environment::Environment;
use super::pools::PoolKey;
use super::state::{observe_cluster, observe_pool};
use crate::maestro::{Received, StatusHandler};
use crate::records::{cluster_key, node_pool_key};

/// Takes statuses for the records.
pub(super) struct Observer {
    pub(super) environment: Arc<Environment>,
    pub(super) clusters: Queue<ClusterKey>,
    pub(super) pools: Queue<PoolKey>,
}

#[async_trait]
impl StatusHandler for Observer {
    async fn handle(&self, received: &Received) -> Result<(), Fault> {
        let Ok(id) = ClusterId::parse(&received.cluster) else {
            tracing::debug!(bundle = received.bundle, "status of a bundle that names no cluster");
            return Ok(());
        };
        if !received.problems.is_empty() {
            let on = received.problems.join("; ");
            tracing::debug!(cluster.id = %id, object = received.object, on, "objects are not applied yet");
        }
        if received.deleted {
            if let Ok(bundle) = received.bundle.parse() {
                self.environment.publisher.forget(bundle);
            }
            self.environment.decide(&id, "bundle", Outcome::Done, format!("{} is gone", received.object));
            self.wake(&id, &received.object);
            return Ok(());
        }
        if received.object == names::cluster_work(&id) {
            return self.cluster(&id, received).await;
        }
        match pool_of(&id, &received.object) {
            Some(pool) => self.pool(&id, &pool, received).await,
            None => Ok(()),
        }
    }
}

impl Observer {
    fn wake(&self, id: &ClusterId, object: &str) {
        self.environment.unpark(id);
        self.clusters.add(ClusterKey(id.clone()));
        if let Some(pool) = pool_of(id, object) {
            self.pools.add(PoolKey { cluster: id.clone(), pool });
        }
    }

    async fn cluster(&self, id: &ClusterId, received: &Received) -> Result<(), Fault> {
        let now = Time(self.environment.clock.now());
        let (mut before, mut after) = (None, None);
        let key = cluster_key(id);
        let update = self.environment.records.clusters.update(&key, |record| {
            before = Some(record.state());
            let changed = observe_cluster(record, received, now);
            after = Some(record.state());
            changed
        });
        let stored = update.await.map_err(|error| unwritten(id, error))?;
        if let (Some(before), Some(after)) = (before, after)
            && before != after
            && stored.is_some()
        {
            let detail = format!("{before} → {after}");
            self.environment.decide(id, "state", Outcome::Done, detail);
        }
        Ok(())
    }

    async fn pool(&self, id: &ClusterId, pool: &NodePoolId, received: &Received) -> Result<(), Fault> {
        let now = Time(self.environment.clock.now());
        let (mut before, mut after) = (None, None);
        let key = node_pool_key(id, pool);
        let update = self.environment.records.pools.update(&key, |record| {
            before = Some(record.state());
            let changed = observe_pool(record, received, now);
            after = Some(record.state());
            changed
        });
        let stored = update.await.map_err(|error| unwritten(id, error))?;
        if let (Some(before), Some(after), Some(stored)) = (before, after, stored)
            && before != after
        {
            let detail = format!("{before} → {after}");
            self.environment.decide_pool(&stored.value, "state", Outcome::Done, detail);
        }
        Ok(())
    }
}

fn unwritten(id: &ClusterId, error: aro_store::CollectionError) -> Fault {
    tracing::warn!(cluster.id = %id, error = %chain(&error), "status of a cluster not stored");
    Fault::caused(format!("store the status of cluster {id}"), error)
}

/// The node pool of an object, if it is one's.
fn pool_of(id: &ClusterId, object: &str) -> Option<NodePoolId> {
    let pool = object.strip_prefix(id.as_str())?.strip_prefix('-')?;
    NodePoolId::parse(pool).ok()
}
