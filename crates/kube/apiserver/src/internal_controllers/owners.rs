//! Garbage collection: objects whose owners are gone, and owners that wait for their dependents.
//!
//! An index from owner to owned is kept up to date by events, so that a deletion finds what it concerns at once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::Status;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{WorkItem, modify};
use crate::cluster::Cluster;
use crate::rest::{DeleteOptions, FOREGROUND, ORPHAN, Policy, delete_object};
use crate::storage::{Event, EventKind, Stored, WatchCache};
use crate::types::Served;

/// Where the objects of one owner are.
type Owned = HashSet<(Place, Arc<str>)>;

/// The index from owner to dependents.
#[derive(Debug, Default)]
pub struct Owners {
    owned: Mutex<HashMap<Box<str>, Owned>>,
}

/// A watch cache that can be part of a key.
#[derive(Debug)]
pub struct Place(pub Arc<WatchCache>);

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Place {}

impl std::hash::Hash for Place {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl Owners {
    fn replace(
        &self,
        watch_cache: &Arc<WatchCache>,
        key: &Arc<str>,
        before: &[Box<str>],
        after: &[Box<str>],
    ) {
        if before.is_empty() && after.is_empty() {
            return;
        }
        let mut owned = self.owned.lock();
        let entry = || (Place(watch_cache.clone()), key.clone());
        for uid in before.iter().filter(|uid| !after.contains(uid)) {
            if let Some(objects) = owned.get_mut(uid) {
                objects.remove(&entry());
                if objects.is_empty() {
                    owned.remove(uid);
                }
            }
        }
        for uid in after {
            owned.entry(uid.clone()).or_default().insert(entry());
        }
    }

    fn of(&self, uid: &str) -> Vec<(Arc<WatchCache>, Arc<str>)> {
        let owned = self.owned.lock();
        let objects = owned.get(uid).into_iter().flatten();
        objects.map(|(place, key)| (place.0.clone(), key.clone())).collect()
    }

