use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::{Definitions, Typed};

static DEFINITIONS: LazyLock<Definitions> = LazyLock::new(|| {
    Definitions::from_openapi(&json!({
        "Root": {"type": "object", "properties": {
            "items": {"type": "array", "items": {"$ref": "x.Item"},
                "x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge"},
            "unkeyed": {"type": "array", "items": {"$ref": "x.Item"}, "x-kubernetes-patch-strategy": "merge"},
            "words": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
            "args": {"type": "array", "items": {"type": "string"}},
            "whole": {"type": "object", "x-kubernetes-patch-strategy": "replace"},
            "strategy": {"$ref": "x.Item", "x-kubernetes-patch-strategy": "retainKeys"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        }},
        "x.Item": {"type": "object", "properties": {
            "name": {"type": "string"}, "value": {"type": "string"},
            "ports": {"type": "array", "items": {"type": "object"},
                "x-kubernetes-patch-merge-key": "port", "x-kubernetes-patch-strategy": "merge"},
        }},
    }))
    .unwrap()
});

fn typed() -> Typed<'static> {
    Typed::new(DEFINITIONS.get("Root").unwrap(), &DEFINITIONS)
}

fn merged(object: &Value, patch: &Value) -> Value {
    strategic_merge(object, patch, typed()).unwrap_or_else(|error| panic!("{patch}: {error}"))
}

#[test]
fn json_patches_do_what_their_operations_say() {
    let object = json!({"a": {"b": [1, 2, 3]}, "c": "x", "d/e": 1});
    for (patch, result) in [
        (
            json!([{"op": "add", "path": "/a/b/1", "value": 9}]),
            json!({"a": {"b": [1, 9, 2, 3]}, "c": "x", "d/e": 1}),
        ),
        (
            json!([{"op": "add", "path": "/a/b/-", "value": 9}]),
            json!({"a": {"b": [1, 2, 3, 9]}, "c": "x", "d/e": 1}),
        ),
        (json!([{"op": "remove", "path": "/a/b/-1"}]), json!({"a": {"b": [1, 2]}, "c": "x", "d/e": 1})),
        (
            json!([{"op": "replace", "path": "/new", "value": 1}]),
            json!({"a": {"b": [1, 2, 3]}, "c": "x", "d/e": 1, "new": 1}),
        ),
        (json!([{"op": "remove", "path": "/d~1e"}]), json!({"a": {"b": [1, 2, 3]}, "c": "x"})),
        (
            json!([{"op": "move", "from": "/c", "path": "/a/c"}]),
            json!({"a": {"b": [1, 2, 3], "c": "x"}, "d/e": 1}),
        ),
        (
            json!([{"op": "copy", "from": "/a/b/0", "path": "/c"}]),
            json!({"a": {"b": [1, 2, 3]}, "c": 1, "d/e": 1}),
        ),
        (
            json!([{"op": "test", "path": "/c", "value": "x"}, {"op": "test", "path": "/none", "value": null}]),
            object.clone(),
        ),
        (json!([{"op": "replace", "path": "", "value": {"z": 1}}]), json!({"z": 1})),
        (json!([]), object.clone()),
    ] {
        assert_eq!(json_patch(&object, &patch), Ok(result), "{patch}");
    }
}

#[test]
fn json_patches_that_do_not_apply_are_unprocessable() {
    let object = json!({"a": {"b": [1]}, "c": "x"});
    for patch in [
        json!([{"op": "test", "path": "/c", "value": "y"}]),
        json!([{"op": "remove", "path": "/none"}]),
        json!([{"op": "add", "path": "/none/x", "value": 1}]),
        json!([{"op": "add", "path": "/c/x", "value": 1}]),
        json!([{"op": "add", "path": "/a/b/5", "value": 1}]),
        json!([{"op": "add", "path": "", "value": {}}]),
        json!([{"op": "add", "value": 1}]),
        json!([{"op": "spoil", "path": "/c"}]),
        json!([{"path": "/c"}]),
    ] {
        let error = json_patch(&object, &patch).unwrap_err();
        assert_eq!(error, PatchError::unprocessable(), "{patch}");
    }
    let status = PatchError::unprocessable().status().to_value();
    assert_eq!(status["details"], json!({}));
    assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
}

