//! The API's description of itself: versions, OpenAPI document, errors.

use axum::Json;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Value, json};

use super::{Answer, ROOT, json_text};
use crate::fault::{Code, Fault};

/// The OpenAPI document, written by hand and compared with the routes by a test.
const OPENAPI: &str = include_str!("openapi.json");

/// Every error number and its meaning.
const ERRORS: [(u16, &str); 13] = [
    (1, "The token is not valid"),
    (4, "This is not allowed"),
    (6, "Something of that name exists, or it changed meanwhile"),
    (7, "There is no such thing"),
    (8, "The content of the request is not acceptable"),
    (9, "The server failed"),
    (10, "The path does not offer that method"),
    (11, "The account may not do this"),
    (15, "The caller is not known"),
    (17, "The body of the request cannot be read"),
    (21, "A parameter of the request is not acceptable"),
    (23, "The search cannot be read"),
    (26, "A lock could not be taken"),
];

pub(super) async fn api() -> Json<Value> {
    Json(json!({
        "id": "maestro",
        "kind": "API",
        "href": ROOT,
        "versions": [{"id": "v1", "href": format!("{ROOT}/v1"), "kind": "", "collections": null}],
    }))
}

pub(super) async fn version() -> Json<Value> {
    Json(json!({
        "id": "v1",
        "kind": "APIVersion",
        "href": format!("{ROOT}/v1"),
        "collections": [
            {"id": "resources", "kind": "ResourceList", "href": format!("{ROOT}/v1/resources")},
        ],
    }))
}

pub(super) async fn openapi() -> Response {
    json_text(StatusCode::OK, OPENAPI)
}

pub(super) async fn errors() -> Json<Value> {
    let items: Vec<Value> = ERRORS.iter().map(|(number, reason)| shown(*number, reason)).collect();
    Json(json!({
        "kind": "ErrorList", "page": 1, "size": items.len(), "total": items.len(), "items": items,
    }))
}

pub(super) async fn error(Path(id): Path<String>) -> Answer {
    let known = ERRORS.iter().find(|(number, _)| number.to_string() == id);
    let (number, reason) =
        known.ok_or_else(|| Fault::new(Code::NotFound, format!("Error with id='{id}' not found")))?;
    Ok(Json(shown(*number, reason)).into_response())
}

fn shown(number: u16, reason: &str) -> Value {
    json!({
        "id": number.to_string(),
        "kind": "Error",
        "href": format!("{ROOT}/v1/errors/{number}"),
        "code": format!("maestro-{number}"),
        "reason": reason,
    })
}
