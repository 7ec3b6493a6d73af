//! Messages of validation, as a real server writes them. The tables were recorded from one.

#![recursion_limit = "256"]

mod support;

use aro_kube_crd::CustomType;
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{lines, message, with_spec};

fn keywords() -> CustomType {
    let text = json!({"type": "string"});
    with_spec(json!({
        "i": {"type": "integer"}, "i32": {"type": "integer", "format": "int32"},
        "i64": {"type": "integer", "format": "int64"}, "n": {"type": "number"}, "s": text, "b": {"type": "boolean"},
        "o": {"type": "object", "properties": {"x": text}}, "a": {"type": "array", "items": text},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "ios": {"x-kubernetes-int-or-string": true}, "nul": {"type": "string", "nullable": true},
        "e": {"type": "string", "enum": ["b", "c"]}, "ei": {"type": "integer", "enum": [1, 2]},
        "minl": {"type": "string", "minLength": 1}, "maxl": {"type": "string", "maxLength": 2},
        "pat": {"type": "string", "pattern": "^a+$"},
        "mn": {"type": "integer", "minimum": 2}, "mx": {"type": "integer", "maximum": 3},
        "emn": {"type": "integer", "minimum": 2, "exclusiveMinimum": true},
        "emx": {"type": "integer", "maximum": 3, "exclusiveMaximum": true},
        "fmn": {"type": "number", "minimum": 2.5}, "mo": {"type": "integer", "multipleOf": 5},
        "mof": {"type": "number", "multipleOf": 0.5},
        "mini": {"type": "array", "items": text, "minItems": 2},
        "maxi": {"type": "array", "items": text, "maxItems": 2},
        "minp": {"type": "object", "minProperties": 2, "additionalProperties": text},
        "maxp": {"type": "object", "maxProperties": 1, "additionalProperties": text},
        "req": {"type": "object", "required": ["x", "y"], "properties": {"x": text,
            "y": {"type": "object", "required": ["z"], "properties": {"z": text}}}},
        "oneof": {"type": "object", "properties": {"x": text, "y": text},
            "oneOf": [{"required": ["x"]}, {"required": ["y"]}]},
        "anyof": {"type": "object", "properties": {"x": text, "y": text},
            "anyOf": [{"required": ["x"]}, {"required": ["y"]}]},
        "allof": {"type": "object", "properties": {"x": text, "y": text},
            "allOf": [{"required": ["x"]}, {"properties": {"y": {"pattern": "^q"}}}]},
        "nott": {"type": "object", "properties": {"x": text}, "not": {"required": ["x"]}},
        "st": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "mp": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": text,
                "p": {"type": "string", "default": "TCP"}}}},
        "ios2": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "fmt": {"type": "string", "format": "ipv4", "minLength": 3},
        "r": {"type": "object", "required": ["x"], "minProperties": 3, "properties": {"x": text, "a": text}},
        "eo": {"type": "object", "properties": {"a": text}, "enum": [{"a": "1"}]},
        "er": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
    }))
}

