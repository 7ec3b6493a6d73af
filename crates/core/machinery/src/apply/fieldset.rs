//! Sets of field paths, and their wire form (`FieldsV1`).

use serde_json::Value;

/// A set of paths into an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Set;

impl Set {
    /// Reads `FieldsV1`.
    pub fn from_fields_v1(_fields: &Value) -> Result<Self, String> {
        Ok(Self)
    }

    /// Writes `FieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(serde_json::Map::new())
    }

    /// A set of paths of member names (`["spec", "replicas"]`).
    pub fn of_names<'a>(_paths: impl IntoIterator<Item = &'a [&'a str]>) -> Self {
        Self
    }

    pub fn is_empty(&self) -> bool {
        true
    }
}