#[test]
fn malformed_json_patches_are_bad_requests() {
    let error = json_patch(&json!({}), &json!({"op": "add"})).unwrap_err();
    assert_eq!(error.class, PatchErrorClass::BadRequest);
    assert_eq!(
        error.message,
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
    );
    let many = Value::Array(vec![json!({"op": "test", "path": ""}); 10_001]);
    let error = json_patch(&json!({}), &many).unwrap_err();
    assert_eq!(error.message, "The allowed maximum operations in a JSON patch is 10000, got 10001");
    assert_eq!(error.class, PatchErrorClass::TooLarge);
}

#[test]
fn merge_patches_replace_and_remove() {
    let object = json!({"a": {"b": 1, "c": 2}, "l": [1, 2]});
    assert_eq!(
        merge_patch(&object, &json!({"a": {"b": null, "d": {"e": null, "f": 1}}, "l": [3]})),
        json!({"a": {"c": 2, "d": {"f": 1}}, "l": [3]})
    );
}

#[test]
fn lists_with_a_key_are_merged_by_it() {
    let object = json!({"items": [{"name": "a", "value": "1", "ports": [{"port": 1}]}, {"name": "b"}]});
    for (patch, items) in [
        (
            json!({"items": [{"name": "a", "value": "2"}]}),
            json!([{"name": "a", "value": "2", "ports": [{"port": 1}]}, {"name": "b"}]),
        ),
        (
            json!({"items": [{"name": "c"}]}),
            json!([{"name": "c"}, {"name": "a", "value": "1", "ports": [{"port": 1}]}, {"name": "b"}]),
        ),
        (json!({"items": [{"name": "a", "$patch": "delete"}]}), json!([{"name": "b"}])),
        (json!({"items": [{"name": "x"}, {"$patch": "replace"}]}), json!([{"name": "x"}])),
        (
            json!({"items": [{"name": "a", "ports": [{"port": 2, "x": 1}], "value": null}]}),
            json!([{"name": "a", "ports": [{"port": 2, "x": 1}, {"port": 1}]}, {"name": "b"}]),
        ),
        (
            json!({"$setElementOrder/items": [{"name": "b"}, {"name": "a"}]}),
            json!([{"name": "b"}, {"name": "a", "value": "1", "ports": [{"port": 1}]}]),
        ),
        (
            json!({"$setElementOrder/items": [{"name": "a"}, {"name": "c"}, {"name": "b"}], "items": [{"name": "c"}]}),
            json!([{"name": "a", "value": "1", "ports": [{"port": 1}]}, {"name": "c"}, {"name": "b"}]),
        ),
        (json!({"items": [{"name": "a", "$patch": "replace", "value": "9"}]}), json!([])),
    ] {
        assert_eq!(merged(&object, &patch), json!({"items": items}), "{patch}");
    }
}

#[test]
fn lists_of_words_are_joined_or_replaced() {
    let object = json!({"words": ["a", "b"], "args": ["1"]});
    for (patch, result) in [
        (json!({"words": ["c", "a"]}), json!({"words": ["c", "a", "b"], "args": ["1"]})),
        (json!({"$deleteFromPrimitiveList/words": ["a"]}), json!({"words": ["b"], "args": ["1"]})),
        (json!({"$deleteFromPrimitiveList/none": ["a"]}), object.clone()),
        (
            json!({"$setElementOrder/words": ["b", "c", "a"], "words": ["c"]}),
            json!({"words": ["b", "c", "a"], "args": ["1"]}),
        ),
        (json!({"args": ["2", "3"]}), json!({"words": ["a", "b"], "args": ["2", "3"]})),
    ] {
        assert_eq!(merged(&object, &patch), result, "{patch}");
    }
}

#[test]
fn maps_are_merged_replaced_or_pruned() {
    let object = json!({"whole": {"a": 1}, "strategy": {"name": "x", "value": "1"}, "labels": {"a": "1", "b": "2"}, "odd": {"a": 1}});
    for (patch, name, result) in [
        (json!({"whole": {"b": 2}}), "whole", json!({"b": 2})),
        (json!({"strategy": {"$retainKeys": ["name"], "name": "y"}}), "strategy", json!({"name": "y"})),
        (json!({"labels": {"a": null, "c": "3"}}), "labels", json!({"b": "2", "c": "3"})),
        (json!({"labels": {"$patch": "replace", "z": "1"}}), "labels", json!({"z": "1"})),
        (json!({"labels": {"$patch": "delete"}}), "labels", json!({})),
        (json!({"odd": {"b": 2}}), "odd", json!({"a": 1, "b": 2})),
        (json!({"new": {"a": null, "b": {"$patch": "delete"}, "c": 1}}), "new", json!({"c": 1})),
    ] {
        assert_eq!(merged(&object, &patch)[name], result, "{patch}");
    }
    assert_eq!(merged(&json!({"a": 1}), &json!({"$patch": "replace", "b": 1})), json!({"b": 1}));
    assert_eq!(merged(&json!({"labels": {"a": "1"}}), &json!({"labels": null})), json!({}));
}

