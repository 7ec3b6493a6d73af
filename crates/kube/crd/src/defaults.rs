//! Fills in a structural schema's defaults.

use aro_kube_apimachinery::schema::{Additional, Schema};
use serde_json::Value;

/// Fills in defaults, from the outside to the inside: a default may bring in an object whose members have defaults.
pub(crate) fn apply(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(members) => {
            for (name, property) in &schema.properties {
                let Some(default) = &property.default else { continue };
                match members.get_mut(name) {
                    None => {
                        members.insert(name.clone(), default.clone());
                    }
                    Some(value) => replace_null(value, property),
                }
            }
            for (name, value) in members.iter_mut() {
                if let Some(property) = schema.properties.get(name) {
                    apply(value, property);
                } else if let Additional::Schema(additional) = &schema.additional {
                    replace_null(value, additional);
                    apply(value, additional);
                }
            }
        }
        Value::Array(items) => {
            let Some(below) = schema.items.as_deref() else { return };
            for item in items {
                replace_null(item, below);
                apply(item, below);
            }
        }
        _ => {}
    }
}

/// A null that is not allowed gives way to the default.
fn replace_null(value: &mut Value, schema: &Schema) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}
