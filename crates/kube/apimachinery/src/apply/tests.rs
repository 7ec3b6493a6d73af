//! What writes do to ownership. The cases were checked against a real API server.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::meta;
use crate::schema::Definitions;

static DEFINITIONS: LazyLock<Definitions> = LazyLock::new(|| {
    Definitions::from_openapi(&json!({
        "Root": {"$ref": "io.x.v1.Thing"},
        "io.x.v1.Thing": {"type": "object", "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": "io.meta.v1.ObjectMeta"}], "default": {}},
            "spec": {"allOf": [{"$ref": "io.x.v1.Spec"}], "default": {}},
            "data": {"type": "object", "additionalProperties": {"type": "string"}},
            "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
        }},
        "io.meta.v1.ObjectMeta": {"type": "object", "properties": {
            "name": {"type": "string"}, "uid": {"type": "string"}, "resourceVersion": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
            "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "managedFields": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "atomic"},
        }},
        "io.x.v1.Spec": {"type": "object", "required": ["items"], "properties": {
            "replicas": {"type": "integer"},
            "selector": {"$ref": "io.x.v1.Selector"},
            "args": {"type": "array", "items": {"type": "string"}},
            "items": {"type": "array", "items": {"allOf": [{"$ref": "io.x.v1.Item"}], "default": {}},
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge"},
            "ports": {"type": "array", "items": {"$ref": "io.x.v1.Port"},
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"]},
            "old": {"type": "array", "items": {"$ref": "io.x.v1.Item"},
                "x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge"},
            "raw": {"$ref": "io.k8s.apimachinery.pkg.runtime.RawExtension"},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }},
        "io.x.v1.Selector": {"type": "object", "x-kubernetes-map-type": "atomic",
            "properties": {"matchLabels": {"type": "object", "additionalProperties": {"type": "string"}}}},
        "io.x.v1.Item": {"type": "object", "properties": {
            "name": {"type": "string"}, "image": {"type": "string"}, "on": {"type": "boolean"},
            "res": {"allOf": [{"$ref": "io.x.v1.Res"}], "default": {}}}},
        "io.x.v1.Res": {"type": "object", "properties": {"cpu": {"type": "string"}}},
        "io.x.v1.Port": {"type": "object", "properties": {
            "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string"}}},
        "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
    }))
    .unwrap()
});

static STATUS: LazyLock<Set> = LazyLock::new(|| Set::of_names([&["status"][..]]));
static SPEC: LazyLock<Set> = LazyLock::new(|| Set::of_names([&["spec"][..], &["metadata"][..]]));

fn typed() -> Typed<'static> {
    Typed::new(DEFINITIONS.get("Root").unwrap(), &DEFINITIONS)
}

fn known<'a>(version: &str) -> Option<Typed<'a>> {
    (version != "x/gone").then(typed)
}

fn by<'a>(manager: &'a str, time: &'a str) -> Context<'a> {
    Context {
        manager,
        api_version: "x/v1",
        kind: "Thing",
        subresource: "",
        time,
        force: false,
        typed: typed(),
        reset: &STATUS,
        typed_for: &known,
    }
}

fn thing(mut rest: Value) -> Value {
    rest["apiVersion"] = json!("x/v1");
    rest["kind"] = json!("Thing");
    meta::set(&mut rest, &["metadata", "name"], json!("t"));
    rest
}

fn created(rest: Value, manager: &str) -> Value {
    let mut object = thing(rest);
    update(None, &mut object, &by(manager, "T1"));
    object["metadata"]["uid"] = json!("u");
    object
}

/// A merge patch by a manager.
fn patched(live: &Value, patch: &Value, cx: &Context<'_>) -> Value {
    let mut new = crate::patch::merge_patch(live, patch);
    update(Some(live), &mut new, cx);
    new
}

/// Manager, operation, time and fields of each entry.
fn owners(object: &Value) -> Vec<(String, Value)> {
    let entries = meta::get(object, &["metadata", "managedFields"]).and_then(Value::as_array);
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or("-").to_owned();
    let show = |entry: &Value| {
        let who = ["manager", "operation", "time"].map(|name| text(entry, name)).join(" ");
        (who, entry["fieldsV1"].clone())
    };
    entries.into_iter().flatten().map(show).collect()
}

