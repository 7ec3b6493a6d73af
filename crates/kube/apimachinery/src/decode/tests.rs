use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::Definitions;

static DEFINITIONS: LazyLock<Definitions> = LazyLock::new(|| {
    Definitions::from_openapi(&json!({
        "io.x.v1.Thing": {"type": "object", "required": ["must"], "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": "io.meta.v1.ObjectMeta"}], "default": {}},
            "spec": {"$ref": "io.x.v1.ThingSpec"},
            "must": {"type": "array", "items": {"type": "string"}},
            "raw": {"$ref": "io.x.runtime.RawExtension"},
        }},
        "io.x.runtime.RawExtension": {"type": "object"},
        "io.meta.v1.ObjectMeta": {"type": "object", "properties": {
            "name": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "creationTimestamp": {"$ref": "io.meta.v1.Time"},
        }},
        "io.meta.v1.Time": {"type": "string", "format": "date-time"},
        "io.x.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
        "io.x.v1.ThingSpec": {"type": "object", "properties": {
            "replicas": {"type": "integer", "format": "int32"},
            "big": {"type": "integer", "format": "int64"},
            "paused": {"type": "boolean"},
            "port": {"x-kubernetes-int-or-string": true},
            "limits": {"type": "object", "additionalProperties": {"$ref": "io.x.resource.Quantity"}},
            "bytes": {"type": "string", "format": "byte"},
            "volumes": {"type": "array", "items": {"$ref": "io.x.v1.Volume"}},
            "empty": {"$ref": "io.x.v1.Volume"},
        }},
        "io.x.v1.Volume": {"type": "object", "properties": {
            "name": {"type": "string"}, "configMap": {"$ref": "io.x.v1.ConfigMapVolumeSource"},
        }},
        "io.x.v1.ConfigMapVolumeSource": {"type": "object", "properties": {
            "name": {"type": "string"}, "defaultMode": {"type": "integer", "format": "int32"},
        }},
        "Root": {"$ref": "io.x.v1.Thing"},
    }))
    .unwrap()
});

fn thing() -> Typed<'static> {
    Typed::new(DEFINITIONS.get("Root").unwrap(), &DEFINITIONS)
}

fn problems(text: &str) -> Vec<String> {
    decode(text.as_bytes(), thing()).unwrap().1.iter().map(ToString::to_string).collect()
}

