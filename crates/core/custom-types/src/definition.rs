//! The CustomResourceDefinition object itself: what is filled in, what is refused, and what its status becomes.

use aro_machinery::FieldError;
use serde_json::Value;

/// Fills in what upstream fills in, then checks the definition; with `old`, also what may not change.
pub fn admit(new: &mut Value, old: Option<&Value>) -> Vec<FieldError> {
    let _ = (new, old);
    Vec::new()
}

/// The definition's `.status` as the naming and establishing controllers would leave it.
///
/// `others` are the other definitions; `now` is what `lastTransitionTime` becomes where a condition changes.
pub fn settle(crd: &Value, others: &[&Value], now: &str) -> Value {
    let _ = (others, now);
    crd.get("status").cloned().unwrap_or_default()
}