#[test]
fn messages_read_like_upstreams() {
    let custom = keywords();
    for (spec, expected) in [
        (
            json!({"i": "x"}),
            r#"spec.i: Invalid value: "string": spec.i in body must be of type integer: "string""#,
        ),
        (
            json!({"i": 1.5}),
            r#"[spec.i: Invalid value: "number": spec.i in body must be of type integer: "number", <nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.i]"#,
        ),
        (
            json!({"i": true}),
            r#"spec.i: Invalid value: "boolean": spec.i in body must be of type integer: "boolean""#,
        ),
        (json!({"i": null}), ""),
        (
            json!({"i": 1e20}),
            r#"[spec.i: Invalid value: "number": spec.i in body must be of type integer: "number", <nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.i]"#,
        ),
        (json!({"i": 1.0}), ""),
        (
            json!({"i32": 2_147_483_648_u64}),
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.i32"#,
        ),
        (
            json!({"i32": 1.5}),
            r#"[spec.i32: Invalid value: "float64": spec.i32 in body must be of type int32: "float64", <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.i32]"#,
        ),
        (
            json!({"i64": 9_223_372_036_854_775_808_u64}),
            r#"[spec.i64: Invalid value: "float64": spec.i64 in body must be of type int64: "float64", <nil>: Invalid value: "": Checked value must be of type integer with format int64 in spec.i64]"#,
        ),
        (
            json!({"n": "x"}),
            r#"spec.n: Invalid value: "string": spec.n in body must be of type number: "string""#,
        ),
        (
            json!({"s": 1.5}),
            r#"spec.s: Invalid value: "number": spec.s in body must be of type string: "number""#,
        ),
        (
            json!({"s": [1]}),
            r#"spec.s: Invalid value: "array": spec.s in body must be of type string: "array""#,
        ),
        (
            json!({"o": "x"}),
            r#"spec.o: Invalid value: "string": spec.o in body must be of type object: "string""#,
        ),
        (
            json!({"a": [1, "a"]}),
            r#"spec.a[0]: Invalid value: "integer": spec.a[0] in body must be of type string: "integer""#,
        ),
        (
            json!({"a": ["a", null]}),
            r#"spec.a[1]: Invalid value: "null": spec.a[1] in body must be of type string: "null""#,
        ),
        (
            json!({"m": {"a": "x"}}),
            r#"spec.m.a: Invalid value: "string": spec.m.a in body must be of type integer: "string""#,
        ),
        (json!({"m": {"a": null}}), ""),
        (
            json!({"ios": 1.5}),
            r#"spec.ios: Invalid value: "number": spec.ios in body must be of type integer,string: "number""#,
        ),
        (json!({"nul": null}), ""),
        (json!({"e": "a"}), r#"spec.e: Unsupported value: "a": supported values: "b", "c""#),
        (
            json!({"e": 1}),
            r#"[spec.e: Invalid value: "integer": spec.e in body must be of type string: "integer", spec.e: Unsupported value: 1: supported values: "b", "c"]"#,
        ),
        (json!({"ei": 3}), r#"spec.ei: Unsupported value: 3: supported values: "1", "2""#),
        (
            json!({"minl": ""}),
            r#"spec.minl: Invalid value: "": spec.minl in body should be at least 1 chars long"#,
        ),
        (json!({"maxl": "é€a"}), "spec.maxl: Too long: may not be more than 2 bytes"),
        (json!({"maxl": "é€"}), ""),
        (json!({"pat": "b"}), r#"spec.pat: Invalid value: "b": spec.pat in body should match '^a+$'"#),
        (json!({"mn": 1}), "spec.mn: Invalid value: 1: spec.mn in body should be greater than or equal to 2"),
        (json!({"mx": 4}), "spec.mx: Invalid value: 4: spec.mx in body should be less than or equal to 3"),
        (json!({"emn": 2}), "spec.emn: Invalid value: 2: spec.emn in body should be greater than 2"),
        (json!({"emx": 3}), "spec.emx: Invalid value: 3: spec.emx in body should be less than 3"),
        (json!({"fmn": 2}), ""),
        (json!({"mo": 7}), "spec.mo: Invalid value: 7: spec.mo in body should be a multiple of 5"),
        (json!({"mof": 0.7}), "spec.mof: Invalid value: 0.7: spec.mof in body should be a multiple of 0.5"),
        (
            json!({"mini": ["a"]}),
            "spec.mini: Invalid value: 1: spec.mini in body should have at least 2 items",
        ),
        (json!({"maxi": ["a", "b", "c"]}), "spec.maxi: Too many: 3: must have at most 2 items"),
        (
            json!({"minp": {"a": "b"}}),
            "spec.minp: Invalid value: 1: spec.minp in body should have at least 2 properties",
        ),
        (json!({"maxp": {"a": "b", "c": "d"}}), "spec.maxp: Too many: 2: must have at most 1 item"),
        (json!({"req": {}}), "[spec.req.x: Required value, spec.req.y: Required value]"),
        (json!({"req": {"x": null, "y": {}}}), "[spec.req.y.z: Required value, spec.req.x: Required value]"),
        (
            json!({"oneof": {}}),
            r#"[<nil>: Invalid value: "": "spec.oneof" must validate one and only one schema (oneOf). Found none valid, spec.oneof.x: Required value]"#,
        ),
        (
            json!({"oneof": {"x": "1", "y": "2"}}),
            r#"<nil>: Invalid value: "": "spec.oneof" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ),
        (
            json!({"anyof": {}}),
            r#"[<nil>: Invalid value: "": "spec.anyof" must validate at least one schema (anyOf), spec.anyof.x: Required value]"#,
        ),
        (
            json!({"allof": {"x": "1", "y": "z"}}),
            r#"[spec.allof.y: Invalid value: "z": spec.allof.y in body should match '^q', <nil>: Invalid value: "": "spec.allof" must validate all the schemas (allOf)]"#,
        ),
        (
            json!({"nott": {"x": "1"}}),
            r#"<nil>: Invalid value: "": "spec.nott" must not validate the schema (not)"#,
        ),
        (json!({"st": ["a", "a", "b", "a"]}), r#"spec.st[1]: Duplicate value: "a""#),
        (json!({"mp": [{"k": "a"}, {"k": "a"}]}), r#"spec.mp[1]: Duplicate value: {"k":"a","p":"TCP"}"#),
        (json!({"mp": [{"k": "a"}, {"k": "a", "p": "UDP"}]}), ""),
        (
            json!({"ios2": 1.5}),
            r#"[spec.ios2: Invalid value: "number": spec.ios2 in body must be of type integer,string: "number", <nil>: Invalid value: "": "spec.ios2" must validate at least one schema (anyOf), spec.ios2: Invalid value: "number": spec.ios2 in body must be of type integer: "number", <nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.ios2]"#,
        ),
        (
            json!({"fmt": "1"}),
            r#"[spec.fmt: Invalid value: "1": spec.fmt in body should be at least 3 chars long, spec.fmt: Invalid value: "1": spec.fmt in body must be of type ipv4: "1"]"#,
        ),
        (
            json!({"r": {"a": 1}}),
            r#"[spec.r: Invalid value: 1: spec.r in body should have at least 3 properties, spec.r.a: Invalid value: "integer": spec.r.a in body must be of type string: "integer", spec.r.x: Required value]"#,
        ),
        (
            json!({"eo": {"a": "2"}}),
            r#"spec.eo: Unsupported value: {"a":"2"}: supported values: "{\"a\":\"1\"}""#,
        ),
        (json!({"er": {}}), "[spec.er.apiVersion: Required value, spec.er.kind: Required value]"),
        (
            json!({"er": {"apiVersion": "", "kind": "k"}}),
            r#"spec.er.apiVersion: Invalid value: "": must not be empty"#,
        ),
        (json!({"i32": {}}), r#"spec.i32: Invalid value: "": spec.i32 in body must be of type int32: """#),
        (
            json!({"fmt": 7}),
            r#"spec.fmt: Invalid value: "int64": spec.fmt in body must be of type ipv4: "int64""#,
        ),
        (
            json!({"mp": [-1]}),
            r#"[spec.mp[0]: Invalid value: "integer": spec.mp[0] in body must be of type object: "integer", spec.mp[0]: Invalid value: -1: must be an object for an array of list-type map]"#,
        ),
        (
            json!({"er": {"apiVersion": "a/b/c", "kind": "k"}}),
            r#"spec.er.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#,
        ),
    ] {
        assert_eq!(message(&custom, &json!({"spec": spec})), expected, "{spec}");
    }
    let expected = r#"spec: Invalid value: "string": spec in body must be of type object: "string""#;
    assert_eq!(message(&custom, &json!({"spec": "x"})), expected);
}

#[test]
fn unknown_fields_are_removed_and_named() {
    let text = json!({"type": "string"});
    let custom = with_spec(json!({
        "ap": {"type": "object", "additionalProperties": true},
        "pu": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"k": {"type": "object", "properties": {"z": text}}}},
        "er": {"type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"spec": {"type": "object", "properties": {"a": text}}}},
        "lo": {"type": "array", "items": {"type": "object", "properties": {"k": text}}},
    }));
    let mut object = json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "bar": {"x": 1},
        "metadata": {"name": "a", "foo": 1, "labels": {}, "annotations": {"a": null}, "creationTimestamp": null},
        "spec": {"foo": 1, "ap": {"a": 1, "b": {"c": 1}}, "pu": {"q": {"r": 1}, "k": {"y": 2}},
            "er": {"apiVersion": "v1", "kind": "Pod", "foo": 1, "metadata": {"foo": 1, "name": "x"}},
            "lo": [{"k": "a", "z": 1}]},
    });
    let unknown = custom.prune(&mut object);
    assert_eq!(
        unknown,
        [
            "metadata.foo",
            "bar",
            "spec.ap.b.c",
            "spec.er.foo",
            "spec.foo",
            "spec.lo[0].z",
            "spec.pu.k.y",
            "spec.er.metadata.foo"
        ]
    );
    assert_eq!(
        object,
        json!({
            "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a", "annotations": {"a": ""}},
            "spec": {"ap": {"a": 1, "b": {}}, "pu": {"q": {"r": 1}, "k": {}},
                "er": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}, "lo": [{"k": "a"}]},
        })
    );
}

#[test]
fn defaults_are_filled_in_as_upstream_does() {
    let port = json!({"type": "object", "properties": {"p": {"type": "integer", "default": 5}}});
    let mut item = port.clone();
    item["default"] = json!({});
    let custom = with_spec(json!({
        "d": {"type": "object", "default": {"a": "A"},
            "properties": {"a": {"type": "string"}, "b": {"type": "string", "default": "B"}}},
        "dn": {"type": "string", "default": "x"}, "dnn": {"type": "string", "default": "x", "nullable": true},
        "dl": {"type": "array", "items": port}, "dm": {"type": "object", "additionalProperties": port},
        "arrn": {"type": "array", "items": item},
    }));
    let base = json!({"d": {"a": "A", "b": "B"}, "dn": "x", "dnn": "x"});
    for (spec, changed) in [
        (json!({}), json!({})),
        (json!({"d": {}}), json!({"d": {"b": "B"}})),
        (json!({"d": null}), json!({})),
        (json!({"d": {"b": null}}), json!({"d": {"b": "B"}})),
        (json!({"dn": null}), json!({})),
        (json!({"dnn": null}), json!({"dnn": null})),
        (json!({"dl": [{}]}), json!({"dl": [{"p": 5}]})),
        (json!({"dm": {"a": {}, "b": null}}), json!({"dm": {"a": {"p": 5}}})),
        (json!({"arrn": [null, {}]}), json!({"arrn": [{"p": 5}, {"p": 5}]})),
    ] {
        let mut object = json!({"spec": spec});
        custom.default(&mut object);
        custom.prune(&mut object);
        let mut expected = base.clone();
        for (name, value) in changed.as_object().unwrap() {
            expected[name] = value.clone();
        }
        assert_eq!(object["spec"], expected, "{spec}");
    }
}

#[test]
fn what_was_wrong_before_is_tolerated() {
    let text = json!({"type": "string", "pattern": "^q"});
    let custom = with_spec(json!({
        "a": {"type": "string", "maxLength": 2},
        "li": {"type": "array", "maxItems": 1, "items": {"type": "string", "maxLength": 1}},
        "b": {"type": "object", "required": ["d"], "properties": {"c": {"type": "string"}, "d": {"type": "string"}}},
        "mm": {"type": "object", "additionalProperties": text},
        "lm": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": text}}},
    }));
    let old = json!({"spec": {"a": "long", "li": ["aa", "bb"], "b": {"c": "1"}, "mm": {"a": "1"},
        "lm": [{"k": "a", "v": "1"}]}});
    let check = |path: &str, value: Value| {
        let mut new = old.clone();
        new["spec"][path] = value;
        lines(&custom.validate(&new, Some(&old)))
    };
    assert_eq!(check("x", json!(1)), "");
    assert_eq!(check("a", json!("lonh")), "spec.a: Too long: may not be more than 2 bytes");
    assert_eq!(
        check("li", json!(["aa", "c"])),
        "[spec.li[0]: Too long: may not be more than 1 byte, spec.li: Too many: 2: must have at most 1 item]"
    );
    assert_eq!(check("b", json!({"c": "2"})), "spec.b.d: Required value");
    assert_eq!(
        check("mm", json!({"a": "1", "b": "2"})),
        r#"spec.mm.b: Invalid value: "2": spec.mm.b in body should match '^q'"#
    );
    assert_eq!(check("lm", json!([{"k": "b"}, {"k": "a", "v": "1"}])), "");
}

#[test]
fn numbers_that_scale_reads_are_checked() {
    let crd = json!({"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "ts", "kind": "T"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas"}}}]}});
    let custom = aro_kube_crd::compile(&crd, "v1", &support::definitions()).unwrap();
    assert!(custom.has_status() && custom.scale().is_some());
    for (object, expected) in [
        (json!({"spec": {"replicas": 1}}), ""),
        (
            json!({"spec": {"replicas": -1}}),
            ".spec.replicas: Invalid value: -1: should be a non-negative integer",
        ),
        (
            json!({"spec": {"replicas": "x"}}),
            ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected int64",
        ),
        (
            json!({"spec": []}),
            ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: [] is of the type []interface {}, expected map[string]interface{}",
        ),
    ] {
        assert_eq!(message(&custom, &object), expected, "{object}");
    }
    let resource = custom.resource();
    let names: Vec<_> = resource.subresources.iter().map(|sub| sub.name.as_str()).collect();
    assert_eq!(names, ["status", "scale"]);
    assert_eq!(resource.verbs.join(","), "delete,deletecollection,get,list,patch,create,update,watch");
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c.é-]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(
                prop_oneof![
                    Just("spec".to_owned()),
                    Just("metadata".to_owned()),
                    Just("labels".to_owned()),
                    Just("i".to_owned()),
                    Just("e".to_owned()),
                    Just("mp".to_owned()),
                    Just("k".to_owned()),
                    Just("st".to_owned()),
                    Just("er".to_owned()),
                    Just("x".to_owned())
                ],
                inner,
                0..4
            )
            .prop_map(|members| json!(members)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_object_can_be_admitted_and_pruning_twice_is_pruning_once(object in any_value(), old in any_value()) {
        let custom = keywords();
        let mut object = object;
        custom.default(&mut object);
        custom.prune(&mut object);
        let once = object.clone();
        prop_assert_eq!(custom.prune(&mut object), Vec::<String>::new());
        prop_assert_eq!(&object, &once);
        custom.validate(&object, Some(&old));
        let unchanged = custom.validate(&object, Some(&object));
        prop_assert!(unchanged.iter().all(|error| error.field.contains("er")), "{}", lines(&unchanged));
    }
}