#[test]
fn type_errors_read_like_gos() {
    for (text, error) in [
        (r#"{"metadata":{"name":3}}"#, "number into Go struct field ObjectMeta.metadata.name of type string"),
        (
            r#"{"metadata":{"labels":{"x":1}}}"#,
            "number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (r#"{"metadata":"x"}"#, "string into Go struct field Thing.metadata of type v1.ObjectMeta"),
        (r#"{"must":[1]}"#, "number into Go struct field Thing.must of type string"),
        (r#"{"must":{}}"#, "object into Go struct field Thing.must of type []string"),
        (
            r#"{"metadata":{"labels":[]}}"#,
            "array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (r#"{"spec":[]}"#, "array into Go struct field Thing.spec of type v1.ThingSpec"),
        (r#"{"spec":{"replicas":"3"}}"#, "string into Go struct field ThingSpec.spec.replicas of type int32"),
        (
            r#"{"spec":{"replicas":3000000000}}"#,
            "number 3000000000 into Go struct field ThingSpec.spec.replicas of type int32",
        ),
        (
            r#"{"spec":{"replicas":1.5}}"#,
            "number 1.5 into Go struct field ThingSpec.spec.replicas of type int32",
        ),
        (
            r#"{"spec":{"replicas":1.0}}"#,
            "number 1.0 into Go struct field ThingSpec.spec.replicas of type int32",
        ),
        (r#"{"spec":{"paused":"true"}}"#, "string into Go struct field ThingSpec.spec.paused of type bool"),
        (r#"{"spec":{"port":true}}"#, "bool into Go struct field ThingSpec.spec.port of type int32"),
        (
            r#"{"spec":{"volumes":[{"configMap":{"defaultMode":"0644"}}]}}"#,
            "string into Go struct field ConfigMapVolumeSource.spec.volumes.VolumeSource.configMap.defaultMode of type int32",
        ),
        (
            r#"{"metadata":{"creationTimestamp":3}}"#,
            "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        // The first one counts.
        (r#"{"must":[1],"metadata":"x"}"#, "number into Go struct field Thing.must of type string"),
    ] {
        let expected = format!("json: cannot unmarshal {error}");
        assert_eq!(decode(text.as_bytes(), thing()).unwrap_err(), expected, "{text}");
    }
    let form = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    for text in [r#"{"spec":{"limits":{"cpu":"xx"}}}"#, r#"{"spec":{"limits":{"cpu":true}}}"#] {
        assert_eq!(decode(text.as_bytes(), thing()).unwrap_err(), form);
    }
    assert_eq!(
        decode(br#"{"spec":{"bytes":"***"}}"#, thing()).unwrap_err(),
        "illegal base64 data at input byte 0"
    );
}

#[test]
fn problems_come_in_the_order_of_the_document() {
    assert_eq!(
        problems(
            r#"{"metadata":{"name":"a"},"zz":1,"spec":{"x":{"y":1,"y":2},"paused":true,"paused":false,
            "volumes":[{"name":"a"},{"name":"a","name":"b","Name":1}]},"metadata":{"bar":1},"aa":{}}"#
        ),
        [
            "unknown field \"zz\"",
            "unknown field \"spec.x\"",
            "duplicate field \"spec.paused\"",
            "duplicate field \"spec.volumes[1].name\"",
            "unknown field \"spec.volumes[1].Name\"",
            "duplicate field \"metadata\"",
            "unknown field \"metadata.bar\"",
            "unknown field \"aa\"",
        ]
    );
    assert_eq!(
        strict_problems(&[Problem::Unknown("a".into())]),
        "strict decoding error: unknown field \"a\""
    );
    assert_eq!(
        strict_error(&["spec.foo".into()], &["x".into()]),
        "strict decoding error: unknown field \"spec.foo\", duplicate field \"x\""
    );
}

#[test]
fn values_take_the_form_go_would_give_them() {
    let (value, _) = decode(
        br#"{"metadata":{"name":"a","labels":{},"creationTimestamp":null,"unknown":1},
            "must":[],"raw":{"a":null,"b":[]},
            "spec":{"limits":{"cpu":"1000m","mem":0.5},"replicas":null,"volumes":[],"empty":{},"port":"http"}}"#,
        thing(),
    )
    .unwrap();
    let form = json!({
        "metadata": {"name": "a"}, "must": [], "raw": {"a": null, "b": []},
        "spec": {"limits": {"cpu": "1", "mem": "500m"}, "empty": {}, "port": "http"},
    });
    assert_eq!(value, form);
    let mut again = value.clone();
    assert_eq!(coerce(&mut again, thing()), Ok(Vec::new()));
    assert_eq!(again, value);
}

#[test]
fn null_in_lists_and_maps_is_the_empty_value() {
    let (value, _) =
        decode(br#"{"must":[null],"metadata":{"labels":{"a":null}},"spec":{"volumes":[null]}}"#, thing())
            .unwrap();
    assert_eq!(value, json!({"must": [""], "metadata": {"labels": {"a": ""}}, "spec": {"volumes": [{}]}}));
}

#[test]
fn a_value_is_refused_unchanged_for_what_it_could_not_be_coerced_for() {
    for value in [
        json!({"metadata": {"name": "a", "creationTimestamp": "2024-05-06T07:08:09.5Z"}, "bar": 1, "spec": null}),
        json!({"metadata": {"name": 3}}),
        json!({"metadata": {"creationTimestamp": "yesterday"}}),
        json!({"spec": {"limits": {"cpu": "x"}, "replicas": "1"}}),
        json!([]),
    ] {
        let coerced = coerce(&mut value.clone(), thing()).map(|_| ());
        assert_eq!(check(&value, thing()), coerced, "{value}");
    }
}

#[test]
fn coerced_values_lose_unknown_members() {
    let mut value = json!({"spec": {"volumes": [{"x": 1}], "foo": 1}, "bar": 2});
    assert_eq!(coerce(&mut value, thing()).unwrap(), ["bar", "spec.foo", "spec.volumes[0].x"]);
    assert_eq!(value, json!({"spec": {"volumes": [{}]}}));
}

#[test]
fn malformed_json_is_named_in_gos_words() {
    for (text, error) in [
        ("{", "unexpected end of JSON input"),
        ("", "unexpected end of JSON input"),
        (r#"{"a":}"#, "invalid character '}' looking for beginning of value"),
        ("{} x", "invalid character 'x' after top-level value"),
        (r#"{"a" 1}"#, "invalid character '1' after object key"),
        (r#"{"a":1 "b"}"#, "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
        ("{\"a\":1,\n}", "invalid character '}' looking for beginning of object key string"),
    ] {
        assert_eq!(parse(text.as_bytes()).unwrap_err(), error, "{text}");
    }
}

#[test]
fn the_type_is_read_first() {
    let meta =
        |api_version: &str, kind: &str| TypeMeta { api_version: api_version.into(), kind: kind.into() };
    assert_eq!(type_meta(br#"{"kind":"A","apiVersion":"v1","x":[1]}"#), Ok(meta("v1", "A")));
    assert_eq!(type_meta(br#"{"kind":"A","kind":"B"}"#), Ok(meta("", "B")));
    assert_eq!(type_meta(b"null"), Ok(meta("", "")));
    for (text, error) in [
        ("{", "json parse error: unexpected end of JSON input ({)"),
        ("", "json parse error: unexpected end of JSON input (<empty>)"),
        (
            r#"{"apiVersion":3}"#,
            r#"json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string ({"apiVersion":3})"#,
        ),
        (
            "[]",
            r#"json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d)"#,
        ),
    ] {
        assert_eq!(type_meta(text.as_bytes()).unwrap_err(), error, "{text}");
    }
}

#[test]
fn repeated_members_are_found_in_untyped_json() {
    let (value, duplicates) = parse(br#"{"a":[{"b":1,"b":2}],"a":{"c":1}}"#).unwrap();
    assert_eq!(value, json!({"a": {"c": 1}}));
    assert_eq!(duplicates, ["a[0].b", "a"]);
}

#[test]
fn whole_numbers_are_integers() {
    let (value, _) = parse(b"[1.0, 1e2, 1.5, 12345678901234567890, -0.0, 9223372036854775807]").unwrap();
    assert_eq!(value, json!([1, 100, 1.5, 12_345_678_901_234_567_890_f64, 0, i64::MAX]));
}

#[test]
fn bodies_are_shown_by_their_start() {
    assert_eq!(summary(b""), "<empty>");
    assert_eq!(summary(b"[]"), "5b5d");
    assert_eq!(summary(&[b'{'; 31]), format!("{} ...", "{".repeat(30)));
}

#[test]
fn yaml_is_read_as_kubernetes_does() {
    let (value, duplicates) =
        parse_yaml(b"a: yes\nb: 0644\nc: null\nd: \"yes\"\ne:\n- 1\n- x: 1.5\nf: 2020-01-01\n").unwrap();
    assert_eq!(
        value,
        json!({"a": true, "b": 420, "c": null, "d": "yes", "e": [1, {"x": 1.5}], "f": "2020-01-01"})
    );
    assert!(duplicates.is_empty());
    let (value, duplicates) = parse_yaml(b"a: 1\na: 2\n").unwrap();
    assert_eq!((value, duplicates), (json!({"a": 2}), vec!["a".to_owned()]));
    assert_eq!(parse_yaml(b"a: 1\nb: [").unwrap_err(), "yaml: line 2: did not find expected node content");
    assert_eq!(parse_yaml(b"a: 1e3\nb: 1.0\n").unwrap().0, json!({"a": 1000, "b": 1}));
    assert_eq!(parse_yaml(br#"{"a":1}"#).unwrap().0, json!({"a": 1}));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), near in "[{}\\[\\]\",:a-z0-9 \n-]{0,40}") {
        for bytes in [&bytes[..], near.as_bytes()] {
            let _ = (parse(bytes), parse_yaml(bytes), decode(bytes, thing()), type_meta(bytes));
        }
    }
}
