//! The objects that every namespace has: the default service account, and the root certificate of the cluster.

use std::sync::Arc;

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::Status;
use serde_json::{Value, json};

use super::{NAMESPACES, modify};
use crate::cluster::{Cluster, rfc3339};
use crate::storage::{Change, Draft, Event, EventKind, Expect, WatchCache, WriteFailed};

const ACCOUNTS: &str = "serviceaccounts";
const ACCOUNT: &str = "default";
const MAPS: &str = "configmaps";
const ROOT: &str = "kube-root-ca.crt";

const ABOUT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// Whether an event changed or deleted a default object.
pub(super) fn concerns(watch_cache: &WatchCache, event: &Event) -> bool {
    match &*watch_cache.name {
        ACCOUNTS => event.kind == EventKind::Deleted && event.object.name() == ACCOUNT,
        MAPS => event.kind != EventKind::Added && event.object.name() == ROOT,
        _ => false,
    }
}

/// Creates what is missing in a namespace that is not marked for deletion.
pub(super) async fn ensure_defaults(cluster: &Arc<Cluster>, namespace: &str) -> Result<(), Status> {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(cluster, namespace, ACCOUNT),
    });
    let data = json!({"ca.crt": cluster.keys.authority.certificate()});
    let mut root = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": metadata(cluster, namespace, ROOT),
    });
    root["metadata"]["annotations"] = json!({"kubernetes.io/description": ABOUT});
    root["metadata"]["managedFields"] = json!([{
        "manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
        "time": rfc3339(cluster.now()), "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:data": {".": {}, "f:ca.crt": {}},
            "f:metadata": {"f:annotations": {".": {}, "f:kubernetes.io/description": {}}},
        },
    }]);
    ensure(cluster, ACCOUNTS, &account).await?;
    ensure(cluster, MAPS, &root).await?;
    let maps = cluster.store.watch_cache(MAPS);
    modify(cluster, &maps, &format!("{namespace}/{ROOT}"), |live| {
        let mut new = live.clone();
        new["data"] = data.clone();
        Some(new)
    })
    .await
}

fn metadata(cluster: &Cluster, namespace: &str, name: &str) -> Value {
    let uid = uuid::Uuid::new_v4().to_string();
    json!({"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": rfc3339(cluster.now())})
}

async fn ensure(cluster: &Arc<Cluster>, watch_cache: &str, object: &Value) -> Result<(), Status> {
    let watch_cache = cluster.store.watch_cache(watch_cache);
    let namespace = meta::namespace(object);
    let key = format!("{namespace}/{}", meta::name(object));
    if cluster.store.latest(&watch_cache, &key).is_some() {
        return Ok(());
    }
    let change = Change::Put(Draft::of(object));
    let stored = match cluster.store.commit(&watch_cache, &key, Expect::Absent, change).await {
        Ok(stored) => stored,
        Err(WriteFailed::Changed(_)) => return Ok(()),
        Err(WriteFailed::Unavailable) => return Err(Status::unavailable("the storage takes no writes")),
    };
    if stays(cluster, namespace) {
        return Ok(());
    }
    // The namespace was marked for deletion meanwhile, and may have been emptied already.
    match cluster.store.commit(&watch_cache, &key, Expect::Version(stored.version), Change::Delete).await {
        Ok(_) | Err(WriteFailed::Changed(_)) => Ok(()),
        Err(WriteFailed::Unavailable) => Err(Status::unavailable("the storage takes no writes")),
    }
}

fn stays(cluster: &Cluster, namespace: &str) -> bool {
    let watch_cache = cluster.store.watch_cache(NAMESPACES);
    let stored = cluster.store.latest(&watch_cache, namespace);
    stored.is_some_and(|stored| meta::deletion_timestamp(&stored.value()).is_none())
}
