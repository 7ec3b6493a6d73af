//! Swagger 2.0, out of the parts of version 3: for clients that read nothing newer.

use serde_json::{Map, Value, json};

pub fn document(paths: Map<String, Value>, schemas: Map<String, Value>) -> Value {
    let paths: Map<String, Value> = paths.into_iter().map(|(path, item)| (path, path_item(item))).collect();
    let definitions: Map<String, Value> = schemas
        .into_iter()
        .map(|(name, mut schema)| {
            older_schema(&mut schema);
            (name, schema)
        })
        .collect();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "definitions": definitions,
        "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header",
            "description": "Bearer Token authentication"}},
        "security": [{"BearerToken": []}],
    })
}

/// References move, and a lone `allOf` around one goes, as does what version 2 does not know.
fn older_schema(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for key in ["nullable", "oneOf", "anyOf"] {
                // A property may be called that; a schema's keyword has its own type.
                if members.get(key).is_some_and(|value| value.is_array() || value.is_boolean()) {
                    members.remove(key);
                }
            }
            let lone = members.get("allOf").and_then(Value::as_array).filter(|all| all.len() == 1);
            if let Some(reference) = lone.and_then(|all| all[0].get("$ref")).cloned() {
                members.remove("allOf");
                members.remove("default");
                members.insert("$ref".to_owned(), reference);
            }
            if let Some(Value::String(reference)) = members.get_mut("$ref") {
                *reference = reference.replacen("#/components/schemas/", "#/definitions/", 1);
            }
            members.values_mut().for_each(older_schema);
        }
        Value::Array(items) => items.iter_mut().for_each(older_schema),
        _ => {}
    }
}

fn path_item(item: Value) -> Value {
    let Value::Object(members) = item else { return item };
    let convert = |(key, value): (String, Value)| match value {
        Value::Array(parameters) => (key, parameters.into_iter().map(parameter).collect()),
        value => (key, operation(value)),
    };
    Value::Object(members.into_iter().map(convert).collect())
}

/// The type stands beside the name, not in a schema.
fn parameter(mut of: Value) -> Value {
    if let Some(members) = of.as_object_mut()
        && let Some(Value::Object(schema)) = members.remove("schema")
    {
        members.extend(schema);
    }
    of
}

fn operation(mut of: Value) -> Value {
    let Some(members) = of.as_object_mut() else { return of };
    let mut parameters: Vec<Value> = match members.remove("parameters") {
        Some(Value::Array(parameters)) => parameters.into_iter().map(parameter).collect(),
        _ => Vec::new(),
    };
    if let Some(body) = members.remove("requestBody") {
        let consumes: Vec<String> = kinds(&body);
        let mut schema = first_schema(&body);
        older_schema(&mut schema);
        let mut parameter = json!({"name": "body", "in": "body", "schema": schema});
        if body["required"] == true {
            parameter["required"] = json!(true);
        }
        parameters.insert(0, parameter);
        members.insert("consumes".to_owned(), json!(consumes));
    }
    let mut produces = Vec::new();
    if let Some(Value::Object(responses)) = members.get_mut("responses") {
        for response in responses.values_mut() {
            let kinds = kinds(response);
            if kinds.is_empty() {
                continue;
            }
            produces = kinds;
            let mut schema = first_schema(response);
            older_schema(&mut schema);
            if let Some(response) = response.as_object_mut() {
                response.remove("content");
                response.insert("schema".to_owned(), schema);
            }
        }
    }
    members.insert("produces".to_owned(), json!(produces));
    members.insert("schemes".to_owned(), json!(["https"]));
    if !parameters.is_empty() {
        members.insert("parameters".to_owned(), Value::Array(parameters));
    }
    of
}

fn kinds(holder: &Value) -> Vec<String> {
    holder
        .get("content")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(kind, _)| kind.clone())
        .collect()
}

fn first_schema(holder: &Value) -> Value {
    let content = holder.get("content").and_then(Value::as_object);
    let first = content.and_then(|content| content.values().next());
    first.and_then(|first| first.get("schema")).cloned().unwrap_or_default()
}
