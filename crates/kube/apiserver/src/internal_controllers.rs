//! The controllers inside the API server: they collect garbage, fill and empty namespaces, serve new definitions, aggregate
//! roles and sign certificates.
//!
//! What it is not: the workload controllers, which use a cluster through its API (`crates/kube/controllers`).
//!
//! One queue serves all clusters of the process. Work is caused by events and is idempotent; an idle cluster has no entry,
//! no task and no timer here.

mod aggregate;
mod definition;
mod field_owner;
mod namespace;
mod namespace_defaults;
pub mod owners;
mod work;

use std::sync::Arc;

use aro_kube_apimachinery::status::Status;
use serde_json::Value;

pub use namespace::DeletionWaiters;
pub use work::{WorkItem, WorkQueue, start};

use crate::cluster::{Cluster, DEFINITIONS};
use crate::storage::{Change, Draft, Event, EventKind, Expect, Stored, WatchCache, WriteFailed};
use crate::types::is_established;

pub(crate) const NAMESPACES: &str = "namespaces";
pub(crate) const SIGNING_REQUESTS: &str = "certificatesigningrequests.certificates.k8s.io";
pub(crate) const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";

/// Enqueues the work that an event causes. Runs on the log's thread and must not block.
pub fn observe(cluster: &Arc<Cluster>, watch_cache: &Arc<WatchCache>, event: &Event) {
    let work = &cluster.work;
    let name = || Box::<str>::from(event.object.name());
    owners::observe(cluster, watch_cache, event);
    match &*watch_cache.name {
        DEFINITIONS => work.add(cluster, WorkItem::Definition(name())),
        NAMESPACES => work.add(cluster, WorkItem::Namespace(name())),
        SIGNING_REQUESTS if event.kind != EventKind::Deleted => {
            work.add(cluster, WorkItem::SigningRequest(name()));
        }
        CLUSTER_ROLES => work.add(cluster, WorkItem::AggregateRoles),
        _ => {}
    }
    if namespace_defaults::concerns(watch_cache, event) {
        work.add(cluster, WorkItem::Namespace(event.object.namespace().into()));
    }
    if event.kind == EventKind::Deleted {
        cluster.deletion_waiters.notify(cluster, watch_cache, event.object.namespace());
    } else if mentions_deletion(&event.object) {
        work.add(
            cluster,
            WorkItem::Terminating { watch_cache: watch_cache.clone(), key: event.object.key.clone() },
        );
    }
}

/// Enqueues the work that an earlier process left. Runs before the first write.
pub fn enqueue_existing(cluster: &Arc<Cluster>) {
    owners::load(cluster);
    let work = &cluster.work;
    for watch_cache in cluster.store.watch_caches() {
        for object in watch_cache.all() {
            let name = || Box::<str>::from(object.name());
            match &*watch_cache.name {
                DEFINITIONS if mentions_deletion(&object) || !is_established(&object.value()) => {
                    work.add(cluster, WorkItem::Definition(name()));
                }
                NAMESPACES => work.add(cluster, WorkItem::Namespace(name())),
                SIGNING_REQUESTS => work.add(cluster, WorkItem::SigningRequest(name())),
                CLUSTER_ROLES => work.add(cluster, WorkItem::AggregateRoles),
                _ => {}
            }
            if mentions_deletion(&object) {
                work.add(
                    cluster,
                    WorkItem::Terminating { watch_cache: watch_cache.clone(), key: object.key.clone() },
                );
            }
        }
    }
}

/// Whether an object may be marked for deletion; cheaper than reading it.
fn mentions_deletion(object: &Stored) -> bool {
    memchr::memmem::find(object.json(), b"\"deletionTimestamp\":\"").is_some()
}

/// One pass over one work item.
pub(crate) async fn reconcile(cluster: &Arc<Cluster>, item: &WorkItem) -> Result<(), Status> {
    match item {
        WorkItem::Definition(name) => definition::reconcile(cluster, name).await,
        WorkItem::Namespace(name) => namespace::reconcile(cluster, name).await,
        WorkItem::Owned { watch_cache, key } => owners::check(cluster, watch_cache, key).await,
        WorkItem::OwnerGone(stored) => owners::owner_gone(cluster, stored).await,
        WorkItem::Terminating { watch_cache, key } => owners::terminate(cluster, watch_cache, key).await,
        WorkItem::SigningRequest(name) => crate::identity::signing::settle(cluster, name).await,
        WorkItem::AggregateRoles => aggregate::reconcile(cluster).await,
    }
}

/// Changes one object, reading it again after a conflict. `decide` returns the desired object, or `None` to leave it as it is.
/// An object that is marked for deletion and has no finalizer left is deleted.
pub(crate) async fn modify(
    cluster: &Arc<Cluster>,
    watch_cache: &Arc<WatchCache>,
    key: &str,
    mut decide: impl FnMut(&Value) -> Option<Value>,
) -> Result<(), Status> {
    loop {
        let Some(stored) = cluster.store.latest(watch_cache, key) else { return Ok(()) };
        let live = stored.value();
        let Some(new) = decide(&live).filter(|new| *new != live) else { return Ok(()) };
        let change = if crate::rest::is_gone(&new) { Change::Delete } else { Change::Put(Draft::of(&new)) };
        match cluster.store.commit(watch_cache, key, Expect::Version(stored.version), change).await {
            Ok(_) | Err(WriteFailed::Changed(None)) => return Ok(()),
            Err(WriteFailed::Changed(Some(_))) => {}
            Err(WriteFailed::Unavailable) => return Err(Status::unavailable("the storage takes no writes")),
        }
    }
}
