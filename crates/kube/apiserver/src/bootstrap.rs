//! What every new cluster holds from its first moment.

use std::sync::{Arc, LazyLock};

use aro_kube_apimachinery::meta;
use aro_kube_apimachinery::status::Status;
use aro_kube_types::registry::builtin;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::cluster::{Cluster, rfc3339};
use crate::storage::{Change, Draft, Expect, WriteFailed};
use crate::types::Types;

/// Makes what is missing. Everything is queued at once, and is durable with one flush.
pub async fn ensure(cluster: &Arc<Cluster>) -> Result<(), Status> {
    let now = rfc3339(cluster.now());
    let mut writes = Vec::new();
    let own = prepare(authentication(cluster));
    for template in TEMPLATES.iter().chain(&own) {
        let watch_cache = cluster.store.watch_cache(&template.watch_cache);
        if cluster.store.latest(&watch_cache, &template.key).is_some() {
            continue;
        }
        let mut object = template.object.clone();
        meta::set(&mut object, &["metadata", "uid"], json!(uuid::Uuid::new_v4().to_string()));
        meta::set(&mut object, &["metadata", "creationTimestamp"], json!(now));
        if let Some(since) =
            meta::get_mut(&mut object, &["status", "conditions"]).and_then(|list| list.get_mut(0))
        {
            since["lastTransitionTime"] = json!(now);
        }
        let store = cluster.store.clone();
        let draft = Draft::of(&object);
        let key = template.key.clone();
        writes
            .push(async move { store.commit(&watch_cache, &key, Expect::Absent, Change::Put(draft)).await });
    }
    for written in join_all(writes).await {
        match written {
            Ok(_) | Err(WriteFailed::Changed(_)) => {}
            Err(WriteFailed::Unavailable) => return Err(Status::unavailable("the storage takes no writes")),
        }
    }
    Ok(())
}

/// An object as every cluster gets it, but for its identity and its time.
struct Template {
    watch_cache: Box<str>,
    key: String,
    object: Value,
}

/// Prepared once: a thousand clusters begin with the same.
static TEMPLATES: LazyLock<Vec<Template>> =
    LazyLock::new(|| objects().into_iter().filter_map(prepare).collect());

fn prepare(mut object: Value) -> Option<Template> {
    let types = Types::default();
    let served = types.of_kind(meta::api_version(&object), meta::kind(&object))?;
    aro_kube_types::defaults::apply(&served.resource.gvk, &mut object);
    let status = object.get("status").cloned();
    aro_kube_types::strategy::prepare_create(&served.resource, &mut object);
    // Clients do not set it; we do.
    if let Some(status) = status {
        object["status"] = status;
    }
    let key = match meta::namespace(&object) {
        "" => meta::name(&object).to_owned(),
        namespace => format!("{namespace}/{}", meta::name(&object)),
    };
    Some(Template { watch_cache: served.watch_cache.clone(), key, object })
}

/// How others find out whom this cluster's certificates name.
fn authentication(cluster: &Cluster) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {"client-ca-file": cluster.keys.authority.certificate()},
    })
}

fn objects() -> Vec<Value> {
    let mut objects = Vec::new();
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    }
    for role in builtin().rbac() {
        let mut role = role.clone();
        role["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
        if let Some(members) = role.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        if let Some(metadata) = role.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|_, value| !value.is_null());
        }
        objects.push(role);
    }
    for (name, value, about) in [
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ] {
        objects.push(json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "description": about, "preemptionPolicy": "PreemptLowerPriority",
        }));
    }
    objects.push(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            "sessionAffinity": "None", "type": "ClusterIP",
        },
    }));
    for group in builtin().groups() {
        for version in &group.versions {
            let name = if group.name.is_empty() {
                format!("{version}.")
            } else {
                format!("{version}.{}", group.name)
            };
            objects.push(json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"name": name, "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"}},
                "spec": {"group": group.name, "version": version, "groupPriorityMinimum": 18000, "versionPriority": 1},
                "status": {"conditions": [{"type": "Available", "status": "True", "reason": "Local",
                    "message": "Local APIServices are always available"}]},
            }));
        }
    }
    objects
}
