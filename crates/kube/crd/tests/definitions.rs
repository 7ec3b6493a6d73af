//! Checks of definitions, with the messages of a real server. The tables were recorded from one.

mod support;

use aro_kube_crd::definition::{admit, settle};
use serde_json::{Value, json};
use support::lines;

fn definition(schema: Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

fn refused(mut crd: Value) -> String {
    lines(&admit(&mut crd, None))
}

#[test]
fn what_is_absent_is_filled_in() {
    let mut crd = definition(json!({"type": "object"}));
    assert_eq!(lines(&admit(&mut crd, None)), "");
    assert_eq!(
        crd["spec"]["names"],
        json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"})
    );
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(
        crd["status"],
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]})
    );
}

#[test]
fn unsound_definitions_are_refused_in_upstreams_words() {
    for (path, value, expected) in [
        (
            "/metadata/name",
            json!("foo"),
            r#"metadata.name: Invalid value: "foo": must be spec.names.plural+"."+spec.group"#,
        ),
        (
            "/spec/scope",
            json!("X"),
            r#"spec.scope: Unsupported value: "X": supported values: "Cluster", "Namespaced""#,
        ),
        ("/spec/scope", json!(""), "spec.scope: Required value"),
        (
            "/spec/names/listKind",
            json!("Widget"),
            r#"spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same"#,
        ),
        (
            "/spec/preserveUnknownFields",
            json!(true),
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ),
        (
            "/spec/conversion",
            json!({"strategy": "Webhook"}),
            "[spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook, spec.conversion.conversionReviewVersions: Required value]",
        ),
        (
            "/spec/versions",
            json!([]),
            "[spec.versions: Invalid value: []: must have exactly one version marked as storage version, status.storedVersions: Invalid value: null: must have at least one stored version]",
        ),
        (
            "/spec/versions/0/storage",
            json!(false),
            r#"[spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: must have exactly one version marked as storage version, status.storedVersions: Invalid value: null: must have at least one stored version]"#,
        ),
        ("/spec/versions/0/schema", json!({}), "spec.versions[0].schema.openAPIV3Schema: Required value"),
        (
            "/spec/versions/0/deprecationWarning",
            json!("x"),
            r#"spec.versions[0].deprecationWarning: Invalid value: "x": can only be set for deprecated versions"#,
        ),
        (
            "/spec/versions/0/additionalPrinterColumns",
            json!([{"name": "a", "type": "x", "jsonPath": "a"}]),
            r#"[spec.additionalPrinterColumns[0].type: Invalid value: "x": must be one of boolean,date,integer,number,string, spec.additionalPrinterColumns[0].JSONPath: Invalid value: "a": must be a simple json path starting with .]"#,
        ),
        (
            "/spec/versions/0/subresources",
            json!({"scale": {"specReplicasPath": ".status.x", "statusReplicasPath": ".status.x"}}),
            r#"spec.subresources.scale.specReplicasPath: Invalid value: ".status.x": should be a json path under .spec"#,
        ),
    ] {
        let mut crd = definition(json!({"type": "object"}));
        let (parent, key) = path.rsplit_once('/').unwrap();
        crd.pointer_mut(parent).unwrap()[key] = value;
        assert_eq!(refused(crd), expected, "{path}");
    }
    let mut crd = definition(json!({"type": "object"}));
    crd["spec"]["group"] = json!("foo.k8s.io");
    crd["metadata"]["name"] = json!("widgets.foo.k8s.io");
    assert_eq!(
        refused(crd),
        "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"
    );
}

