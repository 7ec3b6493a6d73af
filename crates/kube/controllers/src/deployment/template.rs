//! Telling templates apart: equality, and the hash that names a replica set.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The label by which the pods of a deployment's replica sets are told apart.
pub const HASH_LABEL: &str = "pod-template-hash";
/// What names may be made of without ever spelling a word.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const LENGTH: usize = 10;

/// Whether two templates ask for the same pods; the hash label says nothing about that.
pub fn same(one: &PodTemplateSpec, other: &PodTemplateSpec) -> bool {
    essence(one) == essence(other)
}

/// A word for a template: the same in every process, another for each count of collisions.
pub fn hash(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let mut sum = Sha256::new();
    sum.update(essence(template).to_string());
    if let Some(collisions) = collisions {
        sum.update(collisions.to_le_bytes());
    }
    sum.finalize()
        .iter()
        .take(LENGTH)
        .map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]))
        .collect()
}

/// A template as JSON without what says nothing: the hash label, nulls, empty lists and maps.
fn essence(template: &PodTemplateSpec) -> Value {
    let mut value = serde_json::to_value(template).unwrap_or_default();
    if let Some(labels) = value.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(HASH_LABEL);
    }
    bare(value).unwrap_or_default()
}

fn bare(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Array(items) if items.is_empty() => None,
        // Lists keep their length: a place in a list may mean something.
        Value::Array(items) => {
            Some(Value::Array(items.into_iter().map(|item| bare(item).unwrap_or_default()).collect()))
        }
        Value::Object(members) => {
            let sorted: BTreeMap<String, Value> =
                members.into_iter().filter_map(|(name, member)| Some((name, bare(member)?))).collect();
            (!sorted.is_empty()).then(|| Value::Object(sorted.into_iter().collect()))
        }
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(value: Value) -> PodTemplateSpec {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_hash_label_and_empty_things_make_no_difference() {
        let plain = template(
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}),
        );
        let labelled =
            template(json!({"metadata": {"labels": {"a": "b", "pod-template-hash": "q"}, "annotations": {}},
            "spec": {"containers": [{"name": "c", "image": "x", "env": []}]}}));
        let other = template(
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "y"}]}}),
        );
        assert!(same(&plain, &labelled) && !same(&plain, &other));
        assert_eq!(hash(&plain, None), hash(&labelled, None));
        assert_ne!(hash(&plain, None), hash(&other, None));
        assert_ne!(hash(&plain, None), hash(&plain, Some(1)));
        assert!(hash(&plain, None).bytes().all(|byte| LETTERS.contains(&byte)));
    }

    #[test]
    fn the_hash_of_a_template_never_changes() {
        let plain = template(
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}),
        );
        assert_eq!(hash(&plain, None), "6vdzmx2nsf");
    }
}