fn owner(who: &str, fields: Value) -> (String, Value) {
    (who.to_owned(), fields)
}

#[test]
fn a_creator_owns_what_it_says_but_not_what_is_always_there() {
    let object = created(
        json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["f"]}, "status": {"ready": 1},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "args": ["x"],
                "items": [{"name": "i", "image": "x", "res": {}}], "ports": [{"port": 80}],
                "raw": {"a": {"b": 1}}, "any": {"a": {"b": [1]}, "c": {}}}}),
        "m",
    );
    assert_eq!(
        owners(&object),
        [owner(
            "m Update T1",
            json!({
                "f:metadata": {"f:labels": {".": {}, "f:a": {}}, "f:finalizers": {".": {}, "v:\"f\"": {}}},
                "f:spec": {
                    "f:replicas": {}, "f:selector": {}, "f:args": {}, "f:raw": {},
                    "f:items": {"k:{\"name\":\"i\"}": {".": {}, "f:name": {}, "f:image": {}, "f:res": {}}},
                    "f:ports": {".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}},
                    "f:any": {".": {}, "f:a": {".": {}, "f:b": {}}, "f:c": {}},
                },
            })
        )]
    );
}

#[test]
fn a_change_takes_fields_from_others_and_a_removal_from_all() {
    let live = created(json!({"metadata": {"labels": {"a": "1", "b": "1"}}}), "m");
    let live = patched(&live, &json!({"metadata": {"labels": {"a": "2", "c": "1"}}}), &by("n", "T2"));
    assert_eq!(
        owners(&live),
        [
            owner("m Update T1", json!({"f:metadata": {"f:labels": {".": {}, "f:b": {}}}})),
            owner("n Update T2", json!({"f:metadata": {"f:labels": {"f:a": {}, "f:c": {}}}})),
        ]
    );
    let live = patched(&live, &json!({"metadata": {"labels": {"b": null, "c": null}}}), &by("o", "T3"));
    assert_eq!(
        owners(&live),
        [
            owner("m Update T1", json!({"f:metadata": {"f:labels": {".": {}}}})),
            owner("n Update T2", json!({"f:metadata": {"f:labels": {"f:a": {}}}})),
        ]
        .map(|(who, fields)| {
            // A node that is only itself is written without a dot.
            let fields = Set::from_fields_v1(&fields).unwrap().to_fields_v1();
            (who, fields)
        })
    );
}

#[test]
fn a_write_without_effect_changes_no_entry() {
    let live = created(json!({"spec": {"replicas": 1}}), "m");
    let mut new = live.clone();
    new["metadata"]["resourceVersion"] = json!("9");
    update(Some(&live), &mut new, &by("n", "T2"));
    assert_eq!(owners(&new), owners(&live));
}

#[test]
fn a_subresource_has_its_own_entries() {
    let live = created(json!({"spec": {"replicas": 1}}), "m");
    let cx = Context { subresource: "status", reset: &SPEC, ..by("m", "T2") };
    let mut new = live.clone();
    new["status"] = json!({"ready": 1});
    new["spec"]["replicas"] = json!(7);
    new["metadata"]["managedFields"] = json!([{}]);
    update(Some(&live), &mut new, &cx);
    assert_eq!(
        owners(&new),
        [
            owner("m Update T1", json!({"f:spec": {"f:replicas": {}}})),
            owner("m Update T2", json!({"f:status": {".": {}, "f:ready": {}}})),
        ]
    );
    assert_eq!(new["metadata"]["managedFields"][1]["subresource"], "status");
}

#[test]
fn clients_may_reset_and_write_entries() {
    let live = created(json!({"spec": {"replicas": 1}}), "m");
    for reset in [json!([]), json!([{}])] {
        let bare = patched(&live, &json!({"metadata": {"managedFields": reset}}), &by("n", "T2"));
        assert_eq!(owners(&bare), []);
        let still = patched(&bare, &json!({"spec": {"replicas": 2}}), &by("n", "T2"));
        assert_eq!(owners(&still), []);
    }
    let mut entry = live["metadata"]["managedFields"][0].clone();
    entry["manager"] = json!("renamed");
    let own = patched(&live, &json!({"metadata": {"managedFields": [entry]}}), &by("n", "T2"));
    assert_eq!(owners(&own)[0].0, "renamed Update T1");
    let kept =
        patched(&live, &json!({"metadata": {"managedFields": [{"manager": "broken"}]}}), &by("n", "T2"));
    assert_eq!(owners(&kept), owners(&live));
}

