//! Field selection in lists: `fields=id,metadata.name,status.*`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::fault::{Code, Fault};

/// The number and the depth of fields.
const MAX_FIELDS: usize = 100;
const MAX_DEPTH: usize = 16;

/// The selected members of an object. An empty selection selects all.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Fields(BTreeMap<String, Fields>);

impl Fields {
    /// Parses a selection; `None` for everything. `id` is always selected.
    pub(super) fn read(text: &str, known: &[&str]) -> Result<Option<Self>, Fault> {
        let named: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if named.is_empty() {
            return Ok(None);
        }
        let refused = |reason: String| Err(Fault::new(Code::Validation, reason));
        if named.len() > MAX_FIELDS || named.iter().any(|name| name.split('.').count() > MAX_DEPTH) {
            return refused(format!(
                "at most {MAX_FIELDS} fields of at most {MAX_DEPTH} levels can be chosen"
            ));
        }
        let unknown: Vec<&str> = named
            .iter()
            .filter(|name| !known.contains(&name.split('.').next().unwrap_or_default()))
            .copied()
            .collect();
        if !unknown.is_empty() {
            return refused(format!("there are no such fields: {}", unknown.join(", ")));
        }
        let mut fields = Self::default();
        for name in named.into_iter().chain(["id"]) {
            fields.choose(name);
        }
        Ok(Some(fields))
    }

    fn choose(&mut self, name: &str) {
        let (first, rest) = name.split_once('.').map_or((name, None), |(first, rest)| (first, Some(rest)));
        match (self.0.get_mut(first), rest) {
            // The whole member is selected already.
            (Some(inner), Some(_)) if inner.0.is_empty() => {}
            (Some(inner), Some(rest)) if rest != "*" => inner.choose(rest),
            (None, Some(rest)) if rest != "*" => {
                let mut inner = Self::default();
                inner.choose(rest);
                self.0.insert(first.to_owned(), inner);
            }
            _ => {
                self.0.insert(first.to_owned(), Self::default());
            }
        }
    }

    /// Removes what is not selected from a value; in a list, from every item.
    pub(super) fn project(&self, value: Value) -> Value {
        if self.0.is_empty() {
            return value;
        }
        match value {
            Value::Object(members) => {
                let mut kept = Map::new();
                for (name, value) in members {
                    if let Some(inner) = self.0.get(&name) {
                        kept.insert(name, inner.project(value));
                    }
                }
                Value::Object(kept)
            }
            Value::Array(items) => items.into_iter().map(|item| self.project(item)).collect(),
            plain => plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chosen(text: &str) -> Value {
        let item = json!({
            "id": "1", "name": "n", "metadata": {"name": "m", "labels": {"a": "b"}}, "manifests": [{"kind": "A", "x": 1}]
        });
        let fields = Fields::read(text, &["id", "name", "metadata", "manifests"]).unwrap().unwrap();
        fields.project(item)
    }

    #[test]
    fn only_what_is_asked_for_is_left_and_always_the_id() {
        assert_eq!(chosen("name"), json!({"id": "1", "name": "n"}));
        assert_eq!(chosen("metadata.name"), json!({"id": "1", "metadata": {"name": "m"}}));
        let all = json!({"id": "1", "metadata": {"name": "m", "labels": {"a": "b"}}});
        for text in
            ["metadata", "metadata.*", "metadata.name,metadata.*", "metadata,metadata.name", "id,metadata"]
        {
            assert_eq!(chosen(text), all, "{text}");
        }
        assert_eq!(chosen("manifests.kind"), json!({"id": "1", "manifests": [{"kind": "A"}]}));
    }

    #[test]
    fn unknown_fields_are_named_and_none_is_everything() {
        let fault = Fields::read("id,nothing, other.x", &["id"]).unwrap_err();
        assert_eq!(
            (fault.code, fault.reason.as_str()),
            (Code::Validation, "there are no such fields: nothing, other.x")
        );
        assert_eq!(Fields::read(" , ", &["id"]).unwrap(), None);
    }
}
