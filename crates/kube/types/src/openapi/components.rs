//! The schemas of a document: those of its types and everything they refer to.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use aro_kube_apimachinery::{GroupVersionKind, ResourceType};
use serde_json::{Map, Value, json};

use super::{Described, custom, descriptions};
use crate::registry::{builtin, raw_schemas};

/// The built-in schemas with their descriptions.
static BUILTIN: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let Value::Object(mut schemas) = raw_schemas() else { return Map::new() };
    for (name, schema) in &mut schemas {
        describe(name, schema);
    }
    schemas
});

pub const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

fn describe(name: &str, schema: &mut Value) {
    if let Some(text) = descriptions::of_definition(name) {
        schema["description"] = json!(text);
    }
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (field, property) in properties {
        let list = name.ends_with("List").then(|| list_field(field)).flatten();
        if let Some(text) = descriptions::of_field(name, field).or(list) {
            property["description"] = json!(text);
        }
    }
}

/// Lists share what other kinds say about themselves.
fn list_field(field: &str) -> Option<&'static str> {
    matches!(field, "apiVersion" | "kind")
        .then(|| descriptions::of_field("io.k8s.api.core.v1.Pod", field))
        .flatten()
}

/// `components` of a document.
pub fn of(types: &[Described<'_>]) -> Value {
    json!({
        "schemas": schemas(types),
        "securitySchemes": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header",
            "description": "Bearer Token authentication"}},
    })
}

pub fn schemas(types: &[Described<'_>]) -> Map<String, Value> {
    let mut all = Map::new();
    let mut wanted: Vec<String> = ["DeleteOptions", "Patch", "Status", "APIResourceList", "WatchEvent"]
        .map(|kind| format!("{META}{kind}"))
        .into();
    for of in types {
        if let Some(described) = of.custom {
            let (own, list) = custom::schemas(of.resource, described);
            for (name, schema) in [own, list] {
                references(&schema, &mut wanted);
                all.insert(name, schema);
            }
        } else {
            let own = schema_name(&of.resource.gvk);
            // Kinds that are only sent (reviews, bindings) have no list.
            wanted.extend(own.iter().map(|name| format!("{name}List")));
            wanted.extend(own);
        }
        wanted.extend(of.resource.subresources.iter().filter_map(|sub| schema_name(&sub.gvk)));
    }
    let mut seen = BTreeSet::new();
    while let Some(name) = wanted.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        if let Some(schema) = BUILTIN.get(&name) {
            references(schema, &mut wanted);
            all.insert(name, schema.clone());
        }
    }
    all
}

fn references(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            let reference = members.get("$ref").and_then(Value::as_str);
            into.extend(reference.and_then(|reference| reference.strip_prefix(PREFIX)).map(str::to_owned));
            members.values().for_each(|below| references(below, into));
        }
        Value::Array(items) => items.iter().for_each(|below| references(below, into)),
        _ => {}
    }
}

const PREFIX: &str = "#/components/schemas/";

/// A reference to a schema.
pub fn reference(name: &str) -> Value {
    json!({"$ref": format!("{PREFIX}{name}")})
}

/// The schema of a built-in kind.
pub fn schema_name(gvk: &GroupVersionKind) -> Option<String> {
    builtin().definition_name(gvk).map(str::to_owned)
}

/// The schema of a resource's kind, custom or not.
pub fn resource_schema(resource: &ResourceType) -> String {
    if resource.custom { custom::name(&resource.gvk) } else { schema_name(&resource.gvk).unwrap_or_default() }
}
