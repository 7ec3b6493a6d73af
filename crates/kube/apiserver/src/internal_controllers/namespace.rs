//! Namespaces: creating the default objects of a new one, and emptying one that is marked for deletion.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::Status;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::namespace_defaults::ensure_defaults;
use super::{NAMESPACES, WorkItem, modify};
use crate::cluster::{Cluster, rfc3339};
use crate::rest::{DeleteOptions, Policy, delete_object};
use crate::storage::WatchCache;

/// Namespaces and definitions that wait for the deletion of their objects.
#[derive(Debug, Default)]
pub struct DeletionWaiters {
    namespaces: Mutex<HashSet<Box<str>>>,
    /// By the watch cache of their objects.
    definitions: Mutex<HashMap<Box<str>, Box<str>>>,
}

impl DeletionWaiters {
    /// An object was deleted: enqueues what waited for it.
    pub(super) fn notify(&self, cluster: &Arc<Cluster>, watch_cache: &WatchCache, namespace: &str) {
        if !namespace.is_empty() && self.namespaces.lock().contains(namespace) {
            cluster.work.add(cluster, WorkItem::Namespace(namespace.into()));
        }
        if let Some(definition) = self.definitions.lock().get(&watch_cache.name) {
            cluster.work.add(cluster, WorkItem::Definition(definition.clone()));
        }
    }

    pub(super) fn add_definition(&self, watch_cache: &str, definition: &str) {
        self.definitions.lock().insert(watch_cache.into(), definition.into());
    }

    pub(super) fn remove_definition(&self, watch_cache: &str) {
        self.definitions.lock().remove(watch_cache);
    }
}

pub(super) async fn reconcile(cluster: &Arc<Cluster>, name: &str) -> Result<(), Status> {
    let watch_cache = cluster.store.watch_cache(NAMESPACES);
    let Some(stored) = cluster.store.latest(&watch_cache, name) else {
        cluster.deletion_waiters.namespaces.lock().remove(name);
        return Ok(());
    };
    let namespace = stored.value();
    if meta::deletion_timestamp(&namespace).is_none() {
        return ensure_defaults(cluster, name).await;
    }
    cluster.deletion_waiters.namespaces.lock().insert(name.into());
    let left = empty(cluster, name).await?;
    let now = rfc3339(cluster.now());
    if left.is_empty() {
        return modify(cluster, &watch_cache, name, |live| {
            let finalizers = meta::get(live, &["spec", "finalizers"]).and_then(Value::as_array)?;
            let kept: Vec<&Value> =
                finalizers.iter().filter(|finalizer| *finalizer != "kubernetes").collect();
            let mut new = live.clone();
            if kept.is_empty() {
                meta::remove(&mut new, &["spec", "finalizers"]);
            } else {
                meta::set(&mut new, &["spec", "finalizers"], json!(kept));
            }
            Some(new)
        })
        .await;
    }
    modify(cluster, &watch_cache, name, |live| {
        let mut new = live.clone();
        meta::set(&mut new, &["status", "conditions"], conditions(live, &left, &now));
        Some(new)
    })
    .await
}

/// Deletes what is in a namespace; returns what is still there: resource, count, finalizers.
async fn empty(cluster: &Arc<Cluster>, name: &str) -> Result<Vec<(String, usize, Vec<String>)>, Status> {
    let prefix = format!("{name}/");
    let mut done: HashSet<Box<str>> = HashSet::new();
    let mut left = Vec::new();
    for served in cluster.types().all() {
        if !served.resource.namespaced
            || !served.resource.allows("delete")
            || !done.insert(served.watch_cache.clone())
        {
            continue;
        }
        let watch_cache = cluster.store.shelf_if_there(&served.watch_cache);
        let Some(watch_cache) = watch_cache else { continue };
        let objects = watch_cache.list(&prefix, None, usize::MAX, || 0, |_| true).objects;
        let options = DeleteOptions { policy: Some(Policy::Background), ..DeleteOptions::default() };
        for object in &objects {
            match delete_object(cluster, &served, &object.key, &options).await {
                Err(status) if status.code != 404 => return Err(status),
                _ => {}
            }
        }
        let remaining = watch_cache.list(&prefix, None, usize::MAX, || 0, |_| true).objects;
        if !remaining.is_empty() {
            let mut finalizers: Vec<String> = remaining
                .iter()
                .flat_map(|object| meta::finalizers(&object.value()).map(str::to_owned).collect::<Vec<_>>())
                .collect();
            finalizers.sort();
            left.push((served.resource.group_resource().to_string(), remaining.len(), finalizers));
        }
    }
    Ok(left)
}

/// The conditions of a namespace that still has content.
fn conditions(live: &Value, left: &[(String, usize, Vec<String>)], now: &str) -> Value {
    let contents: Vec<String> = left
        .iter()
        .map(|(resource, count, _)| format!("{resource}. has {count} resource instances"))
        .collect();
    let mut by_finalizer: HashMap<&str, usize> = HashMap::new();
    for finalizer in left.iter().flat_map(|(.., finalizers)| finalizers) {
        *by_finalizer.entry(finalizer).or_default() += 1;
    }
    let mut finalizers: Vec<String> =
        by_finalizer.iter().map(|(name, count)| format!("{name} in {count} resource instances")).collect();
    finalizers.sort();
    let remaining = format!("Some resources are remaining: {}", contents.join(", "));
    let waiting =
        format!("Some content in the namespace has finalizers remaining: {}", finalizers.join(", "));
    let wanted = [
        (
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered".to_owned(),
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed".to_owned(),
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization".to_owned(),
        ),
        ("NamespaceContentRemaining", "True", "SomeResourcesRemain", remaining),
        if finalizers.is_empty() {
            (
                "NamespaceFinalizersRemaining",
                "False",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished".to_owned(),
            )
        } else {
            ("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", waiting)
        },
    ];
    let known =
        meta::get(live, &["status", "conditions"]).and_then(Value::as_array).cloned().unwrap_or_default();
    let make = |(kind, status, reason, message): (&str, &str, &str, String)| {
        let old = known.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind));
        let same = old.filter(|old| old.get("status").and_then(Value::as_str) == Some(status));
        let since = same.and_then(|old| old.get("lastTransitionTime")).cloned().unwrap_or_else(|| json!(now));
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
    };
    Value::Array(wanted.into_iter().map(make).collect())
}
