//! Pods that only show what a node runs by itself: they must be of that node, and give it nothing.

use aro_kube_apimachinery::status::Status;
use aro_kube_apimachinery::{GroupResource, meta};
use serde_json::{Value, json};

use super::{references, refuse, refused, text};
use crate::rest::Call;

/// Looks at a pod that a node wants to create.
pub(super) fn admit(call: &Call, node: &str, pod: &Value) -> Result<(), Status> {
    let name = meta::name(pod);
    refused(call, name, problem(node, pod))?;
    let Some(own) = call.cluster.store.watch_cache("nodes").get(node) else {
        return Err(Status::not_found(&GroupResource::new("", "nodes"), node));
    };
    let uid = meta::owner_references(pod).first().map(|owner| text(owner, &["uid"])).unwrap_or_default();
    let own = own.value();
    if meta::uid(&own) != uid {
        return refuse(
            call,
            name,
            format!("node {node} UID mismatch: expected {uid} got {}", meta::uid(&own)),
        );
    }
    Ok(())
}

fn problem(node: &str, pod: &Value) -> Result<(), String> {
    if !references::is_mirror(pod) {
        return Err(format!(
            "pod does not have \"kubernetes.io/config.mirror\" annotation, node {node:?} can only create mirror pods"
        ));
    }
    if text(pod, &["spec", "nodeName"]) != node {
        return Err(format!("node {node:?} can only create pods with spec.nodeName set to itself"));
    }
    let owner = match meta::owner_references(pod) {
        [one] => one,
        [] => {
            return Err(format!("node {node:?} can only create pods with an owner reference set to itself"));
        }
        _ => {
            return Err(format!(
                "node {node:?} can only create pods with a single owner reference set to itself"
            ));
        }
    };
    let itself = (text(owner, &["apiVersion"]), text(owner, &["kind"]), text(owner, &["name"]));
    if itself != ("v1", "Node", node) {
        return Err(format!("node {node:?} can only create pods with an owner reference set to itself"));
    }
    if owner.get("controller") != Some(&json!(true)) {
        return Err(format!(
            "node {node:?} can only create pods with a controller owner reference set to itself"
        ));
    }
    if owner.get("blockOwnerDeletion") == Some(&json!(true)) {
        return Err(format!("node {node:?} must not set blockOwnerDeletion on an owner reference"));
    }
    match referenced(pod) {
        None => Ok(()),
        Some(what) => Err(format!("node {node:?} can not create pods that reference {what}")),
    }
}

/// Volumes that need nothing of the API.
const HARMLESS: [&str; 20] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "vsphereVolume",
];

/// What of the API a pod refers to.
fn referenced(pod: &Value) -> Option<&'static str> {
    if !text(pod, &["spec", "serviceAccountName"]).is_empty() {
        return Some("serviceaccounts");
    }
    if !references::secrets(pod).is_empty() {
        return Some("secrets");
    }
    if !references::config_maps(pod).is_empty() {
        return Some("configmaps");
    }
    let list = |path: &[&str]| meta::get(pod, path).and_then(Value::as_array).cloned().unwrap_or_default();
    if !list(&["spec", "resourceClaims"]).is_empty() {
        return Some("resourceclaims");
    }
    for volume in list(&["spec", "volumes"]) {
        let Some(source) = volume.as_object().and_then(|all| all.keys().find(|name| *name != "name")) else {
            continue;
        };
        match source.as_str() {
            "configMap" => return Some("configmaps (via configmap volumes)"),
            "secret" => return Some("secrets (via secret volumes)"),
            "csi" => return Some("csidrivers (via CSI volumes)"),
            "glusterfs" => return Some("endpoints (via glusterFS volumes)"),
            "persistentVolumeClaim" => return Some("persistentvolumeclaims"),
            "ephemeral" => return Some("persistentvolumeclaims (via ephemeral volumes)"),
            "azureFile" => return Some("secrets (via azureFile volumes)"),
            "projected" => {
                let sources =
                    meta::get(&volume, &["projected", "sources"]).and_then(Value::as_array).cloned();
                let mut names =
                    sources.iter().flatten().filter_map(Value::as_object).flat_map(|source| source.keys());
                if let Some(what) = names.find_map(|name| match name.as_str() {
                    "downwardAPI" => None,
                    "configMap" => Some("configmaps (via projected volumes)"),
                    "secret" => Some("secrets (via projected volumes)"),
                    "serviceAccountToken" => Some("serviceaccounts (via projected volumes)"),
                    "clusterTrustBundle" => Some("clustertrustbundles"),
                    _ => Some("podcertificates"),
                }) {
                    return Some(what);
                }
            }
            "scaleIO" | "storageos" => {}
            known if HARMLESS.contains(&known) => {}
            _ => return Some("volumes of an unknown type"),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_pod_must_be_of_the_node_and_refer_to_nothing() {
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": true});
        let pod = |change: &dyn Fn(&mut Value)| {
            let mut pod = json!({"metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"},
                "ownerReferences": [owner]}, "spec": {"nodeName": "n", "volumes": [{"name": "v", "hostPath": {"path": "/"}}]}});
            change(&mut pod);
            pod
        };
        let problem =
            |change: &dyn Fn(&mut Value)| super::problem("n", &pod(change)).err().unwrap_or_default();
        assert_eq!(problem(&|_| {}), "");
        for (change, expected) in [
            (
                &(|pod: &mut Value| pod["metadata"]["annotations"] = json!({})) as &dyn Fn(&mut Value),
                "can only create mirror pods",
            ),
            (&|pod| pod["spec"]["nodeName"] = json!("m"), "with spec.nodeName set to itself"),
            (&|pod| pod["metadata"]["ownerReferences"] = json!([]), "an owner reference set to itself"),
            (
                &|pod| pod["metadata"]["ownerReferences"][0]["controller"] = json!(false),
                "a controller owner reference",
            ),
            (
                &|pod| pod["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = json!(true),
                "blockOwnerDeletion",
            ),
            (&|pod| pod["spec"]["serviceAccountName"] = json!("default"), "reference serviceaccounts"),
            (
                &|pod| pod["spec"]["volumes"] = json!([{"name": "v", "secret": {"secretName": "s"}}]),
                "reference secrets",
            ),
            (
                &|pod| {
                    pod["spec"]["volumes"] =
                        json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
                },
                "persistentvolumeclaims",
            ),
        ] {
            let problem = problem(change);
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
