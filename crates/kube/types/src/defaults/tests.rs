use aro_kube_apimachinery::{GroupVersion, meta};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::registry::builtin;
use crate::strategy;

fn gvk(object: &Value) -> GroupVersionKind {
    GroupVersion::parse(meta::api_version(object)).unwrap().with_kind(meta::kind(object))
}

/// What the server sets, or what other parts of it add on the way.
fn strip_server_parts(object: &mut Value) {
    for key in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace"] {
        meta::remove(object, &["metadata", key]);
    }
}

#[test]
fn created_objects_look_as_a_real_server_answers() {
    let recorded: Value = serde_json::from_str(include_str!("../../tests/golden/created.json")).unwrap();
    let mut wrong = Vec::new();
    for pair in recorded.as_array().unwrap() {
        let mut answered = pair["answered"].clone();
        let mut object = pair["sent"].clone();
        meta::set(&mut object, &["metadata", "uid"], answered["metadata"]["uid"].clone());
        let gvk = gvk(&object);
        apply(&gvk, &mut object);
        strategy::prepare_create(builtin().by_gvk(&gvk).unwrap(), &mut object);
        strip_server_parts(&mut answered);
        strip_server_parts(&mut object);
        // Allocated by the server.
        if gvk.kind == "Service" {
            for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "ports"] {
                meta::remove(&mut answered, &["spec", key]);
                meta::remove(&mut object, &["spec", key]);
            }
        }
        // Admission.
        if gvk.kind == "Pod" {
            for key in ["serviceAccount", "serviceAccountName", "tolerations", "priority", "preemptionPolicy"]
            {
                meta::remove(&mut answered, &["spec", key]);
            }
        }
        if gvk.kind == "Node" {
            meta::set(&mut answered, &["spec"], json!({}));
        }
        meta::remove(&mut answered, &["metadata", "finalizers"]);
        meta::remove(&mut answered, &["status", "lastPhaseTransitionTime"]);
        if object != answered {
            wrong.push(format!("   own {object}\ntheirs {answered}"));
        }
        let once = object.clone();
        apply(&gvk, &mut object);
        assert_eq!(object, once, "defaults are filled in once");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn malformed_quantities_are_named_and_stay() {
    let mut quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "1K"}}});
    let problem = try_apply(&gvk(&quota), &mut quota).unwrap_err();
    assert_eq!(problem.to_string(), "unable to parse quantity's suffix");
    assert_eq!(quota["spec"]["hard"]["pods"], "1K");
}

#[test]
fn times_are_brought_to_utc() {
    let mut lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "spec": {"renewTime": "2026-01-01T02:00:00.500000+02:00"}});
    apply(&gvk(&lease), &mut lease);
    assert_eq!(lease["spec"]["renewTime"], "2026-01-01T00:00:00.500000Z");
    lease["spec"]["renewTime"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(
        try_apply(&gvk(&lease), &mut lease).unwrap_err().to_string(),
        r#"parsing time "2026-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#
    );
}

#[test]
fn host_network_gives_ports_to_the_host() {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"hostNetwork": true,
        "containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}});
    apply(&gvk(&pod), &mut pod);
    assert_eq!(pod["spec"]["containers"][0]["ports"][0]["hostPort"], 80);
    assert_eq!(pod["spec"]["enableServiceLinks"], true);
}

/// Any JSON, with names that occur in real objects.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z0-9:/.]{0,8}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        Just("spec".to_owned()),
        Just("metadata".to_owned()),
        Just("status".to_owned()),
        Just("template".to_owned()),
        Just("containers".to_owned()),
        Just("ports".to_owned()),
        Just("labels".to_owned()),
        Just("resources".to_owned()),
        Just("limits".to_owned()),
        Just("volumes".to_owned()),
        Just("data".to_owned()),
        Just("type".to_owned()),
    ];
    leaf.prop_recursive(6, 48, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_object_makes_defaults_panic(object in anything(), pick in any::<prop::sample::Index>()) {
        let resource = pick.get(builtin().resources());
        let mut object = object;
        apply(&resource.gvk, &mut object);
        strategy::prepare_create(resource, &mut object);
        let old = object.clone();
        strategy::prepare_update(resource, "", &mut object, &old);
    }
}
