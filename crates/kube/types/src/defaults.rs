//! Defaults of built-in types, and the canonical forms that decoding gives values.
//!
//! Defaults belong to types, not to places: a container has the same ones in a Pod and in a CronJob. So an object is
//! walked along its schema, and every definition brings what it needs: members that are always there or vanish when
//! empty (`plan`, from the tables), and a small function where upstream decides by other members (`hooks`).

mod hooks;
mod plan;

use aro_kube_apimachinery::{GroupVersionKind, meta::Object};
use serde_json::Value;

/// A value that upstream's decoder would refuse, in its words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

/// Fills in what upstream fills in for an object of a built-in kind, and gives values their canonical form: quantities
/// and times are rewritten, explicit zeros disappear where upstream cannot keep them. Other kinds stay as they are.
/// Idempotent. Malformed quantities and times stay.
pub fn apply(gvk: &GroupVersionKind, object: &mut Value) {
    // What is wrong is said to those who ask with try_apply.
    let _ = try_apply(gvk, object);
}

/// As [`apply`], and says what upstream's decoder would have refused: the first malformed quantity or time. The server
/// answers with 400, `<Kind> in version "<v>" cannot be handled as a <Kind>: <this>`.
pub fn try_apply(gvk: &GroupVersionKind, object: &mut Value) -> Result<(), Malformed> {
    let Some(plan) = plan::PLAN.of(gvk) else { return Ok(()) };
    plan::PLAN.apply(plan, object)
}

fn text<'a>(object: &'a Object, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Nothing, or what Go cannot tell from nothing.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

fn is_empty(object: &Object, key: &str) -> bool {
    object.get(key).is_none_or(is_zero)
}

fn is_absent(object: &Object, key: &str) -> bool {
    object.get(key).is_none_or(Value::is_null)
}

/// For members that are pointers: an explicit zero stays.
fn default_if_absent(object: &mut Object, key: &str, value: impl Into<Value>) {
    if is_absent(object, key) {
        object.insert(key.to_owned(), value.into());
    }
}

/// For members that are plain values: zero counts as absent.
fn default_if_empty(object: &mut Object, key: &str, value: impl Into<Value>) {
    if is_empty(object, key) {
        object.insert(key.to_owned(), value.into());
    }
}

/// The object below, made if there is none.
fn below<'a>(object: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    default_if_absent(object, key, Object::new());
    object.get_mut(key)?.as_object_mut()
}

fn child<'a>(object: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    object.get_mut(key)?.as_object_mut()
}

fn children<'a>(object: &'a mut Object, key: &str) -> impl Iterator<Item = &'a mut Object> {
    let list = object.get_mut(key).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

#[cfg(test)]
mod tests;
