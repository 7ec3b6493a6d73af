//! What the derived schemas lack, and what they say too much.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

/// A name as DNS knows it, with dots.
pub(crate) const SUBDOMAIN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$";
/// One part of such a name.
pub(crate) const LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// A name, perhaps behind a domain and a slash.
pub(crate) const QUALIFIED: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
const REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// What every object has. A server knows better what is in `metadata`, and accepts no word about it.
const EVERY_OBJECT: [(&str, &str, &str); 3] = [
    ("apiVersion", "string", "The API group and version in which this object is written."),
    ("kind", "string", "What this object is."),
    ("metadata", "object", ""),
];

/// Conditions, one of each type. The type of `k8s-openapi` knows no limits.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "description": "One thing that is so, is not so, or is not known.",
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "Since when the status is what it is.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": {
                    "description": "The reason in words for people; may be empty.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "observedGeneration": {
                    "description": "The generation of the object this was found out about.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "reason": {
                    "description": "The reason in one word for programs.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": REASON,
                },
                "status": {
                    "description": "Whether it is so.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "type": {
                    "description": "What this is about.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": QUALIFIED,
                },
            },
        },
    })
}

/// Amounts by the name of what they are of.
pub(crate) fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "x-kubernetes-int-or-string": true, "pattern": QUANTITY },
    })
}

/// Makes the schema say what the API says, where derived schemas differ by habit:
///
/// - an optional member may be left out, but is not `null` unless its path (without `items`) is in `nullable`;
/// - a default that is just the empty value is none;
/// - the object's `spec` is not required: the resources of this crate were published without that;
/// - the members every object has are named, and so is the kind of lists.
pub(crate) fn tidy(mut crd: CustomResourceDefinition, nullable: &[&str]) -> CustomResourceDefinition {
    crd.spec.names.list_kind = Some(format!("{}List", crd.spec.names.kind));
    for version in &mut crd.spec.versions {
        if let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            root.required = None;
            root.title = None;
            walk(root, "", nullable);
            let members = root.properties.get_or_insert_default();
            for (name, kind, description) in EVERY_OBJECT {
                let description = Some(description.to_owned()).filter(|text| !text.is_empty());
                let member = JSONSchemaProps {
                    type_: Some(kind.to_owned()),
                    description,
                    ..JSONSchemaProps::default()
                };
                members.insert(name.to_owned(), member);
            }
        }
    }
    crd
}

fn walk(schema: &mut JSONSchemaProps, path: &str, nullable: &[&str]) {
    schema.nullable = nullable.contains(&path).then_some(true);
    schema.default = schema.default.take().filter(|default| !is_empty(&default.0));
    for (name, property) in schema.properties.iter_mut().flatten() {
        let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        walk(property, &below, nullable);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        walk(items, path, nullable);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        walk(values, path, nullable);
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(true) => false,
    }
}
