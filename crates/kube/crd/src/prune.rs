//! Removes what a structural schema does not know.
//!
//! Unknown fields go, except where the schema preserves them; nulls go where they are not allowed and nothing took
//! their place; metadata is reduced to what `ObjectMeta` knows, at the root and in embedded objects.

use aro_kube_apimachinery::schema::{Additional, Definitions, Schema, Typed};
use serde_json::{Map, Value};

use crate::validate::Path;

/// Members that every object has.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prunes an object and returns the paths of what was unknown: metadata first, then the rest, sorted.
pub(crate) fn prune(
    object: &mut Value,
    schema: &Schema,
    meta: &Schema,
    definitions: &Definitions,
) -> Vec<String> {
    let mut pruner = Pruner { meta, definitions, unknown: Vec::new() };
    let mut path = Path::default();
    if let Some(metadata) = object.get_mut("metadata") {
        path.member("metadata", |path| pruner.metadata(metadata, path));
    }
    let mut all = std::mem::take(&mut pruner.unknown);
    pruner.node(object, Some(schema), &mut path, true);
    pruner.unknown.sort();
    all.append(&mut pruner.unknown);
    drop_nulls(object, schema, true);
    pruner.embedded(object, schema, &mut path, true);
    all.append(&mut pruner.unknown);
    if let Value::Object(members) = object
        && members.get("metadata").is_some_and(Value::is_null)
    {
        members.remove("metadata");
    }
    all
}

/// Whether a value has anything that the schema does not know. Used for defaults.
pub(crate) fn has_unknown(value: &Value, schema: &Schema) -> bool {
    let definitions = Definitions::default();
    let mut pruner = Pruner { meta: schema, definitions: &definitions, unknown: Vec::new() };
    pruner.node(&mut value.clone(), Some(schema), &mut Path::default(), false);
    !pruner.unknown.is_empty()
}

struct Pruner<'a> {
    meta: &'a Schema,
    definitions: &'a Definitions,
    unknown: Vec<String>,
}

impl Pruner<'_> {
    fn node(&mut self, value: &mut Value, schema: Option<&Schema>, path: &mut Path, root: bool) {
        let preserves = schema.is_some_and(|schema| schema.preserve_unknown);
        match value {
            Value::Object(members) => self.members(members, schema, path, root, preserves),
            Value::Array(items) => {
                let below = schema.and_then(|schema| schema.items.as_deref());
                if below.is_none() && preserves {
                    return;
                }
                for (index, item) in items.iter_mut().enumerate() {
                    path.at(index, |path| self.node(item, below, path, false));
                }
            }
            _ => {}
        }
    }

    fn members(
        &mut self,
        members: &mut Map<String, Value>,
        schema: Option<&Schema>,
        path: &mut Path,
        root: bool,
        preserves: bool,
    ) {
        let is_object = root || schema.is_some_and(|schema| schema.embedded_resource);
        let mut unknown = Vec::new();
        for (name, value) in members.iter_mut() {
            if is_object && META.contains(&name.as_str()) {
                continue;
            }
            let property = schema.and_then(|schema| schema.properties.get(name));
            let below = match (property, schema.map(|schema| &schema.additional)) {
                (Some(property), _) => Some(Some(property)),
                (None, Some(Additional::Schema(additional))) => Some(Some(additional.as_ref())),
                // Anything is allowed here, but nothing is known about what is inside.
                (None, Some(Additional::Any)) => Some(None),
                (None, _) => None,
            };
            match below {
                Some(below) => path.member(name, |path| self.node(value, below, path, false)),
                None if preserves => {}
                None => unknown.push(name.clone()),
            }
        }
        for name in unknown {
            members.remove(&name);
            path.member(&name, |path| self.unknown.push(path.as_str().to_owned()));
        }
    }

    /// Metadata of objects inside of the object.
    fn embedded(&mut self, value: &mut Value, schema: &Schema, path: &mut Path, root: bool) {
        match value {
            Value::Object(members) => {
                for (name, value) in members.iter_mut() {
                    if schema.embedded_resource && !root && name == "metadata" {
                        if value.is_null() {
                            *value = Value::Object(Map::new());
                        }
                        path.member(name, |path| self.metadata(value, path));
                        continue;
                    }
                    let below = match (schema.properties.get(name), &schema.additional) {
                        (Some(property), _) => property,
                        (None, Additional::Schema(additional)) => additional,
                        _ => continue,
                    };
                    path.member(name, |path| self.embedded(value, below, path, false));
                }
            }
            Value::Array(items) => {
                let Some(below) = schema.items.as_deref() else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    path.at(index, |path| self.embedded(item, below, path, false));
                }
            }
            _ => {}
        }
    }

    /// Metadata as if it had been read into a struct and written again: unknown and empty fields go.
    fn metadata(&mut self, metadata: &mut Value, path: &mut Path) {
        let meta = Typed::new(self.meta, self.definitions);
        self.struct_like(metadata, meta, path);
    }

    fn struct_like(&mut self, value: &mut Value, typed: Typed<'_>, path: &mut Path) {
        // Fields of managers: an object of which the type says nothing more.
        if typed.schema.properties.is_empty()
            && typed.schema.additional == Additional::None
            && value.is_object()
        {
            return;
        }
        match value {
            Value::Object(members) => {
                let mut gone = Vec::new();
                for (name, value) in members.iter_mut() {
                    match typed.member(name) {
                        Some(below) => path.member(name, |path| self.struct_like(value, below, path)),
                        None if typed.preserves_unknown() => {}
                        None => {
                            path.member(name, |path| self.unknown.push(path.as_str().to_owned()));
                            gone.push(name.clone());
                        }
                    }
                    if typed.property(name).is_some()
                        && is_empty(value)
                        && !typed.schema.required.contains(name)
                    {
                        gone.push(name.clone());
                    } else if typed.property(name).is_none() && value.is_null() && !typed.preserves_unknown()
                    {
                        // A null in a map of strings reads as the empty string.
                        *value = Value::String(String::new());
                    }
                }
                for name in gone {
                    members.remove(&name);
                }
            }
            Value::Array(items) => {
                let Some(below) = typed.items() else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    path.at(index, |path| self.struct_like(item, below, path));
                }
            }
            _ => {}
        }
    }
}

/// What Go leaves out when it writes a struct.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        // `controller: false` is kept: it is a pointer.
        Value::Bool(_) => false,
    }
}

/// Nulls that are not allowed and have no default are taken as absent. In lists they stay, and fail validation.
fn drop_nulls(value: &mut Value, schema: &Schema, root: bool) {
    match value {
        Value::Object(members) => members.retain(|name, value| {
            if (root || schema.embedded_resource) && META.contains(&name.as_str()) {
                return true;
            }
            let below = match (schema.properties.get(name), &schema.additional) {
                (Some(property), _) => property,
                (None, Additional::Schema(additional)) => additional,
                _ => return true,
            };
            if value.is_null() && !below.nullable {
                return false;
            }
            drop_nulls(value, below, false);
            true
        }),
        Value::Array(items) => {
            if let Some(below) = schema.items.as_deref() {
                for item in items {
                    drop_nulls(item, below, false);
                }
            }
        }
        _ => {}
    }
}
