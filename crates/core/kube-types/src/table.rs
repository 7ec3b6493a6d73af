//! Tables: the columns of a resource and the cells of an object, as `kubectl get` shows them.
//!
//! The server makes rows out of them (metadata, the object itself when asked for). Custom types bring their own columns
//! and are not known here.

use aro_base::Timestamp;
use aro_machinery::ResourceType;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    pub name: String,
    /// `string`, `integer`, `date`, …
    pub kind: String,
    /// `name` marks the column that names the object.
    pub format: String,
    pub description: String,
    /// 0 is always shown, 1 only on request.
    pub priority: i32,
}

/// The columns of a built-in resource. `Name` and `Created At` for resources nobody wrote columns for.
pub fn columns(_resource: &ResourceType) -> &'static [ColumnDefinition] {
    &[]
}

/// One cell for each column.
pub fn cells(_resource: &ResourceType, _object: &Value, _now: Timestamp) -> Vec<Value> {
    Vec::new()
}
