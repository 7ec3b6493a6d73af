//! RFC 7386.

use serde_json::{Map, Value};

/// Applies a merge patch: members replace members, null removes them, all else replaces as a whole.
pub fn merge_patch(object: &Value, patch: &Value) -> Value {
    let mut merged = object.clone();
    merge(&mut merged, patch);
    merged
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    for (name, change) in changes {
        if change.is_null() {
            members.remove(name);
        } else {
            merge(members.entry(name.clone()).or_insert(Value::Null), change);
        }
    }
}
