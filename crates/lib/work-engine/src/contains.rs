//! Whether an object on the cluster is still what a manifest says.
//!
//! Servers add members and write values their own way ("1000m" becomes "1"), so a manifest is never compared as a whole. There
//! are two ways, for two moments:
//! * [`contains`]: after a restart, when nothing is known of what the server made of the manifest. It may say no where
//!   the server would say yes; then the manifest is applied, which changes nothing, and the second way counts from there on.
//! * [`print()`] of what a manifest covers: taken when the manifest was written and whenever the object changed since. As long
//!   as it stays the same, no writer changed what the manifest contains.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

/// Whether all that `desired` says is so in `live`. Null and empty members of `desired` may be missing there.
pub(crate) fn contains(live: &Value, desired: &Value) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            desired.iter().all(|(name, value)| match live.get(name) {
                Some(there) => contains(there, value),
                None => is_nothing(value),
            })
        }
        (Value::Array(live), Value::Array(desired)) => {
            live.len() == desired.len()
                && live.iter().zip(desired).all(|(live, desired)| contains(live, desired))
        }
        (Value::Number(live), Value::Number(desired)) => live == desired || live.as_f64() == desired.as_f64(),
        (live, desired) => live == desired,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().all(is_nothing),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// A digest of those members of `live` that `desired` names.
pub(crate) fn print(live: &Value, desired: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    digest(live, desired, &mut hasher);
    hasher.finish()
}

fn digest(live: &Value, desired: &Value, hasher: &mut DefaultHasher) {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            hasher.write_u8(b'{');
            for (name, value) in desired {
                name.hash(hasher);
                digest(live.get(name).unwrap_or(&Value::Null), value, hasher);
            }
            hasher.write_u8(b'}');
        }
        (Value::Array(live), Value::Array(desired)) if live.len() == desired.len() => {
            hasher.write_u8(b'[');
            for (live, desired) in live.iter().zip(desired) {
                digest(live, desired, hasher);
            }
        }
        (live, _) => live.hash(hasher),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_contains_what_the_server_only_added_to() {
        for (live, desired, expected) in [
            (json!({"a": 1, "b": 2}), json!({"a": 1}), true),
            (json!({"a": 1}), json!({"a": 2}), false),
            (json!({"a": 1}), json!({"a": 1.0}), true),
            (json!({}), json!({"status": {}, "x": null, "y": {"creationTimestamp": null}}), true),
            (json!({}), json!({"data": {"k": ""}}), false),
            (json!({"l": [{"n": "a", "p": "TCP"}]}), json!({"l": [{"n": "a"}]}), true),
            (json!({"l": [{"n": "a"}, {"n": "b"}]}), json!({"l": [{"n": "a"}]}), false),
            (json!({"l": ["b", "a"]}), json!({"l": ["a", "b"]}), false),
            (json!({"q": "1"}), json!({"q": "1000m"}), false),
        ] {
            assert_eq!(contains(&live, &desired), expected, "{live} and {desired}");
        }
    }

    #[test]
    fn the_print_changes_with_what_the_manifest_names_and_with_nothing_else() {
        let desired = json!({"data": {"a": "1000m"}, "l": [{"n": "a"}], "gone": "x"});
        let made = json!({"data": {"a": "1"}, "l": [{"n": "a", "p": "TCP"}]});
        let print = |live: Value| super::print(&live, &desired);
        let was = print(made.clone());
        assert_eq!(was, print(json!({"data": {"a": "1", "b": "2"}, "l": [{"n": "a", "p": "UDP"}], "x": 1})));
        for other in [
            json!({"data": {"a": "2"}, "l": [{"n": "a"}]}),
            json!({"data": {"a": "1"}, "l": [{"n": "b"}]}),
            json!({"data": {"a": "1"}, "l": [{"n": "a"}, {"n": "b"}]}),
            json!({"data": {"a": "1"}, "l": [{"n": "a"}], "gone": "x"}),
            json!({"data": {"a": "1"}}),
        ] {
            assert_ne!(was, print(other.clone()), "{other}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn everything_contains_itself(value in any_json()) {
            prop_assert!(contains(&value, &value));
        }

        #[test]
        fn what_contains_the_same_of_two_objects_has_one_print(value in any_json(), other in any_json()) {
            if contains(&other, &value) && !has_nothing(&value) {
                prop_assert_eq!(print(&other, &value), print(&value, &value));
            }
        }
    }

    /// Members that may be missing are seen as missing by the print.
    fn has_nothing(value: &Value) -> bool {
        match value {
            Value::Object(members) => {
                members.values().any(|member| is_nothing(member) || has_nothing(member))
            }
            Value::Array(items) => items.iter().any(has_nothing),
            _ => false,
        }
    }
}
