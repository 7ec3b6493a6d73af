//! Field selectors: which fields of a built-in resource can be asked for, and their values.

use std::borrow::Cow;

use aro_machinery::ResourceType;
use serde_json::Value;

/// The fields a resource can be selected by. All have `metadata.name`, namespaced ones `metadata.namespace` too.
pub fn field_selectors(_resource: &ResourceType) -> &'static [&'static str] {
    &["metadata.name", "metadata.namespace"]
}

/// The value of a selectable field, empty when the object has none. `None`: the resource is not selectable by it.
pub fn field_value<'a>(_resource: &ResourceType, _object: &'a Value, _field: &str) -> Option<Cow<'a, str>> {
    None
}
