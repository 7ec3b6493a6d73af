//! Rules of built-in types: what is wrong with an object, in upstream's words.

use aro_machinery::{FieldError, ResourceType};
use serde_json::Value;

/// What is wrong with a new object. Runs after defaults and [`crate::strategy::prepare_create`].
pub fn create(_resource: &ResourceType, _object: &Value) -> Vec<FieldError> {
    Vec::new()
}

/// What is wrong with a change. `subresource` is empty for the object itself.
pub fn update(_resource: &ResourceType, _subresource: &str, _new: &Value, _old: &Value) -> Vec<FieldError> {
    Vec::new()
}
