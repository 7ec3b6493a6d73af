//! OpenAPI documents, rendered from the types that are served.
//!
//! Descriptions of built-in types come from the `k8s-openapi` crate, those of custom types from their own schema.
//! Everything is rendered on request: callers keep what they serve often.

mod descriptions;

use aro_machinery::{GroupVersion, ResourceType};
use serde_json::Value;

/// A type together with what only its CustomResourceDefinition knows.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    pub resource: &'a ResourceType,
    /// For custom types.
    pub custom: Option<CustomDescription<'a>>,
}

#[derive(Debug, Clone, Copy)]
pub struct CustomDescription<'a> {
    /// `openAPIV3Schema` of this version. `None`: anything goes.
    pub schema: Option<&'a Value>,
    pub list_kind: &'a str,
}

/// `/openapi/v3`: where each document is, with a hash of what it says.
pub fn v3_index<'a>(_types: impl IntoIterator<Item = Described<'a>>) -> Value {
    Value::Null
}

/// `/openapi/v3/api/v1` and `/openapi/v3/apis/<group>/<version>`. `None` when no type is of that version.
pub fn v3_document<'a>(
    _version: &GroupVersion,
    _types: impl IntoIterator<Item = Described<'a>>,
) -> Option<Value> {
    None
}

/// `/openapi/v2`: one Swagger 2.0 document of everything.
pub fn v2_document<'a>(_types: impl IntoIterator<Item = Described<'a>>) -> Value {
    Value::Null
}

/// What a member of a built-in definition is, in upstream's words.
pub(crate) fn field_description(definition: &str, field: &str) -> Option<&'static str> {
    descriptions::of_field(definition, field)
}