#[test]
fn entries_of_versions_that_are_gone_are_dropped() {
    let mut live = created(json!({"spec": {"replicas": 1}}), "m");
    live["metadata"]["managedFields"][0]["apiVersion"] = json!("x/gone");
    let new = patched(&live, &json!({"data": {"a": "1"}}), &by("n", "T2"));
    assert_eq!(owners(&new), [owner("n Update T2", json!({"f:data": {".": {}, "f:a": {}}}))]);
}

#[test]
fn the_oldest_updaters_are_put_together() {
    let mut live = created(json!({"data": {"k": "1"}}), "m");
    for index in 0..12 {
        let time = format!("T{:02}", index + 10);
        live = patched(&live, &json!({"data": {format!("k{index}"): "1"}}), &by(&format!("m{index}"), &time));
    }
    let owners = owners(&live);
    assert_eq!(owners.len(), 10);
    assert_eq!(
        owners[0],
        owner(
            "ancient-changes Update T12",
            json!({"f:data": {".": {}, "f:k": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}}})
        )
    );
}

#[test]
fn sets_follow_types_that_became_atomic() {
    let mut live = created(json!({"spec": {"selector": {"matchLabels": {"a": "b"}}}}), "m");
    live["metadata"]["managedFields"][0]["fieldsV1"] =
        json!({"f:spec": {"f:selector": {"f:matchLabels": {"f:a": {}}}}});
    let new = patched(&live, &json!({"data": {"a": "1"}}), &by("n", "T2"));
    assert_eq!(owners(&new)[0], owner("m Update T1", json!({"f:spec": {"f:selector": {}}})));
}

#[test]
fn an_apply_makes_an_object() {
    let config = thing(json!({"spec": {"replicas": 1, "items": [{"name": "i"}]}}));
    let object = apply(None, &config, &by("a", "T1")).unwrap().unwrap();
    assert_eq!(object["spec"], config["spec"]);
    let fields =
        json!({"f:spec": {"f:replicas": {}, "f:items": {"k:{\"name\":\"i\"}": {".": {}, "f:name": {}}}}});
    assert_eq!(owners(&object), [owner("a Apply T1", fields)]);
    assert_eq!(apply(Some(&object), &config, &by("a", "T2")), Ok(None));
}

#[test]
fn an_apply_conflicts_with_the_owners_of_other_values() {
    let live = created(json!({"spec": {"replicas": 1, "items": [{"name": "i", "image": "x"}]}}), "m");
    let one = thing(json!({"spec": {"replicas": 2}}));
    let error = apply(Some(&live), &one, &by("a", "T2")).unwrap_err();
    assert_eq!(
        error.status().to_value(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 409, "reason": "Conflict",
            "message": "Apply failed with 1 conflict: conflict with \"m\" using x/v1: .spec.replicas",
            "details": {"causes": [{"reason": "FieldManagerConflict", "message": "conflict with \"m\" using x/v1",
                "field": ".spec.replicas"}]},
        })
    );
    let two = thing(json!({"spec": {"replicas": 2, "items": [{"name": "i", "image": "y"}]}}));
    let error = apply(Some(&live), &two, &by("a", "T2")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"m\" using x/v1:\n- .spec.replicas\n\
         - .spec.items[name=\"i\"].image"
    );
    let forced = apply(Some(&live), &two, &Context { force: true, ..by("a", "T2") }).unwrap().unwrap();
    assert_eq!(forced["spec"], two["spec"]);
    assert_eq!(
        owners(&forced),
        [
            owner(
                "a Apply T2",
                json!({"f:spec": {"f:replicas": {}, "f:items": {"k:{\"name\":\"i\"}": {".": {}, "f:name": {}, "f:image": {}}}}})
            ),
            owner(
                "m Update T1",
                json!({"f:spec": {"f:items": {"k:{\"name\":\"i\"}": {".": {}, "f:name": {}}}}})
            ),
        ]
    );
}

