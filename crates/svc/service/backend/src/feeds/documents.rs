//! The change feed of the resource provider's documents, followed once for all controllers.
//!
//! A replica that starts enqueues every resource once, so positions need not be stored: whatever happened while no replica ran
//! is found by looking. A deleted child enqueues its cluster, whose deletion may wait for it.

use std::sync::Arc;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::operation::Operation;
use aro_base::chain;
use aro_net::Backoff;
use aro_rp_store::{OutboxEntry, RESOURCES, RpDocument};
use aro_runtime::{Component, Fault, Scope, TaskKind};
use aro_store::{Change, Document, Follower, Page, Query, StoreError};

use crate::act::is_kind;
use crate::key::{Key, cluster_of};
use crate::shared::Shared;

/// Documents in one page of the list.
const PAGE: usize = 200;
/// Delays while the store is not available.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));

/// Starts to follow. The role is ready once every document was enqueued.
pub fn start(shared: &Arc<Shared>, ready: Component, scope: &Scope) {
    let shared = shared.clone();
    scope.spawn(TaskKind::Helper, "follow-documents", async move {
        run(&shared, &ready).await;
        Ok::<_, Fault>(())
    });
}

async fn run(shared: &Shared, ready: &Component) {
    let mut attempts = BACKOFF.attempts();
    loop {
        let error = match list(shared).await {
            Ok(mut follower) => {
                attempts.reset();
                ready.ready();
                follow(shared, &mut follower).await
            }
            Err(error) => error,
        };
        if !matches!(error, StoreError::CursorExpired) {
            tracing::warn!(error = %chain(&error), "documents not listed");
            attempts.wait().await;
        }
    }
}

/// Enqueues every live document. Returns a follower of all changes since.
async fn list(shared: &Shared) -> Result<Follower, StoreError> {
    let store = shared.documents.store();
    let cursor = store.latest_cursor(RESOURCES).await?;
    let follower = Follower::new(store.clone(), RESOURCES, Some(cursor));
    enqueue_all(shared).await?;
    Ok(follower)
}

/// Enqueues every resource, and every operation that may have left an outbox entry.
pub async fn enqueue_all(shared: &Shared) -> Result<(), StoreError> {
    let types = [
        Cluster::KIND.resource_type(),
        NodePool::KIND.resource_type(),
        ExternalAuth::KIND.resource_type(),
        OutboxEntry::KIND.resource_type(),
    ];
    for resource_type in types {
        let query = Query::all(RESOURCES).of_type(resource_type);
        let mut page = Page::first(PAGE);
        loop {
            let paged = shared.documents.store().query(&query, page).await?;
            paged.items.iter().for_each(|document| upserted(shared, document));
            match paged.next {
                Some(next) => page = Page { size: PAGE, after: Some(next) },
                None => break,
            }
        }
    }
    Ok(())
}

/// Enqueues changes until the cursor expires.
async fn follow(shared: &Shared, follower: &mut Follower) -> StoreError {
    let mut attempts = BACKOFF.attempts();
    loop {
        match follower.next().await {
            Ok(page) => {
                attempts.reset();
                for change in &page.changes {
                    match change {
                        Change::Upsert(document) => upserted(shared, document),
                        Change::Delete { resource_type, resource_id, .. } => {
                            deleted(shared, resource_type, resource_id);
                        }
                    }
                }
            }
            Err(error @ StoreError::CursorExpired) => return error,
            Err(error) => {
                tracing::debug!(error = %chain(&error), "change feed not read");
                attempts.wait().await;
            }
        }
    }
}

fn upserted(shared: &Shared, document: &Document) {
    let (queues, kind) = (&shared.queues, document.resource_type.as_str());
    if is_kind::<Cluster>(kind) {
        match shared.documents.of::<Cluster>().decode(document.clone()) {
            Ok(cluster) => {
                shared.index.insert(&cluster.value);
                queues.clusters.add(Key(cluster.value.id));
            }
            Err(error) => {
                tracing::error!(document = %document.key, error = %chain(&error), "cluster not readable");
            }
        }
    } else if is_kind::<NodePool>(kind) {
        queues.node_pools.add_id(&document.resource_id);
    } else if is_kind::<ExternalAuth>(kind) {
        queues.external_auths.add_id(&document.resource_id);
    } else if has_type::<OutboxEntry>(kind) {
        if let Ok(entry) = shared.documents.of::<OutboxEntry>().decode(document.clone()) {
            queues.ended.add(entry.value.operation_id);
        }
    } else if has_type::<Operation>(kind)
        && let Ok(operation) = shared.documents.of::<Operation>().decode(document.clone())
        && operation.value.status.is_terminal()
    {
        queues.ended.add(operation.value.operation_id);
    }
}

fn deleted(shared: &Shared, kind: &str, id: &str) {
    let Ok(id) = ResourceId::parse(id) else { return };
    if is_kind::<Cluster>(kind) {
        shared.index.remove(&id);
    } else if is_kind::<NodePool>(kind) || is_kind::<ExternalAuth>(kind) {
        shared.queues.clusters.add(Key(cluster_of(&id)));
    }
}

fn has_type<T: RpDocument>(resource_type: &str) -> bool {
    T::KIND.resource_type().eq_ignore_ascii_case(resource_type)
}

/// Enqueues a resource by the text of its id.
trait AddId {
    fn add_id(&self, id: &str);
}

impl AddId for aro_control::Queue<Key> {
    fn add_id(&self, id: &str) {
        match ResourceId::parse(id) {
            Ok(id) => self.add(Key(id)),
            Err(error) => tracing::error!(id, %error, "document has no resource id"),
        }
    }
}