#[test]
fn strategic_patches_that_make_no_sense_are_refused_in_upstreams_words() {
    use PatchErrorClass as C;
    let object =
        json!({"labels": {"a": "1"}, "items": [{"name": "a"}], "words": ["a"], "unkeyed": [{"name": "a"}]});
    for (patch, class, message) in [
        (
            json!({"labels": {"$patch": "foo"}}),
            C::Internal,
            "unknown patch type: foo in map: map[$patch:foo]",
        ),
        (json!({"labels": {"$retainKeys": "x"}}), C::BadRequest, "invalid patch format of retainKeys"),
        (
            json!({"labels": {"$retainKeys": ["x"], "y": "1"}}),
            C::BadRequest,
            "invalid patch format of retainKeys",
        ),
        (json!({"$deleteFromPrimitiveList": ["a"]}), C::BadRequest, "invalid patch format of primitive list"),
        (json!({"$setElementOrder": ["a"]}), C::BadRequest, "invalid patch format of setElementOrder list"),
        (
            json!({"$setElementOrder/words": "x"}),
            C::Internal,
            "expected a []interface {}, but received a string",
        ),
        (
            json!({"items": [{"value": "1"}]}),
            C::Internal,
            "map: map[value:1] does not contain declared merge key: name",
        ),
        (
            json!({"items": [{"name": "a", "$patch": "merge"}]}),
            C::Internal,
            "merging lists cannot yet be specified in the patch",
        ),
        (json!({"unkeyed": [{"name": "a"}]}), C::Internal, "cannot merge lists without merge key for Item"),
        (json!({"words": [1]}), C::Internal, "list element types are not identical: [[a] [1]]"),
        (
            json!({"$setElementOrder/words": ["b"], "words": ["c"]}),
            C::Internal,
            "The order in patch list:\n[c]\n doesn't match $setElementOrder list:\n[b]\n",
        ),
        (
            json!([]),
            C::BadRequest,
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
    ] {
        let error = strategic_merge(&object, &patch, typed()).unwrap_err();
        assert_eq!((error.class, &*error.message), (class, message), "{patch}");
    }
}

#[test]
fn copies_of_copies_do_not_exhaust_memory() {
    let doubling: Vec<Value> =
        (0..40).map(|n| json!({"op": "copy", "from": "/a", "path": format!("/a/c{n}")})).collect();
    let error = json_patch(&json!({"a": {"b": "x".repeat(100)}}), &json!(doubling)).unwrap_err();
    assert_eq!(error.class, PatchErrorClass::TooLarge);
    assert!(error.message.contains("exceeding the limit 3145728"), "{}", error.message);
}

#[test]
fn operations_on_results_of_operations_do_not_nest_without_end() {
    let deep = (0..100).fold(json!({}), |inner, _| json!({"a": inner}));
    let operations: Vec<Value> =
        (0..20).map(|n| json!({"op": "add", "path": "/a".repeat(100 * n + 1), "value": deep})).collect();
    assert!(json_patch(&json!({}), &json!(operations)).is_err());
    let moved = json!([{"op": "add", "path": "/b", "value": deep}, {"op": "copy", "from": "/b", "path": format!("/b{}", "/a".repeat(99))}]);
    assert!(json_patch(&json!({}), &moved).is_err());
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i8>().prop_map(Value::from),
        "(a|b|delete|replace|merge)".prop_map(Value::from),
    ];
    let name = "(name|items|words|labels|\\$patch|\\$retainKeys|\\$setElementOrder/items|\\$deleteFromPrimitiveList/words|/)";
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(name, inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_patch_panics(object in any_value(), patch in any_value(), op in "(add|remove|replace|move|copy|test)", path in "(/(a|0|-1|-|items|name|~1)){0,3}", from in "(/(a|0|items)){0,3}") {
        let _ = strategic_merge(&object, &patch, typed());
        let once = merge_patch(&object, &patch);
        prop_assert_eq!(merge_patch(&once, &patch), once);
        let _ = json_patch(&object, &patch);
        let _ = json_patch(&object, &json!([{"op": op, "path": path, "from": from, "value": patch}]));
    }
}