    fn is_empty(&self) -> bool {
        self.owned.lock().is_empty()
    }
}

/// Reads the index anew, at a start.
pub(super) fn load(cluster: &Arc<Cluster>) {
    for watch_cache in cluster.store.watch_caches() {
        for object in watch_cache.all() {
            if !object.owners.is_empty() {
                cluster.owners.replace(&watch_cache, &object.key, &[], &object.owners);
                // An owner may have been deleted by a process that ended before it enqueued this.
                cluster.work.add(
                    cluster,
                    WorkItem::Owned { watch_cache: watch_cache.clone(), key: object.key.clone() },
                );
            }
        }
    }
}

pub(super) fn observe(cluster: &Arc<Cluster>, watch_cache: &Arc<WatchCache>, event: &Event) {
    let none: &[Box<str>] = &[];
    let before = event.previous.as_ref().map_or(none, |previous| &previous.owners);
    let after = if event.kind == EventKind::Deleted { none } else { &event.object.owners };
    let key = &event.object.key;
    cluster.owners.replace(watch_cache, key, before, after);
    if !after.is_empty() && before != after {
        cluster.work.add(cluster, WorkItem::Owned { watch_cache: watch_cache.clone(), key: key.clone() });
    }
    if event.kind == EventKind::Deleted && !(cluster.owners.is_empty() && before.is_empty()) {
        cluster.work.add(cluster, WorkItem::OwnerGone(event.object.clone()));
    }
}

/// An object was deleted: checks its dependents, and its owners, which may have waited for it.
pub(super) async fn owner_gone(cluster: &Arc<Cluster>, gone: &Stored) -> Result<(), Status> {
    let object = gone.value();
    for (watch_cache, key) in cluster.owners.of(meta::uid(&object)) {
        check(cluster, &watch_cache, &key).await?;
    }
    for owner in meta::owner_references(&object) {
        if let Some((served, key)) = find(cluster, owner, meta::namespace(&object)) {
            terminate(cluster, &cluster.store.watch_cache(&served.watch_cache), &key).await?;
        }
    }
    Ok(())
}

/// Where an owner reference points to. `None`: to nothing we serve.
fn find(cluster: &Cluster, owner: &Value, namespace: &str) -> Option<(Arc<Served>, String)> {
    let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
    let served = cluster.types().of_kind(text("apiVersion"), text("kind"))?.clone();
    let name = text("name");
    let key = if served.resource.namespaced { format!("{namespace}/{name}") } else { name.to_owned() };
    Some((served, key))
}

/// What is known about an owner.
enum OwnerState {
    Alive,
    /// Marked for deletion, and waiting for what it owns.
    WaitsForOwned,
    Gone,
    /// Of a type that is not served: it may come back.
    Unknown,
}

/// The members that decide about ownership, without the rest: most of an object is something else.
fn head(stored: &Stored) -> Value {
    #[derive(serde::Deserialize)]
    struct Head {
        metadata: Metadata,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        name: Option<Value>,
        namespace: Option<Value>,
        uid: Option<Value>,
        deletion_timestamp: Option<Value>,
        finalizers: Option<Value>,
        owner_references: Option<Value>,
    }
    let Ok(Head { metadata }) = serde_json::from_slice(stored.json()) else { return stored.value() };
    let Metadata { name, namespace, uid, deletion_timestamp, finalizers, owner_references } = metadata;
    let members = [
        ("name", name),
        ("namespace", namespace),
        ("uid", uid),
        ("deletionTimestamp", deletion_timestamp),
        ("finalizers", finalizers),
        ("ownerReferences", owner_references),
    ];
    let members = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    serde_json::json!({"metadata": members.collect::<serde_json::Map<_, _>>()})
}

fn state_of(cluster: &Cluster, owner: &Value, namespace: &str) -> OwnerState {
    let Some((served, key)) = find(cluster, owner, namespace) else { return OwnerState::Unknown };
    let watch_cache = cluster.store.watch_cache(&served.watch_cache);
    let Some(found) = cluster.store.latest(&watch_cache, &key) else { return OwnerState::Gone };
    let found = head(&found);
    if Some(meta::uid(&found)) != owner.get("uid").and_then(Value::as_str) {
        return OwnerState::Gone;
    }
    let waits =
        meta::deletion_timestamp(&found).is_some() && meta::finalizers(&found).any(|name| name == FOREGROUND);
    if waits { OwnerState::WaitsForOwned } else { OwnerState::Alive }
}

/// Deletes an object all of whose owners are gone; forgets owners that are gone when others are left.
pub(super) async fn check(
    cluster: &Arc<Cluster>,
    watch_cache: &Arc<WatchCache>,
    key: &str,
) -> Result<(), Status> {
    let Some(stored) = cluster.store.latest(watch_cache, key) else { return Ok(()) };
    let object = head(&stored);
    let owners = meta::owner_references(&object);
    if owners.is_empty() {
        return Ok(());
    }
    let namespace = meta::namespace(&object);
    let mut alive = false;
    let mut waited_for = false;
    let mut gone: Vec<&str> = Vec::new();
    for owner in owners {
        match state_of(cluster, owner, namespace) {
            OwnerState::WaitsForOwned => waited_for = true,
            OwnerState::Gone => gone.extend(owner.get("uid").and_then(Value::as_str)),
            // Deleting because of a type we do not know would be a guess.
            OwnerState::Alive | OwnerState::Unknown => alive = true,
        }
    }
    if !alive && (waited_for || !gone.is_empty()) {
        return collect(cluster, watch_cache, &stored.value(), waited_for).await;
    }
    if gone.is_empty() {
        return Ok(());
    }
    let gone: Vec<String> = gone.into_iter().map(str::to_owned).collect();
    modify(cluster, watch_cache, key, |live| {
        let mut new = live.clone();
        forget_owners(&mut new, |uid| gone.iter().any(|known| known == uid));
        Some(new)
    })
    .await
}

fn forget_owners(object: &mut Value, forget: impl Fn(&str) -> bool) {
    let Some(list) = meta::get_mut(object, &["metadata", "ownerReferences"]).and_then(Value::as_array_mut)
    else {
        return;
    };
    list.retain(|owner| !forget(owner.get("uid").and_then(Value::as_str).unwrap_or_default()));
    if list.is_empty() {
        meta::remove(object, &["metadata", "ownerReferences"]);
    }
}

async fn collect(
    cluster: &Arc<Cluster>,
    watch_cache: &Arc<WatchCache>,
    object: &Value,
    waited_for: bool,
) -> Result<(), Status> {
    if meta::deletion_timestamp(object).is_some() {
        return Ok(());
    }
    let types = cluster.types();
    let Some(served) = types.of_kind(meta::api_version(object), meta::kind(object)) else { return Ok(()) };
    let owns = !cluster.owners.of(meta::uid(object)).is_empty();
    let named = |name: &str| meta::finalizers(object).any(|known| known == name);
    let policy = match () {
        () if named(ORPHAN) => Policy::Orphan,
        // An owner that waits for this object waits for its dependents, too.
        () if named(FOREGROUND) || (waited_for && owns) => Policy::Foreground,
        () => Policy::Background,
    };
    let options = DeleteOptions {
        policy: Some(policy),
        uid: Some(meta::uid(object).to_owned()),
        ..DeleteOptions::default()
    };
    let name = meta::name(object);
    let namespace = meta::namespace(object);
    let key = if served.resource.namespaced { format!("{namespace}/{name}") } else { name.to_owned() };
    let _ = watch_cache;
    match delete_object(cluster, served, &key, &options).await {
        // Gone, or another one of the same name.
        Err(status) if status.code == 404 || status.code == 409 => Ok(()),
        Err(status) => Err(status),
        Ok(_) => Ok(()),
    }
}

/// An object is marked for deletion: carries out its policy, then removes the finalizer of that policy.
pub(super) async fn terminate(
    cluster: &Arc<Cluster>,
    watch_cache: &Arc<WatchCache>,
    key: &str,
) -> Result<(), Status> {
    let Some(stored) = cluster.store.latest(watch_cache, key) else { return Ok(()) };
    let object = stored.value();
    if meta::deletion_timestamp(&object).is_none() {
        return Ok(());
    }
    let uid = meta::uid(&object).to_owned();
    let named = |name: &str| meta::finalizers(&object).any(|known| known == name);
    if named(ORPHAN) {
        for (watch_cache, key) in cluster.owners.of(&uid) {
            modify(cluster, &watch_cache, &key, |live| {
                let mut new = live.clone();
                forget_owners(&mut new, |known| known == uid);
                Some(new)
            })
            .await?;
        }
        return drop_finalizer(cluster, watch_cache, key, ORPHAN).await;
    }
    if named(FOREGROUND) {
        let owned = cluster.owners.of(&uid);
        let mut blocked = false;
        for (watch_cache, key) in &owned {
            check(cluster, watch_cache, key).await?;
            let left = cluster.store.latest(watch_cache, key).map(|stored| stored.value());
            blocked |= left.is_some_and(|left| blocks(&left, &uid));
        }
        if !blocked {
            return drop_finalizer(cluster, watch_cache, key, FOREGROUND).await;
        }
    }
    Ok(())
}

/// Whether an owned object keeps its owner from going.
fn blocks(object: &Value, uid: &str) -> bool {
    meta::owner_references(object).iter().any(|owner| {
        owner.get("uid").and_then(Value::as_str) == Some(uid)
            && owner.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
    })
}

pub(super) async fn drop_finalizer(
    cluster: &Arc<Cluster>,
    watch_cache: &Arc<WatchCache>,
    key: &str,
    finalizer: &str,
) -> Result<(), Status> {
    modify(cluster, watch_cache, key, |live| {
        let kept: Vec<&str> = meta::finalizers(live).filter(|name| *name != finalizer).collect();
        let mut new = live.clone();
        if kept.is_empty() {
            meta::remove(&mut new, &["metadata", "finalizers"]);
        } else {
            meta::set(&mut new, &["metadata", "finalizers"], json!(kept));
        }
        Some(new)
    })
    .await
}
