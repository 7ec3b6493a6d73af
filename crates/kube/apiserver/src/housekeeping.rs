//! What a cluster does by itself after a write: collecting what lost its owners, furnishing and emptying namespaces,
//! serving new definitions, aggregating roles, signing certificates.
//!
//! One queue and a few workers serve all clusters of the process. Every chore is caused by an event, and is safe to do
//! twice; a cluster in which nothing happens has nothing here. A chore that fails is tried again later.

mod aggregate;
mod definition;
mod furnish;
mod namespace;
pub mod owners;
mod queue;

use std::sync::Arc;

use aro_kube_apimachinery::status::Status;
use serde_json::Value;

pub use namespace::Waiting;
pub use queue::{Chore, Chores, start};

use crate::cluster::{Cluster, DEFINITIONS};
use crate::storage::{Change, Draft, Event, EventKind, Expect, Shelf, Stored, WriteFailed};
use crate::types::is_established;

pub(crate) const NAMESPACES: &str = "namespaces";
pub(crate) const SIGNING_REQUESTS: &str = "certificatesigningrequests.certificates.k8s.io";
pub(crate) const CLUSTER_ROLES: &str = "clusterroles.rbac.authorization.k8s.io";

/// Turns an event into chores. Runs on the log's thread: it looks, and does nothing else.
pub fn observe(cluster: &Arc<Cluster>, shelf: &Arc<Shelf>, event: &Event) {
    let chores = &cluster.chores;
    let name = || Box::<str>::from(event.object.name());
    owners::observe(cluster, shelf, event);
    match &*shelf.name {
        DEFINITIONS => chores.add(cluster, Chore::Definition(name())),
        NAMESPACES => chores.add(cluster, Chore::Namespace(name())),
        SIGNING_REQUESTS if event.kind != EventKind::Deleted => {
            chores.add(cluster, Chore::SigningRequest(name()));
        }
        CLUSTER_ROLES => chores.add(cluster, Chore::AggregateRoles),
        _ => {}
    }
    if furnish::concerns(shelf, event) {
        chores.add(cluster, Chore::Namespace(event.object.namespace().into()));
    }
    if event.kind == EventKind::Deleted {
        cluster.waiting.gone(cluster, shelf, event.object.namespace());
    } else if mentions_deletion(&event.object) {
        chores.add(cluster, Chore::Terminating { shelf: shelf.clone(), key: event.object.key.clone() });
    }
}

/// Takes up what an earlier process left undone. Nobody writes yet.
pub fn resume(cluster: &Arc<Cluster>) {
    owners::load(cluster);
    let chores = &cluster.chores;
    for shelf in cluster.space.shelves() {
        for object in shelf.all() {
            let name = || Box::<str>::from(object.name());
            match &*shelf.name {
                DEFINITIONS if mentions_deletion(&object) || !is_established(&object.value()) => {
                    chores.add(cluster, Chore::Definition(name()));
                }
                NAMESPACES => chores.add(cluster, Chore::Namespace(name())),
                SIGNING_REQUESTS => chores.add(cluster, Chore::SigningRequest(name())),
                CLUSTER_ROLES => chores.add(cluster, Chore::AggregateRoles),
                _ => {}
            }
            if mentions_deletion(&object) {
                chores.add(cluster, Chore::Terminating { shelf: shelf.clone(), key: object.key.clone() });
            }
        }
    }
}

/// Whether an object may be marked for deletion; cheaper than reading it.
fn mentions_deletion(object: &Stored) -> bool {
    memchr::memmem::find(object.json(), b"\"deletionTimestamp\":\"").is_some()
}

/// Does one chore.
pub(crate) async fn perform(cluster: &Arc<Cluster>, chore: &Chore) -> Result<(), Status> {
    match chore {
        Chore::Definition(name) => definition::settle(cluster, name).await,
        Chore::Namespace(name) => namespace::settle(cluster, name).await,
        Chore::Owned { shelf, key } => owners::check(cluster, shelf, key).await,
        Chore::OwnerGone(stored) => owners::owner_gone(cluster, stored).await,
        Chore::Terminating { shelf, key } => owners::terminate(cluster, shelf, key).await,
        Chore::SigningRequest(name) => crate::identity::signing::settle(cluster, name).await,
        Chore::AggregateRoles => aggregate::settle(cluster).await,
    }
}

/// Changes one object, looking again when somebody was faster. `decide` returns what it should be, or `None` to leave it.
/// An object that is marked for deletion and has nothing left to wait for goes away.
pub(crate) async fn modify(
    cluster: &Arc<Cluster>,
    shelf: &Arc<Shelf>,
    key: &str,
    mut decide: impl FnMut(&Value) -> Option<Value>,
) -> Result<(), Status> {
    loop {
        let Some(stored) = cluster.space.latest(shelf, key) else { return Ok(()) };
        let live = stored.value();
        let Some(new) = decide(&live).filter(|new| *new != live) else { return Ok(()) };
        let change = if crate::rest::is_gone(&new) { Change::Delete } else { Change::Put(Draft::of(&new)) };
        match cluster.space.commit(shelf, key, Expect::Version(stored.version), change).await {
            Ok(_) | Err(WriteFailed::Changed(None)) => return Ok(()),
            Err(WriteFailed::Changed(Some(_))) => {}
            Err(WriteFailed::Unavailable) => return Err(Status::unavailable("the storage takes no writes")),
        }
    }
}
