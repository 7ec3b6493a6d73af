//! Lists that are sets or maps hold nothing twice.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use aro_kube_apimachinery::FieldError;
use aro_kube_apimachinery::schema::ListKind;
use serde_json::{Map, Value};

use crate::node::Node;
use crate::validate::Path;

/// Objects that were broken before may stay so: with such an `old`, nothing is checked.
pub(crate) fn validate(root: &Node, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let mut found = Vec::new();
    walk(root, new, &mut Path::default(), &mut found);
    if found.is_empty() {
        return;
    }
    if let Some(old) = old {
        let mut before = Vec::new();
        walk(root, old, &mut Path::default(), &mut before);
        if !before.is_empty() {
            return;
        }
    }
    errors.append(&mut found);
}

fn walk(node: &Node, value: &Value, path: &mut Path, errors: &mut Vec<FieldError>) {
    if !node.below.unique_lists {
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match (node.properties.get(name), node.additional.as_deref()) {
                    (Some(node), _) => path.member(name, |path| walk(node, value, path, errors)),
                    (None, Some(node)) => path.at(name, |path| walk(node, value, path, errors)),
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            match &node.list {
                Some(ListKind::Set) => twice(items.iter().cloned().enumerate(), path, errors),
                Some(ListKind::Map(keys)) => map_items(items, keys, path, errors),
                Some(ListKind::Atomic) | None => {}
            }
            if let Some(node) = node.items.as_deref().filter(|node| node.below.unique_lists) {
                for (index, item) in items.iter().enumerate() {
                    path.at(index, |path| walk(node, item, path, errors));
                }
            }
        }
        _ => {}
    }
}

/// The first item that is no object is reported, and then nothing else. Nulls are left to the schema.
fn map_items(items: &[Value], keys: &[String], path: &mut Path, errors: &mut Vec<FieldError>) {
    let wrong = |item: &Value| !item.is_object() && !item.is_null();
    if let Some((index, item)) = items.iter().enumerate().find(|(_, item)| wrong(item)) {
        let detail = "must be an object for an array of list-type map";
        path.at(index, |path| errors.push(FieldError::invalid(path.as_str(), item.clone(), detail)));
        return;
    }
    let objects = items.iter().enumerate().filter(|(_, item)| item.is_object());
    twice(objects.map(|(index, item)| (index, identity(item, keys))), path, errors);
}

/// What tells an item of a map list apart.
fn identity(item: &Value, keys: &[String]) -> Value {
    let mut identity = Map::new();
    for key in keys {
        if let Some(value) = item.get(key) {
            identity.insert(key.clone(), value.clone());
        }
    }
    Value::Object(identity)
}

/// A value that occurs several times is reported once, where it occurs the second time.
fn twice(items: impl Iterator<Item = (usize, Value)>, path: &mut Path, errors: &mut Vec<FieldError>) {
    let mut seen: HashMap<Value, bool> = HashMap::new();
    for (index, item) in items {
        match seen.entry(item) {
            Entry::Vacant(entry) => {
                entry.insert(false);
            }
            Entry::Occupied(mut entry) => {
                if !std::mem::replace(entry.get_mut(), true) {
                    let value = entry.key().clone();
                    path.at(index, |path| errors.push(FieldError::duplicate(path.as_str(), value)));
                }
            }
        }
    }
}
