//! The OpenAPI documents, made from the tables of routes and types.

use aro_ocm::wire::{Object, Shape};
use aro_ocm::{Root, shape};
use serde_json::{Map, Value, json};

use super::reply::{Failure, Reply};
use super::routes::{Action, Answer, ROUTES, Route, Verb};

/// The document of a root.
pub(super) fn document(root: Root) -> Result<Reply, Failure> {
    Reply::ok(&describe(root))
}

pub(super) fn describe(root: Root) -> Value {
    let routes =
        || ROUTES.iter().filter(|route| route.roots.contains(&root) && route.action != Action::Refused);
    let mut paths = Map::new();
    for route in routes() {
        let path = format!("{}{}", root.path(), route.path);
        let entry = paths.entry(path).or_insert_with(|| json!({}));
        entry[route.verb.lower()] = operation(route);
    }
    let mut types: Vec<&'static Object> = Vec::new();
    for route in routes() {
        if let Answer::One(shape) | Answer::List(shape) = route.answer {
            shape::reachable(shape, &mut types);
        }
    }
    let mut schemas: Map<String, Value> =
        types.into_iter().map(|object| (object.name.to_owned(), members(object))).collect();
    schemas.insert("Error".to_owned(), error());
    let title = match root {
        Root::AroHcp => "Clusters Service, operations of ARO HCP",
        Root::ClustersMgmt => "Clusters Service, generic operations",
    };
    json!({
        "openapi": "3.0.0",
        "info": {"title": title, "version": root.path().rsplit('/').next()},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

fn operation(route: &Route) -> Value {
    let variables = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = variables
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    let mut query = |name: &str, kind: &str| {
        parameters.push(json!({"name": name, "in": "query", "schema": {"type": kind}}));
    };
    if matches!(route.answer, Answer::List(_)) {
        for (name, kind) in [
            ("page", "integer"),
            ("size", "integer"),
            ("search", "string"),
            ("order", "string"),
            ("fields", "string"),
        ] {
            query(name, kind);
        }
    }
    if route.verb == Verb::Post && route.status == 202 {
        query("dryRun", "boolean");
    }
    let success = match route.answer {
        Answer::Nothing => json!({"description": "Success"}),
        Answer::One(shape) => content(schema(shape)),
        Answer::List(shape) => content(json!({"type": "object", "properties": {
            "kind": {"type": "string"}, "page": {"type": "integer"}, "size": {"type": "integer"},
            "total": {"type": "integer"}, "items": {"type": "array", "items": schema(shape)},
        }})),
        Answer::Free => content(json!({"type": "object"})),
    };
    let mut responses = Map::new();
    responses.insert(route.status.to_string(), success);
    responses.insert("default".to_owned(), content(json!({"$ref": "#/components/schemas/Error"})));
    let mut operation = json!({"operationId": format!("{:?}", route.action), "responses": responses});
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
    if let Some(body) = route.body {
        operation["requestBody"] = json!({"content": {"application/json": {"schema": schema(body)}}});
    }
    operation
}

fn content(schema: Value) -> Value {
    json!({"description": "Success", "content": {"application/json": {"schema": schema}}})
}

fn members(object: &Object) -> Value {
    let members: Map<String, Value> =
        object.members.iter().map(|member| (member.name().to_owned(), schema(member.shape))).collect();
    json!({"type": "object", "properties": members})
}

/// The tables are not recursive, and named types are references.
fn schema(shape: &Shape) -> Value {
    match shape {
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Integer => json!({"type": "integer", "format": "int64"}),
        Shape::Number => json!({"type": "number"}),
        Shape::Text => json!({"type": "string"}),
        Shape::Date => json!({"type": "string", "format": "date-time"}),
        Shape::Word(words) => json!({"type": "string", "enum": words}),
        Shape::Object(object) if object.name.is_empty() => members(object),
        Shape::Object(object) => json!({"$ref": format!("#/components/schemas/{}", object.name)}),
        Shape::List(inner) => json!({"type": "array", "items": schema(inner)}),
        Shape::Map(inner) => json!({"type": "object", "additionalProperties": schema(inner)}),
        Shape::Any => json!({}),
    }
}

fn error() -> Value {
    let text = json!({"type": "string"});
    json!({"type": "object", "properties": {
        "kind": text, "id": text, "href": text, "code": text, "reason": text, "operation_id": text,
        "timestamp": {"type": "string", "format": "date-time"},
        "details": {"type": "array", "items": {"type": "object", "properties": {"code": text, "field": text, "reason": text}}},
    }})
}
