//! Schemas of custom types, as they are published.

use aro_kube_apimachinery::{GroupVersionKind, ResourceType};
use serde_json::{Value, json};

use super::components::{META, reference};
use super::{CustomDescription, descriptions};

const SAMPLE: &str = "io.k8s.api.core.v1.Pod";

/// `com.example.stable.v1.CronTab`: the group from its most general part.
pub fn name(gvk: &GroupVersionKind) -> String {
    let group: Vec<&str> = gvk.group.split('.').rev().collect();
    format!("{}.{}.{}", group.join("."), gvk.version, gvk.kind)
}

/// The schema of the kind and that of its list, with their names.
pub fn schemas(
    resource: &ResourceType,
    described: CustomDescription<'_>,
) -> ((String, Value), (String, Value)) {
    let gvk = &resource.gvk;
    let own = name(gvk);
    let list_kind = GroupVersionKind::new(&*gvk.group, &*gvk.version, described.list_kind);
    let list = name(&list_kind);
    ((own.clone(), kind(gvk, described.schema)), (list, list_schema(resource, &list_kind, &own)))
}

fn with_description(mut schema: Value, text: Option<&str>) -> Value {
    if let Some(text) = text {
        schema["description"] = json!(text);
    }
    schema
}

fn type_members() -> (Value, Value) {
    let text =
        |field: &str| with_description(json!({"type": "string"}), descriptions::of_field(SAMPLE, field));
    (text("apiVersion"), text("kind"))
}

fn kind(gvk: &GroupVersionKind, schema: Option<&Value>) -> Value {
    let mut schema = schema.cloned().filter(Value::is_object).unwrap_or_else(|| json!({"type": "object"}));
    publish(&mut schema);
    let open = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
        && schema.get("properties").is_none();
    // What keeps everything says nothing about its members.
    if !open {
        let (api_version, own_kind) = type_members();
        let metadata = with_description(
            json!({"allOf": [reference(&format!("{META}ObjectMeta"))]}),
            descriptions::of_field(SAMPLE, "metadata"),
        );
        if !schema.get("properties").is_some_and(Value::is_object) {
            schema["properties"] = json!({});
        }
        schema["properties"]["apiVersion"] = api_version;
        schema["properties"]["kind"] = own_kind;
        schema["properties"]["metadata"] = metadata;
    }
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": gvk.group, "version": gvk.version, "kind": gvk.kind}]);
    schema
}

/// Spells out what the extensions mean for clients that do not know them.
fn publish(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    if members.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) && !members.contains_key("anyOf")
    {
        members.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
        members.remove("type");
    }
    for (key, below) in members.iter_mut() {
        match (key.as_str(), below) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(publish),
            ("items" | "additionalProperties", below) => publish(below),
            _ => {}
        }
    }
}

fn list_schema(resource: &ResourceType, list: &GroupVersionKind, item: &str) -> Value {
    let (api_version, kind) = type_members();
    json!({
        "description": format!("{} is a list of {}", list.kind, resource.gvk.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"allOf": [reference(&format!("{META}ListMeta"))]},
            "items": {"type": "array", "items": reference(item), "description": format!("List of {}.", resource.plural)},
        },
        "x-kubernetes-group-version-kind": [{"group": list.group, "version": list.version, "kind": list.kind}],
    })
}
