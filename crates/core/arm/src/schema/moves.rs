//! Members that older api-versions keep in another place.

use serde_json::{Map, Value};

use super::Version;

/// A member below `parent` that is at `old` up to a version, and at `new` since.
#[derive(Debug, Clone, Copy)]
pub struct Move<V> {
    pub until: V,
    /// Where both places hang.
    pub parent: &'static [&'static str],
    pub old: &'static [&'static str],
    pub new: &'static [&'static str],
}

impl<V: Version> Move<V> {
    pub fn applies(&self, version: V) -> bool {
        version <= self.until
    }

    /// Puts the member of an older body where the newest shape has it. What is already there is unknown to that
    /// version, and goes.
    pub fn lift(&self, body: &mut Value) {
        let Some(parent) = descend(body, self.parent) else { return };
        take(parent, self.new);
        if let Some(value) = take(parent, self.old) {
            put(parent, self.new, value);
        }
    }

    /// Puts the member of an answer where the older version has it.
    pub fn lower(&self, body: &mut Value) {
        let Some(parent) = descend(body, self.parent) else { return };
        if let Some(value) = take(parent, self.new) {
            put(parent, self.old, value);
        }
    }

    /// The path of a problem, as the older version has it.
    pub fn path(&self, path: &str) -> Option<String> {
        let join = |tail: &[&str]| [self.parent, tail].concat().join(".");
        let rest = path.strip_prefix(&join(self.new))?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then(|| join(self.old) + rest)
    }
}

fn descend<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    path.iter().try_fold(value, |value, name| value.as_object_mut()?.get_mut(*name))?.as_object_mut()
}

fn take(parent: &mut Map<String, Value>, path: &[&str]) -> Option<Value> {
    match path {
        [] => None,
        [name] => parent.remove(*name),
        [name, rest @ ..] => take(parent.get_mut(*name)?.as_object_mut()?, rest),
    }
}

/// Puts it there if the way exists; else the way is made of empty objects, unless something else is in it.
fn put(parent: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [name] => {
            parent.insert((*name).to_owned(), value);
        }
        [name, rest @ ..] => {
            let next = parent.entry(*name).or_insert_with(|| Value::Object(Map::new()));
            if let Some(next) = next.as_object_mut() {
                put(next, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::Edition;
    use super::*;

    const MOVE: Move<Edition> =
        Move { until: Edition::First, parent: &["a"], old: &["key", "vault"], new: &["vault"] };

    #[test]
    fn what_is_lifted_is_lowered_again() {
        let old = json!({"a": {"key": {"vault": 1, "name": 2}}, "b": 3});
        let new = json!({"a": {"key": {"name": 2}, "vault": 1}, "b": 3});
        let mut value = old.clone();
        MOVE.lift(&mut value);
        assert_eq!(value, new);
        MOVE.lower(&mut value);
        assert_eq!(value, old);
    }

    #[test]
    fn a_member_in_its_newer_place_is_unknown_to_the_older_version() {
        let mut value = json!({"a": {"key": {"name": 2}, "vault": 1}});
        MOVE.lift(&mut value);
        assert_eq!(value, json!({"a": {"key": {"name": 2}}}));
    }

    #[test]
    fn odd_shapes_are_left_alone() {
        for odd in
            [json!(null), json!([]), json!({"a": 1}), json!({"a": {"key": 1}}), json!({"a": {"key": []}})]
        {
            let mut value = odd.clone();
            MOVE.lift(&mut value);
            MOVE.lower(&mut value);
            assert_eq!(value, odd);
        }
    }

    #[test]
    fn paths_are_reported_as_the_older_version_has_them() {
        assert_eq!(MOVE.path("a.vault").as_deref(), Some("a.key.vault"));
        assert_eq!(MOVE.path("a.vault.x").as_deref(), Some("a.key.vault.x"));
        assert_eq!(MOVE.path("a.vaultName"), None);
        assert_eq!(MOVE.path("a.key.name"), None);
    }
}
