//! Typed decoding of request bodies, with the strictness and the error texts of Go's decoder.

use serde_json::Value;

use crate::schema::Typed;

/// Reads JSON. Beside the value: the paths of members given more than once (the last one counts).
pub fn parse(_bytes: &[u8]) -> Result<(Value, Vec<String>), String> {
    Err("not there yet".to_owned())
}

/// Reads YAML, as [`parse`] reads JSON.
pub fn parse_yaml(_bytes: &[u8]) -> Result<(Value, Vec<String>), String> {
    Err("not there yet".to_owned())
}

/// Makes the value be of the type: takes out unknown members and nulls, and checks the JSON types of the rest.
/// Answers the paths of unknown members (`spec.containers[0].bar`).
pub fn coerce(_value: &mut Value, _typed: Typed<'_>) -> Result<Vec<String>, String> {
    Err("not there yet".to_owned())
}

/// What a strict request is refused with: `strict decoding error: unknown field "spec.foo", duplicate field "x"`.
pub fn strict_error(unknown: &[String], duplicates: &[String]) -> String {
    format!("strict decoding error: {}", warnings(unknown, duplicates).join(", "))
}

/// The same, one by one, for `Warning` headers.
pub fn warnings(_unknown: &[String], _duplicates: &[String]) -> Vec<String> {
    Vec::new()
}
