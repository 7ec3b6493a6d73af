//! Definitions of `HyperShift` that are typed in part: what is typed is what is published, the rest is preserved.

use std::collections::BTreeMap;

use aro_crds::definitions;
use aro_crds::hypershift::v1beta1::{HostedCluster, HostedControlPlane, NodePool};
use serde_json::{Map, Value, json};

/// Members that only some releases publish, and others that are preserved where upstream types them otherwise.
const UNTYPED: &str = "x-kubernetes-preserve-unknown-fields";

fn published() -> Option<BTreeMap<String, Value>> {
    let folder = aro_prerequisites::specs("hypershift-crds")?;
    let read = |entry: std::fs::DirEntry| -> Option<(String, Value)> {
        let crd: Value = serde_saphyr::from_str(&std::fs::read_to_string(entry.path()).ok()?).ok()?;
        Some((crd["metadata"]["name"].as_str()?.to_owned(), crd))
    };
    Some(std::fs::read_dir(folder).unwrap().map(Result::unwrap).filter_map(read).collect())
}

fn ours() -> Vec<(String, Value)> {
    let all = definitions().into_iter();
    let all = all.map(|one| (one.name().to_owned(), serde_json::to_value(one.object()).unwrap()));
    all.filter(|(name, _)| name.ends_with("hypershift.openshift.io")).collect()
}

/// Paths of ours that are not published, or with another type.
fn strangers(ours: &Value, theirs: &Value, path: &str, found: &mut Vec<String>) {
    if ours.get("type") != theirs.get("type") {
        found.push(format!("{path}: {:?} for {:?}", ours.get("type"), theirs.get("type")));
    }
    for (name, property) in ours["properties"].as_object().into_iter().flatten() {
        match theirs["properties"].get(name) {
            Some(published) => strangers(property, published, &format!("{path}.{name}"), found),
            None => found.push(format!("{path}.{name}: not published")),
        }
    }
    if ours.get("items").is_some() && ours["items"].get(UNTYPED).is_none() {
        strangers(&ours["items"], &theirs["items"], &format!("{path}[]"), found);
    }
}

#[test]
fn what_is_typed_is_what_is_published() {
    let Some(published) = published() else { return };
    let (mut found, mut compared) = (Vec::new(), 0);
    for (name, ours) in ours() {
        let theirs = &published[&name];
        compared += 1;
        assert_eq!(ours["spec"]["names"], theirs["spec"]["names"], "{name}");
        assert_eq!(ours["spec"]["scope"], theirs["spec"]["scope"], "{name}");
        let (mine, published) = (&ours["spec"]["versions"][0], &theirs["spec"]["versions"][0]);
        for part in ["name", "subresources", "additionalPrinterColumns"] {
            let columns = |version: &Value| match &version[part] {
                Value::Array(columns) => Value::Array(
                    columns.iter().map(|one| json!([one["name"], one["type"], one["jsonPath"]])).collect(),
                ),
                other => other.clone(),
            };
            assert_eq!(columns(mine), columns(published), "{name} {part}");
        }
        for part in ["spec", "status"] {
            let schema = |version: &Value| version["schema"]["openAPIV3Schema"]["properties"][part].clone();
            let (mine, published) = (schema(mine), schema(published));
            if mine.is_object() && published.is_object() {
                strangers(&mine, &published, &format!("{name} {part}"), &mut found);
                let required = |schema: &Value| schema["required"].as_array().cloned().unwrap_or_default();
                for member in required(&mine) {
                    assert!(required(&published).contains(&member), "{name} {part} requires {member}");
                }
            }
        }
    }
    assert_eq!(compared, 6);
    assert!(found.is_empty(), "{found:#?}");
}

/// Everything of an object comes back, known or not.
#[track_caller]
fn survives<T: serde::de::DeserializeOwned + serde::Serialize>(object: &Value) {
    let read: T = serde_json::from_value(object.clone()).unwrap();
    let written = serde_json::to_value(&read).unwrap();
    let missing = missing(object, &written, "");
    assert!(missing.is_empty(), "{missing:#?}");
}

fn missing(object: &Value, written: &Value, path: &str) -> Vec<String> {
    match (object, written) {
        (Value::Object(members), Value::Object(others)) => members
            .iter()
            .flat_map(|(name, value)| match others.get(name) {
                Some(other) => missing(value, other, &format!("{path}.{name}")),
                None => vec![format!("{path}.{name}")],
            })
            .collect(),
        (object, written) if object == written => Vec::new(),
        _ => vec![path.to_owned()],
    }
}

fn spec() -> Map<String, Value> {
    let spec = json!({
        "release": {"image": "quay.io/openshift-release-dev/ocp-release@sha256:0"},
        "platform": {"type": "Azure", "azure": {"location": "westus3", "new": {"deep": [1, {"x": null}]}}},
        "networking": {
            "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}], "networkType": "OVNKubernetes",
            "apiServer": {"allowedCIDRBlocks": ["203.0.113.0/24"]}, "allocateNodeCIDRs": "Disabled",
        },
        "etcd": {"managementType": "Managed", "managed": {"storage": {"type": "PersistentVolume"}}},
        "services": [{"service": "APIServer", "servicePublishingStrategy": {"type": "Route", "route": {"hostname": "api.x"}}}],
        "pullSecret": {"name": "pull-secret"}, "sshKey": {"name": "ssh-key"},
        "olmCatalogPlacement": "management", "monitoring": {"metricsForwarding": {"mode": "Forward"}},
        "dns": {"baseDomain": "aro.x.y.z", "baseDomainPrefix": ""},
    });
    spec.as_object().unwrap().clone()
}

#[test]
fn members_that_are_not_typed_survive() {
    let spec = spec();
    survives::<HostedCluster>(&json!({
        "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedCluster",
        "metadata": {"name": "c", "namespace": "n"}, "spec": spec,
        "status": {"autoNode": {"x": 1}, "payloadArch": "Multi"},
    }));
    let mut plane = spec;
    plane.remove("release");
    plane.insert("releaseImage".into(), json!("x"));
    plane.insert("infraID".into(), json!("i"));
    plane.insert("issuerURL".into(), json!("https://i"));
    survives::<HostedControlPlane>(&json!({
        "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
        "metadata": {"name": "c", "namespace": "n"}, "spec": plane,
    }));
    if let Some(folder) = aro_prerequisites::specs("ocm") {
        let text = std::fs::read_to_string(folder.join("sample-hypershift-nodepool-cr.json")).unwrap();
        let mut sample: Value = serde_json::from_str(&text).unwrap();
        // It was recorded with empty metadata, which has a type of its own.
        sample["metadata"] = json!({"name": "pool"});
        sample["status"] = json!({});
        survives::<NodePool>(&sample);
    }
}