#[test]
fn appliers_share_fields_of_the_same_value_and_the_last_one_removes_them() {
    let config = thing(json!({"data": {"a": "1", "b": "1"}}));
    let live = apply(None, &config, &by("a", "T1")).unwrap().unwrap();
    let shared = thing(json!({"data": {"a": "1"}}));
    let live = apply(Some(&live), &shared, &by("b", "T2")).unwrap().unwrap();
    // Nothing but ownership changed: no time.
    assert_eq!(owners(&live)[0], owner("b Apply -", json!({"f:data": {"f:a": {}}})));
    let less = thing(json!({"data": {"b": "1"}}));
    let live = apply(Some(&live), &less, &by("a", "T3")).unwrap().unwrap();
    assert_eq!(live["data"], json!({"a": "1", "b": "1"}));
    let none = thing(json!({}));
    let live = apply(Some(&live), &none, &by("b", "T4")).unwrap().unwrap();
    assert_eq!(live["data"], json!({"b": "1"}));
    let live = apply(Some(&live), &none, &by("a", "T5")).unwrap().unwrap();
    assert_eq!(live.get("data"), None);
    assert_eq!(owners(&live), []);
}

#[test]
fn what_updaters_own_survives_an_applier_that_forgets_it() {
    let live = apply(None, &thing(json!({"spec": {"replicas": 1}, "data": {"a": "1"}})), &by("a", "T1"))
        .unwrap()
        .unwrap();
    let mut uid = live.clone();
    uid["metadata"]["uid"] = json!("u");
    let live = patched(&uid, &json!({"spec": {"replicas": 3}}), &by("hpa", "T2"));
    let config = thing(json!({"data": {"a": "1"}}));
    assert_eq!(apply(Some(&live), &config, &by("a", "T3")), Ok(None));
    assert_eq!(live["spec"]["replicas"], 3);
}

#[test]
fn lists_keep_their_order_and_take_new_items_where_they_are_said() {
    let names = |object: &Value| -> String {
        let items = object["spec"]["items"].as_array().unwrap();
        items.iter().map(|item| item["name"].as_str().unwrap()).collect()
    };
    let said = |names: &str| -> Value {
        names.chars().map(|name| json!({"name": name.to_string()})).collect::<Vec<_>>().into()
    };
    for (live, config, merged) in [
        ("ab", "c", "abc"),
        ("ab", "ca", "cab"),
        ("abc", "cb", "acb"),
        ("abc", "xby", "axbcy"),
        ("ab", "ba", "ba"),
        ("", "ab", "ab"),
        ("abcd", "dxa", "bcdxa"),
    ] {
        let live = thing(json!({"spec": {"items": said(live)}}));
        let config = thing(json!({"spec": {"items": said(config)}}));
        assert_eq!(names(&merge(&live, &config, typed()).unwrap()), merged, "{live} {config}");
    }
}

#[test]
fn the_first_apply_on_an_untracked_object_names_all_owners() {
    let mut live = thing(json!({"metadata": {"labels": {"a": "1"}}}));
    live["metadata"]["uid"] = json!("u");
    let error =
        apply(Some(&live), &thing(json!({"metadata": {"labels": {"a": "2"}}})), &by("a", "T1")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using x/v1: .metadata.labels.a"
    );
    let config = thing(json!({"metadata": {"labels": {"b": "1"}}}));
    let live = apply(Some(&live), &config, &by("a", "T1")).unwrap().unwrap();
    assert_eq!(owners(&live)[1].0, "before-first-apply Update T1");
    // The map keeps its manager, even when it is gone.
    let emptied = apply(Some(&live), &thing(json!({})), &by("a", "T2")).unwrap().unwrap();
    assert_eq!(emptied["metadata"]["labels"], json!({"a": "1"}));
}

