//! Field selection of lists: `fields=id,azure.resource_name`.

use std::collections::BTreeMap;

use aro_ocm::{Code, Problem};
use serde_json::{Map, Value};

/// The number and the depth of fields.
const MAX_FIELDS: usize = 100;
const MAX_DEPTH: usize = 16;

/// Members that every object keeps.
const ALWAYS: [&str; 3] = ["kind", "id", "href"];

/// The selected members of an object. An empty selection selects all.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Fields(BTreeMap<String, Fields>);

impl Fields {
    /// Parses a selection; `None` for everything.
    pub fn parse(text: &str) -> Result<Option<Self>, Problem> {
        let names: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            return Ok(None);
        }
        if names.len() > MAX_FIELDS || names.iter().any(|name| name.split('.').count() > MAX_DEPTH) {
            let reason = format!("at most {MAX_FIELDS} fields of at most {MAX_DEPTH} levels can be selected");
            return Err(Problem::new(Code::InvalidValue, "fields", reason));
        }
        let mut fields = Self::default();
        for name in names.into_iter().chain(ALWAYS) {
            let mut segments: Vec<&str> = name.split('.').collect();
            segments.reverse();
            fields.select(segments);
        }
        Ok(Some(fields))
    }

    /// `segments` has the outermost name last.
    fn select(&mut self, mut segments: Vec<&str>) {
        let Some(first) = segments.pop() else { return };
        let known = self.0.contains_key(first);
        let inner = self.0.entry(first.to_owned()).or_default();
        if segments.is_empty() {
            inner.0.clear();
        } else if !known || !inner.0.is_empty() {
            inner.select(segments);
        }
    }

    /// Keeps what is selected.
    pub fn prune(&self, object: &mut Map<String, Value>) {
        object.retain(|name, value| {
            let Some(inner) = self.0.get(name) else { return false };
            if let (false, Value::Object(members)) = (inner.0.is_empty(), value) {
                inner.prune(members);
            }
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pruned(fields: &str) -> Value {
        let mut object = json!({"id": "1", "kind": "K", "a": {"b": {"c": 1, "d": 2}, "e": 3}, "f": 4});
        if let (Some(fields), Value::Object(members)) = (Fields::parse(fields).unwrap(), &mut object) {
            fields.prune(members);
        }
        object
    }

    #[test]
    fn selected_members_and_names_are_kept() {
        assert_eq!(pruned("f"), json!({"id": "1", "kind": "K", "f": 4}));
        assert_eq!(pruned("a.b.c"), json!({"id": "1", "kind": "K", "a": {"b": {"c": 1}}}));
        assert_eq!(pruned("a.b.c,a"), pruned("a,a.b.c"));
        assert_eq!(pruned("a,a.b.c")["a"]["e"], 3);
        assert_eq!(pruned(" ")["f"], 4);
        assert!(Fields::parse(&"a,".repeat(101)).is_err());
    }
}
