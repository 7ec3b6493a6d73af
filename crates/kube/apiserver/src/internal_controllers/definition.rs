//! Definitions of custom types: accepting their names, serving them, and emptying them before they go.

use std::sync::Arc;

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::Status;
use serde_json::Value;

use super::{field_owner, modify, owners};
use crate::cluster::{Cluster, DEFINITIONS, rfc3339};
use crate::rest::{CLEANUP, DeleteOptions, delete_object};

pub(super) async fn reconcile(cluster: &Arc<Cluster>, name: &str) -> Result<(), Status> {
    let watch_cache = cluster.store.watch_cache(DEFINITIONS);
    let now = rfc3339(cluster.now());
    let others: Vec<Value> =
        watch_cache.all().iter().filter(|other| &*other.key != name).map(|other| other.value()).collect();
    let settled = |live: &Value| {
        let others: Vec<&Value> = others.iter().collect();
        let mut new = live.clone();
        new["status"] = aro_kube_crd::definition::settle(live, &others, &now);
        new
    };
    // Served before it is `Established`: a client that waits for the condition may use the type at once.
    let next = cluster.store.latest(&watch_cache, name).map(|stored| settled(&stored.value()));
    reload(cluster, next).await?;
    // A change meanwhile enqueues the definition again.
    modify(cluster, &watch_cache, name, |live| {
        let mut new = settled(live);
        if new.get("status") != live.get("status") {
            field_owner::track_status(cluster, live, &mut new);
        }
        Some(new)
    })
    .await?;
    let Some(stored) = cluster.store.latest(&watch_cache, name) else { return Ok(()) };
    let crd = stored.value();
    if meta::deletion_timestamp(&crd).is_some() && meta::finalizers(&crd).any(|known| known == CLEANUP) {
        return clean_up(cluster, name, &crd).await;
    }
    Ok(())
}

/// Compiling a large schema takes milliseconds; other requests go on meanwhile.
async fn reload(cluster: &Arc<Cluster>, next: Option<Value>) -> Result<(), Status> {
    let cluster = cluster.clone();
    let reloaded = tokio::task::spawn_blocking(move || cluster.reload_types(next.as_ref())).await;
    reloaded.map_err(|error| Status::internal(format!("compiling definitions: {error}")))
}

async fn clean_up(cluster: &Arc<Cluster>, name: &str, crd: &Value) -> Result<(), Status> {
    let definitions = cluster.store.watch_cache(DEFINITIONS);
    let types = cluster.types();
    let text = |path: &[&str]| meta::get(crd, path).and_then(Value::as_str).unwrap_or_default();
    let (group, plural) = (text(&["spec", "group"]), text(&["spec", "names", "plural"]));
    let served =
        types.custom().find(|served| served.resource.gvk.group == group && served.resource.plural == plural);
    let instances = cluster.store.watch_cache(&format!("{plural}.{group}"));
    if let Some(served) = served {
        cluster.deletion_waiters.add_definition(&instances.name, name);
        for object in instances.all() {
            match delete_object(cluster, served, &object.key, &DeleteOptions::default()).await {
                Err(status) if status.code != 404 => return Err(status),
                _ => {}
            }
        }
    }
    if !instances.is_empty() {
        // The deletion of the last instance enqueues the definition again.
        return Ok(());
    }
    cluster.deletion_waiters.remove_definition(&instances.name);
    owners::drop_finalizer(cluster, &definitions, name, CLEANUP).await
}
