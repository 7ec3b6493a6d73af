//! Reading and writing the metadata of an object held as JSON.

use serde_json::{Map, Value};

/// An object: what `{…}` means in JSON.
pub type Object = Map<String, Value>;

fn text<'a>(object: &'a Value, path: &[&str]) -> Option<&'a str> {
    get(object, path).and_then(Value::as_str)
}

/// The member at a path of names.
pub fn get<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |at, name| at.get(*name))
}

/// The member at a path of names, for change. `None` when a parent is absent or no object.
pub fn get_mut<'a>(object: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    path.iter().try_fold(object, |at, name| at.get_mut(*name))
}

/// Puts a value at a path, making objects on the way. Parents that are no objects are replaced.
pub fn set(object: &mut Value, path: &[&str], value: Value) {
    let mut at = object;
    for name in path {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(members) = at else { return };
        at = members.entry(*name).or_insert(Value::Null);
    }
    *at = value;
}

/// Takes out the member at a path.
pub fn remove(object: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    get_mut(object, parents)?.as_object_mut()?.remove(*last)
}

pub fn api_version(object: &Value) -> &str {
    text(object, &["apiVersion"]).unwrap_or_default()
}

pub fn kind(object: &Value) -> &str {
    text(object, &["kind"]).unwrap_or_default()
}

pub fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"]).unwrap_or_default()
}

pub fn namespace(object: &Value) -> &str {
    text(object, &["metadata", "namespace"]).unwrap_or_default()
}

pub fn uid(object: &Value) -> &str {
    text(object, &["metadata", "uid"]).unwrap_or_default()
}

pub fn resource_version(object: &Value) -> &str {
    text(object, &["metadata", "resourceVersion"]).unwrap_or_default()
}

pub fn generation(object: &Value) -> i64 {
    get(object, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default()
}

pub fn deletion_timestamp(object: &Value) -> Option<&str> {
    text(object, &["metadata", "deletionTimestamp"])
}

pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let list = get(object, &["metadata", "finalizers"]).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

pub fn labels(object: &Value) -> Option<&Object> {
    get(object, &["metadata", "labels"]).and_then(Value::as_object)
}

pub fn annotations(object: &Value) -> Option<&Object> {
    get(object, &["metadata", "annotations"]).and_then(Value::as_object)
}

pub fn owner_references(object: &Value) -> &[Value] {
    get(object, &["metadata", "ownerReferences"]).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn set_makes_parents_and_remove_takes_out() {
        let mut object = json!({});
        set(&mut object, &["metadata", "name"], json!("a"));
        assert_eq!(object, json!({"metadata": {"name": "a"}}));
        assert_eq!(remove(&mut object, &["metadata", "name"]), Some(json!("a")));
        assert_eq!(remove(&mut object, &["spec", "x"]), None);
    }

    #[test]
    fn metadata_of_a_wrong_kind_reads_as_absent() {
        let object = json!({"metadata": {"name": 3, "finalizers": "x", "labels": []}});
        assert_eq!(name(&object), "");
        assert_eq!(finalizers(&object).count(), 0);
        assert!(labels(&object).is_none());
    }
}
