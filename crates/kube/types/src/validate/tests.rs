use std::sync::Arc;

use aro_kube_apimachinery::{GroupVersion, Status, meta};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::registry::builtin;
use crate::{defaults, strategy};

fn resource(object: &Value) -> &'static Arc<ResourceType> {
    let gvk = GroupVersion::parse(meta::api_version(object)).unwrap().with_kind(meta::kind(object));
    builtin().by_gvk(&gvk).unwrap()
}

/// Causes in their order. Values of Go types and the difference of two of them
/// cannot be shown here, so only what follows the value counts.
fn comparable(causes: &[Value]) -> Vec<(String, String, String)> {
    let mut all: Vec<_> = causes
        .iter()
        .map(|cause| {
            let text = |key: &str| cause[key].as_str().unwrap_or_default().to_owned();
            let message = text("message").lines().next().unwrap_or_default().to_owned();
            let message = match message.split_once(": {") {
                Some((head, rest)) => {
                    format!("{head}: …{}", rest.rsplit_once("}: ").map_or("", |(_, tail)| tail))
                }
                None => match message.split_once(": [{") {
                    Some((head, rest)) => {
                        format!("{head}: …{}", rest.rsplit_once("}]: ").map_or("", |(_, tail)| tail))
                    }
                    None => message,
                },
            };
            (text("field"), text("reason"), message)
        })
        .collect();
    // Upstream checks some parts twice on updates and repeats itself.
    all.dedup();
    all
}

fn causes(resource: &ResourceType, object: &Value, errors: &[FieldError]) -> Vec<Value> {
    let status = Status::invalid(&resource.group_kind(), meta::name(object), errors).to_value();
    status["details"]["causes"].as_array().cloned().unwrap_or_default()
}

/// What a server does before it looks for mistakes.
fn prepared(mut object: Value) -> (&'static Arc<ResourceType>, Value) {
    let resource = resource(&object);
    if resource.namespaced {
        meta::set(&mut object, &["metadata", "namespace"], json!("default"));
    } else {
        meta::remove(&mut object, &["metadata", "namespace"]);
    }
    meta::set(&mut object, &["metadata", "uid"], json!("u"));
    defaults::apply(&resource.gvk, &mut object);
    strategy::prepare_create(resource, &mut object);
    (resource, object)
}

#[test]
fn mistakes_are_told_as_a_real_server_tells_them() {
    let recorded: Value = serde_json::from_str(include_str!("../../tests/golden/invalid.json")).unwrap();
    let mut wrong = Vec::new();
    for case in recorded.as_array().unwrap() {
        let (resource, object) = prepared(case["sent"].clone());
        let errors = create(resource, &object);
        let own = comparable(&causes(resource, &object, &errors));
        let theirs = comparable(case["causes"].as_array().map_or(&[], Vec::as_slice));
        if own != theirs {
            wrong.push(format!("{}\n   own {own:?}\ntheirs {theirs:?}", case["sent"]));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        recorded.as_array().unwrap().len(),
        wrong.join("\n")
    );
}

#[test]
fn changes_are_refused_as_a_real_server_refuses_them() {
    let recorded: Value = serde_json::from_str(include_str!("../../tests/golden/updated.json")).unwrap();
    let mut wrong = Vec::new();
    for case in recorded.as_array().unwrap() {
        let (old, mut new) = (&case["old"], case["new"].clone());
        let resource = resource(&new);
        // The server's part: times and uids are its own.
        for key in ["creationTimestamp", "uid"] {
            meta::set(&mut new, &["metadata", key], old["metadata"][key].clone());
        }
        defaults::apply(&resource.gvk, &mut new);
        strategy::prepare_update(resource, "", &mut new, old);
        let own = comparable(&causes(resource, &new, &update(resource, "", &new, old)));
        let theirs = comparable(case["causes"].as_array().map_or(&[], Vec::as_slice));
        // Whether a resource version is needed is the server's matter.
        if own != theirs && !theirs.iter().any(|cause| cause.0 == "metadata.resourceVersion") {
            wrong.push(format!("{}\n   own {own:?}\ntheirs {theirs:?}", case["new"]));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_a_real_server_made_passes() {
    let recorded: Value = serde_json::from_str(include_str!("../../tests/golden/created.json")).unwrap();
    for pair in recorded.as_array().unwrap() {
        let (resource, object) = (resource(&pair["answered"]), &pair["answered"]);
        assert_eq!(create(resource, object), [], "{object}");
        assert_eq!(update(resource, "", object, object), [], "{object}");
    }
}

#[test]
fn default_roles_pass() {
    for role in builtin().rbac() {
        let mut role = role.clone();
        role["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
        let resource = resource(&role);
        assert_eq!(create(resource, &role), [], "{role}");
    }
}

#[test]
fn a_prefix_of_generated_names_may_end_with_a_dash() {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "name": "a-x1", "namespace": "d"}});
    assert_eq!(create(resource(&map), &map), []);
}

#[test]
fn an_object_that_goes_away_gets_no_new_finalizers() {
    let old = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "d",
        "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}});
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!(["a/b", "a/c"]);
    let errors = update(resource(&old), "", &new, &old);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].detail.ends_with("found new finalizers []string{\"a/c\"}"), "{}", errors[0].detail);
}

const NAMES: &[&str] = &[
    "spec",
    "metadata",
    "template",
    "containers",
    "ports",
    "labels",
    "resources",
    "limits",
    "volumes",
    "selector",
    "rules",
    "subjects",
    "webhooks",
    "subsets",
    "name",
    "strategy",
    "hard",
    "port",
    "clusterIPs",
    "capacity",
];

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];

    leaf.prop_recursive(6, 64, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(NAMES), inner, 0..6).prop_map(|members| {
                Value::Object(members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_object_makes_validation_panic(object in anything(), old in anything(), pick in any::<prop::sample::Index>()) {
        let resource = pick.get(builtin().resources());
        let mut object = object;
        defaults::apply(&resource.gvk, &mut object);
        create(resource, &object);
        update(resource, "", &object, &old);
    }
}