#[test]
fn kubectl_takes_over_from_its_client_side_apply() {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let said = thing(json!({"data": {"a": "1", "b": "1"}})).to_string();
    let live = created(
        json!({"metadata": {"annotations": {annotation: said}}, "data": {"a": "1", "b": "1"}}),
        "kubectl-client-side-apply",
    );
    let config = thing(json!({"data": {"a": "<2>"}}));
    let taken = apply(Some(&live), &config, &by("kubectl", "T2")).unwrap().unwrap();
    assert_eq!(taken["data"], json!({"a": "<2>", "b": "1"}));
    assert_eq!(
        taken["metadata"]["annotations"][annotation],
        "{\"apiVersion\":\"x/v1\",\"data\":{\"a\":\"\\u003c2\\u003e\"},\"kind\":\"Thing\",\"metadata\":{\"name\":\"t\"}}\n"
    );
    let changed = patched(&live, &json!({"data": {"a": "9"}}), &by("human", "T2"));
    assert!(apply(Some(&changed), &config, &by("kubectl", "T3")).is_err());
    assert!(apply(Some(&live), &config, &by("another", "T3")).is_err());
}

#[test]
fn configurations_that_do_not_fit_are_refused_in_upstreams_words() {
    let prefix = "failed to create typed patch object (/t; x/v1, Kind=Thing): ";
    for (config, problem) in [
        (json!({"spec": {"foo": 1}}), ".spec.foo: field not declared in schema"),
        (json!({"spec": {"replicas": "x"}}), ".spec.replicas: expected numeric (int or float), got string"),
        (json!({"data": {"a": 3}}), ".data.a: expected string, got &value.valueUnstructured{Value:3}"),
        (
            json!({"data": {"a": {"b": "c"}}}),
            ".data.a: expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"b\":\"c\"}}",
        ),
        (
            json!({"spec": {"items": [{"name": "a", "on": "x"}]}}),
            ".spec.items[name=\"a\"].on: expected boolean, got &{x}",
        ),
        (json!({"spec": {"items": {}}}), ".spec.items: expected list, got &{map[]}"),
        (json!({"spec": []}), ".spec: expected map, got &{[]}"),
        (
            json!({"spec": {"items": [{"image": "a"}]}}),
            ".spec.items: element 0: associative list with keys has an element that omits all key fields [\"name\"] \
             (and doesn't have default values for any key fields)",
        ),
        (
            json!({"spec": {"items": [{"name": "a"}, {"name": "a"}]}}),
            ".spec.items: duplicate entries for key [name=\"a\"]",
        ),
    ] {
        let error = apply(None, &thing(config.clone()), &by("a", "T1")).unwrap_err();
        assert_eq!(error, ApplyError::Internal(format!("{prefix}{problem}")), "{config}");
    }
    for (config, problem) in [
        (
            json!({"apiVersion": "x/v1", "kind": "Thing", "metadata": {"managedFields": []}}),
            "metadata.managedFields must be nil",
        ),
        (json!({"apiVersion": "v2", "kind": "Foo"}), "invalid object type: /v2, Kind=Foo"),
    ] {
        let error = apply(None, &config, &by("a", "T1")).unwrap_err();
        assert_eq!(error, ApplyError::BadRequest(problem.to_owned()), "{config}");
    }
}

#[test]
fn times_alone_are_no_change() {
    let live = created(json!({"data": {"a": "1"}}), "m");
    let mut new = live.clone();
    new["metadata"]["managedFields"][0]["time"] = json!("T9");
    let mut other = new.clone();
    ignore_times(&live, &mut new);
    assert_eq!(new, live);
    other["data"]["a"] = json!("2");
    ignore_times(&live, &mut other);
    assert_eq!(other["metadata"]["managedFields"][0]["time"], "T9");
}