#[test]
fn unsound_schemas_are_refused_in_upstreams_words() {
    let text = json!({"type": "string"});
    for (a, expected) in [
        (json!({}), "type: Required value: must not be empty for specified object fields"),
        (json!({"type": "array"}), "items: Required value: must be specified"),
        (
            json!({"type": "array", "items": {}}),
            "items.type: Required value: must not be empty for specified array items",
        ),
        (
            json!({"type": "strin"}),
            r#"type: Unsupported value: "strin": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ),
        (
            json!({"type": "object", "properties": {"b": text}, "additionalProperties": text}),
            "additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            json!({"type": "array", "uniqueItems": true, "items": text}),
            "uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (json!({"$ref": "x"}), "$ref: Forbidden: $ref is not supported"),
        (
            json!({"type": "object", "anyOf": [{"type": "object"}]}),
            "anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            json!({"type": "object", "not": {"additionalProperties": text}}),
            "not.additionalProperties: Forbidden: must be undefined to be structural",
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true}),
            "properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ),
        (
            json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}),
            "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ),
        (
            json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}),
            "items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set",
        ),
        (
            json!({"type": "array", "items": {"type": "object", "properties": {"k": text}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
            "items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
        (
            json!({"type": "string", "default": 1}),
            r#"default: Invalid value: "integer":  in body must be of type string: "integer""#,
        ),
        (
            json!({"type": "object", "default": {"x": 1}}),
            r#"default: Invalid value: {"x":1}: must not have unknown fields"#,
        ),
        (
            json!({"type": "string", "pattern": "(["}),
            r#"pattern: Invalid value: "([": must be a valid regular expression, but isn't: error parsing regexp: missing closing ]: `[`"#,
        ),
        (
            json!({"type": "string", "x-kubernetes-validations": [{"rule": ""}]}),
            "x-kubernetes-validations[0].rule: Required value: rule is not specified",
        ),
    ] {
        let crd = definition(json!({"type": "object", "properties": {"a": a}}));
        assert_eq!(refused(crd), format!("spec.validation.openAPIV3Schema.properties[a].{expected}"), "{a}");
    }
    let rule = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self =="}]});
    let message = refused(definition(json!({"type": "object", "properties": {"a": rule}})));
    assert!(
        message.contains(r#".rule: Invalid value: {"Rule":"self ==","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:8: Syntax error"#),
        "{message}"
    );
}

#[test]
fn versions_that_differ_are_named_one_by_one() {
    let mut crd = definition(json!({"type": "object", "properties": {"a": {}}}));
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    second["schema"] = json!({"openAPIV3Schema": {"type": "object"}});
    crd["spec"]["versions"].as_array_mut().unwrap().push(second);
    assert_eq!(
        refused(crd),
        "spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields"
    );
}

fn established(mut crd: Value, others: &[&Value]) -> Value {
    admit(&mut crd, None);
    crd["status"] = settle(&crd, others, "T1");
    crd
}

#[test]
fn some_things_never_change() {
    let old = established(definition(json!({"type": "object"})), &[]);
    for (path, value, field) in [
        (
            "/spec/scope",
            json!("Namespaced"),
            r#"spec.scope: Invalid value: "Namespaced": field is immutable"#,
        ),
        ("/spec/names/kind", json!("Zoo"), r#"spec.names.kind: Invalid value: "Zoo": field is immutable"#),
    ] {
        let mut new = old.clone();
        *new.pointer_mut(path).unwrap() = value;
        assert_eq!(lines(&admit(&mut new, Some(&old))), field);
    }
    let mut new = old.clone();
    new["spec"]["versions"][0]["name"] = json!("v2");
    assert_eq!(
        lines(&admit(&mut new, Some(&old))),
        r#"status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"#
    );
    assert_eq!(new["status"]["storedVersions"], json!(["v1", "v2"]));
}

#[test]
fn free_names_are_accepted_and_taken_ones_are_not() {
    let first = established(definition(json!({"type": "object"})), &[]);
    let condition = |crd: &Value, at: usize, key: &str| crd["status"]["conditions"][at][key].clone();
    assert_eq!(condition(&first, 0, "reason"), "NoConflicts");
    assert_eq!(condition(&first, 1, "message"), "the initial names have been accepted");
    assert_eq!(first["status"]["acceptedNames"]["listKind"], "WidgetList");

    let mut second = definition(json!({"type": "object"}));
    second["spec"]["names"] = json!({"plural": "others", "kind": "Widget"});
    second["metadata"]["name"] = json!("others.example.com");
    let second = established(second, &[&first]);
    assert_eq!(condition(&second, 0, "reason"), "ListKindConflict");
    assert_eq!(condition(&second, 0, "message"), "\"WidgetList\" is already in use");
    assert_eq!(condition(&second, 1, "reason"), "NotAccepted");
    assert_eq!(second["status"]["acceptedNames"], json!({"plural": "others", "kind": ""}));

    let again = settle(&first, &[&second], "T2");
    assert_eq!(again, first["status"], "nothing changed, no time moved");
    let freed = settle(&second, &[], "T2");
    assert_eq!(freed["conditions"][1]["status"], "True");
    assert_eq!(freed["conditions"][1]["lastTransitionTime"], "T2");
}

#[test]
fn anything_can_be_looked_at() {
    for crd in
        [json!(null), json!([]), json!({"spec": 1}), json!({"spec": {"names": [], "versions": [1, null]}})]
    {
        let mut crd = crd;
        admit(&mut crd, None);
        settle(&crd, &[&json!(3)], "now");
    }
}