#[test]
fn a_manager_extracts_what_it_owns() {
    let object =
        thing(json!({"spec": {"replicas": 1, "items": [{"name": "a", "image": "x"}, {"name": "b"}]}}));
    let fields = Set::from_fields_v1(
        &json!({"f:spec": {"f:items": {"k:{\"name\":\"a\"}": {"f:name": {}, "f:image": {}}}}}),
    )
    .unwrap();
    let part = json!({"spec": {"items": [{"name": "a", "image": "x"}]}});
    assert_eq!(extract(&object, &fields, typed()), part);
    assert_eq!(
        remove_items(&object, &fields, typed())["spec"],
        json!({"replicas": 1, "items": [{"name": "b"}]})
    );
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        3 => "[a-c]".prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<i8>().prop_map(Value::from),
    ];
    let name =
        "(name|labels|metadata|spec|items|ports|port|image|data|any|raw|managedFields|finalizers|manager)";
    leaf.prop_recursive(5, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(name, inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Objects of the type.
fn any_thing() -> impl Strategy<Value = Value> {
    let items = prop::collection::btree_map("[a-d]", prop::option::of("[xy]"), 0..4);
    let labels = prop::collection::btree_map("[a-c]", "[12]", 0..3);
    let args = prop::option::of(prop::collection::vec("[ab]", 0..3));
    (items, labels, args, prop::option::of(0..3)).prop_map(|(items, labels, args, replicas)| {
        let item = |(name, image): (String, Option<String>)| match image {
            Some(image) => json!({"name": name, "image": image}),
            None => json!({"name": name}),
        };
        let mut object = thing(json!({"spec": {}, "metadata": {"labels": labels}}));
        let items: Vec<Value> = items.into_iter().map(item).collect();
        if !items.is_empty() {
            object["spec"]["items"] = json!(items);
        }
        if let Some(args) = args {
            object["spec"]["args"] = json!(args);
        }
        if let Some(replicas) = replicas {
            object["spec"]["replicas"] = json!(replicas);
        }
        // An empty map is owned as such.
        if object["spec"] == json!({}) {
            meta::remove(&mut object, &["spec"]);
        }
        if object["metadata"]["labels"] == json!({}) {
            meta::remove(&mut object, &["metadata", "labels"]);
        }
        object
    })
}

proptest! {
    #[test]
    fn no_object_panics(live in any_value(), new in any_value()) {
        let mut updated = new.clone();
        update(Some(&live), &mut updated, &by("m", "T1"));
        let mut config = if new.is_object() { new } else { json!({}) };
        config["apiVersion"] = json!("x/v1");
        config["kind"] = json!("Thing");
        let _ = apply(Some(&live), &config, &by("m", "T1"));
        ignore_times(&live, &mut updated);
    }

    #[test]
    fn comparing_is_exact(old in any_thing(), new in any_thing()) {
        let comparison = compare(&old, &new, typed());
        prop_assert_eq!(comparison.is_same(), old == new);
        let back = compare(&new, &old, typed());
        prop_assert_eq!(&back.added, &comparison.removed);
        prop_assert_eq!(&back.modified, &comparison.modified);
        prop_assert!(comparison.added.intersection(&comparison.removed).is_empty());
    }

    #[test]
    fn what_was_applied_is_there_and_applying_again_is_nothing(live in any_thing(), config in any_thing()) {
        let force = Context { force: true, ..by("a", "T1") };
        let mut live = live;
        update(None, &mut live, &by("m", "T0"));
        live["metadata"]["uid"] = json!("u");
        let applied = apply(Some(&live), &config, &force).unwrap().unwrap_or(live);
        let owned = of_object(&config, typed());
        prop_assert_eq!(owned.difference(&of_object(&applied, typed())).leaves().paths().len(), 0);
        prop_assert_eq!(apply(Some(&applied), &config, &force), Ok(None));
    }

    #[test]
    fn each_leaf_of_a_tracked_object_has_an_owner(first in any_thing(), second in any_thing()) {
        let mut live = first;
        // Objects without field managers are not tracked.
        live["data"] = json!({"a": "1"});
        update(None, &mut live, &by("m", "T0"));
        live["metadata"]["uid"] = json!("u");
        let mut new = second;
        new["metadata"]["uid"] = json!("u");
        update(Some(&live), &mut new, &by("n", "T1"));
        let owned = managed::decode(&new).unwrap().iter().fold(Set::default(), |all, entry| all.union(&entry.fields));
        let part = new.get("spec").map_or(json!({}), |spec| json!({"spec": spec}));
        prop_assert!(of_object(&part, typed()).leaves().difference(&owned).is_empty());
    }
}
