//! Schemas of definitions: structural, and free of what the server does not do.
//!
//! A structural schema says of every field what type it has; logical combinations only restrict what is said
//! elsewhere.

use aro_kube_apimachinery::FieldError;
use aro_kube_apimachinery::schema::Schema;
use serde_json::Value;

use crate::definition::{Errors, flag, list, rules, text};
use crate::go_regex;
use crate::node::Compiler;
use crate::{prune, validate};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
}

pub(super) fn check(root: &Value, place: &str, errors: &mut Errors) {
    if flag(root, "nullable") {
        errors.forbidden(format!("{place}.nullable"), "nullable cannot be true at the root");
    }
    node(root, place, Level::Root, false, errors);
    metadata(root, place, errors);
}

fn is_set(schema: &Value, key: &str) -> bool {
    schema.get(key).is_some_and(|value| !value.is_null())
}

fn node(schema: &Value, place: &str, level: Level, in_metadata: bool, errors: &mut Errors) {
    unsupported(schema, place, errors);
    check_type(schema, place, level, errors);
    restrictions(schema, place, errors);
    if level == Level::Root && is_set(schema, "additionalProperties") {
        errors.forbidden(format!("{place}.additionalProperties"), "must not be used at the root");
    } else if is_set(schema, "properties")
        && schema.get("additionalProperties").is_some_and(|additional| additional != &Value::Bool(false))
        && is_set(schema, "additionalProperties")
    {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.forbidden(format!("{place}.additionalProperties"), detail);
    }
    if text(schema, "type") == "array" && !is_set(schema, "items") {
        errors.required(format!("{place}.items"), "must be specified");
    }
    list_semantics(schema, place, errors);
    default(schema, place, in_metadata, errors);
    rules::check(schema, place, errors);
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let below = format!("{place}.properties[{name}]");
        let in_metadata = in_metadata || (level == Level::Root && name == "metadata");
        node(property, &below, Level::Field, in_metadata, errors);
    }
    if let Some(additional @ Value::Object(_)) = schema.get("additionalProperties") {
        node(additional, &format!("{place}.additionalProperties"), Level::Field, in_metadata, errors);
    }
    match schema.get("items") {
        Some(items @ Value::Object(_)) => {
            node(items, &format!("{place}.items"), Level::Item, in_metadata, errors);
        }
        Some(Value::Array(_)) => {
            errors.forbidden(format!("{place}.items"), "items must be a schema object and not an array");
        }
        Some(_) | None => {}
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, value) in list(schema, key).iter().enumerate() {
            let int_or_string = is_int_or_string(schema, key);
            nested(value, &format!("{place}.{key}[{index}]"), int_or_string, errors);
        }
    }
    if let Some(not) = schema.get("not").filter(|not| !not.is_null()) {
        nested(not, &format!("{place}.not"), false, errors);
    }
}

/// The two ways in which `x-kubernetes-int-or-string` may be spelled out.
fn is_int_or_string(schema: &Value, key: &str) -> bool {
    let pair = |list: &[Value]| matches!(list, [a, b] if text(a, "type") == "integer" && text(b, "type") == "string");
    match key {
        "anyOf" => pair(list(schema, "anyOf")),
        "allOf" => list(schema, "allOf").iter().any(|first| pair(list(first, "anyOf"))),
        _ => false,
    }
}

fn unsupported(schema: &Value, place: &str, errors: &mut Errors) {
    for key in ["$ref", "id", "patternProperties", "definitions", "additionalItems", "dependencies"] {
        if is_set(schema, key) {
            errors.forbidden(format!("{place}.{key}"), &format!("{key} is not supported"));
        }
    }
    if flag(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.forbidden(format!("{place}.uniqueItems"), detail);
    }
    let pattern = text(schema, "pattern");
    if let Err(problem) = go_regex::check(pattern) {
        let detail =
            format!("must be a valid regular expression, but isn't: error parsing regexp: {problem}");
        errors.invalid(format!("{place}.pattern"), pattern, detail);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let field = format!("{place}.x-kubernetes-preserve-unknown-fields");
        errors.invalid(field, false, "must be true or undefined");
    }
}

fn check_type(schema: &Value, place: &str, level: Level, errors: &mut Errors) {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    let field = format!("{place}.type");
    let free = flag(schema, "x-kubernetes-int-or-string")
        || flag(schema, "x-kubernetes-preserve-unknown-fields")
        || is_set(schema, "$ref");
    match (text(schema, "type"), level) {
        ("", Level::Root) => errors.required(field, "must not be empty at the root"),
        ("", _) if free => {}
        ("", Level::Field) => errors.required(field, "must not be empty for specified object fields"),
        ("", Level::Item) => errors.required(field, "must not be empty for specified array items"),
        (other, _) if !TYPES.contains(&other) => {
            errors.push(FieldError::not_supported(field, other, TYPES));
        }
        ("object", _) => {}
        (other, Level::Root) => errors.invalid(field, other, "must be object at the root"),
        _ => {}
    }
}

/// What the extensions ask of the type beside them.
fn restrictions(schema: &Value, place: &str, errors: &mut Errors) {
    let kind = text(schema, "type");
    if flag(schema, "x-kubernetes-embedded-resource") {
        if !flag(schema, "x-kubernetes-preserve-unknown-fields") && !is_set(schema, "properties") {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
            errors.required(format!("{place}.properties"), detail);
        }
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        match kind {
            "object" => {}
            "" => errors.required(format!("{place}.type"), detail),
            _ => errors.invalid(format!("{place}.type"), kind, detail),
        }
    }
    if is_set(schema, "x-kubernetes-map-type") {
        let map_type = text(schema, "x-kubernetes-map-type");
        if kind != "object" {
            let detail = "must be object if x-kubernetes-map-type is specified";
            errors.invalid(format!("{place}.type"), kind, detail);
        } else if !matches!(map_type, "atomic" | "granular") {
            let field = format!("{place}.x-kubernetes-map-type");
            errors.push(FieldError::not_supported(field, map_type, ["atomic", "granular"]));
        }
    }
}

fn list_semantics(schema: &Value, place: &str, errors: &mut Errors) {
    let list_type = text(schema, "x-kubernetes-list-type");
    let keys = list(schema, "x-kubernetes-list-map-keys");
    let type_field = format!("{place}.x-kubernetes-list-type");
    let keys_field = format!("{place}.x-kubernetes-list-map-keys");
    if !list_type.is_empty() {
        if text(schema, "type") != "array" {
            let detail = "must be array if x-kubernetes-list-type is specified";
            errors.invalid(format!("{place}.type"), text(schema, "type"), detail);
        } else if !matches!(list_type, "atomic" | "set" | "map") {
            errors.push(FieldError::not_supported(type_field.clone(), list_type, ["atomic", "set", "map"]));
        }
    }
    if !keys.is_empty() && list_type != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            "" => errors.required(type_field, detail),
            other => errors.invalid(type_field, other, detail),
        }
    }
    let items = schema.get("items").unwrap_or(&Value::Null);
    if matches!(list_type, "set" | "map") && flag(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.forbidden(format!("{place}.items.nullable"), &detail);
    }
    match list_type {
        "set" => set_items(items, &format!("{place}.items"), errors),
        "map" if keys.is_empty() => {
            errors.required(keys_field, "must not be empty if x-kubernetes-list-type is map");
        }
        "map" => map_items(items, keys, place, &keys_field, errors),
        _ => {}
    }
}

fn set_items(items: &Value, place: &str, errors: &mut Errors) {
    let (kind, key, wanted) = match text(items, "type") {
        "object" => ("object", "x-kubernetes-map-type", "atomic"),
        "array" => ("array", "x-kubernetes-list-type", "atomic"),
        _ => return,
    };
    let found = items.get(key).cloned().unwrap_or_default();
    // Lists are atomic unless they say otherwise, objects are not.
    let sound = found.as_str() == Some(wanted) || (kind == "array" && found.is_null());
    if !sound {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        errors.invalid(format!("{place}.{key}"), found, detail);
    }
}

fn map_items(items: &Value, keys: &[Value], place: &str, keys_field: &str, errors: &mut Errors) {
    let kind = text(items, "type");
    if kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.invalid(format!("{place}.items.type"), kind, detail);
        return;
    }
    let properties = items.get("properties").unwrap_or(&Value::Null);
    let names: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
    for name in &names {
        let Some(property) = properties.get(name) else {
            errors.invalid(keys_field, keys.to_vec(), "entries must all be names of item properties");
            continue;
        };
        let field = format!("{place}.items.properties[{name}]");
        if matches!(text(property, "type"), "object" | "array") {
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            errors.invalid(format!("{field}.type"), text(property, "type"), detail);
        }
        if flag(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.forbidden(format!("{field}.nullable"), detail);
        }
        let required = list(items, "required").iter().any(|required| required.as_str() == Some(name));
        if !required && !is_set(property, "default") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.required(format!("{field}.default"), detail);
        }
    }
    if names.iter().enumerate().any(|(index, name)| names[..index].contains(name)) {
        errors.invalid(keys_field, keys.to_vec(), "must not contain duplicate entries");
    }
}

/// What stands inside of `allOf` and its like may only restrict.
fn nested(schema: &Value, place: &str, int_or_string: bool, errors: &mut Errors) {
    const EMPTY: &str = "must be empty to be structural";
    for key in ["type", "description", "title"] {
        let allowed = key == "type" && int_or_string;
        if !allowed && !text(schema, key).is_empty() {
            errors.forbidden(format!("{place}.{key}"), EMPTY);
        }
    }
    for key in ["default", "additionalProperties"] {
        if is_set(schema, key) {
            errors.forbidden(format!("{place}.{key}"), "must be undefined to be structural");
        }
    }
    for key in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        if flag(schema, key) {
            errors.forbidden(format!("{place}.{key}"), "must be false to be structural");
        }
    }
    for key in ["x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if is_set(schema, key) {
            errors.forbidden(format!("{place}.{key}"), "must be undefined to be structural");
        }
    }
    if !list(schema, "x-kubernetes-list-map-keys").is_empty() {
        errors.forbidden(format!("{place}.x-kubernetes-list-map-keys"), EMPTY);
    }
    if !list(schema, "x-kubernetes-validations").is_empty() {
        errors.forbidden(format!("{place}.x-kubernetes-validations"), EMPTY);
    }
    unsupported(schema, place, errors);
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        nested(property, &format!("{place}.properties[{name}]"), false, errors);
    }
    if let Some(items @ Value::Object(_)) = schema.get("items") {
        nested(items, &format!("{place}.items"), false, errors);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, value) in list(schema, key).iter().enumerate() {
            nested(value, &format!("{place}.{key}[{index}]"), int_or_string && key == "anyOf", errors);
        }
    }
    if let Some(not) = schema.get("not").filter(|not| !not.is_null()) {
        nested(not, &format!("{place}.not"), false, errors);
    }
}

/// A default is an object that could have been written: nothing unknown, and valid.
fn default(schema: &Value, place: &str, in_metadata: bool, errors: &mut Errors) {
    let Some(default) = schema.get("default").filter(|default| !default.is_null()) else { return };
    let field = format!("{place}.default");
    if in_metadata {
        errors.forbidden(field, "must not be set in top-level metadata");
        return;
    }
    let Ok(compiled) = Schema::from_openapi(schema) else { return };
    if prune::has_unknown(default, &compiled) {
        errors.invalid(field, default.clone(), "must not have unknown fields");
        return;
    }
    let mut filled = default.clone();
    crate::defaults::apply(&mut filled, &compiled);
    let root = Compiler::default().compile(&compiled, &mut Vec::new());
    for mut error in validate::validate(&root, None, &filled, None) {
        if error.field != validate::NOWHERE {
            let separator = if error.field.is_empty() { "" } else { "." };
            error.field = format!("{field}{separator}{}", error.field);
        }
        errors.push(error);
    }
}

/// Metadata is known: a schema may only restrict the name.
fn metadata(root: &Value, place: &str, errors: &mut Errors) {
    let properties = root.get("properties").unwrap_or(&Value::Null);
    for (name, kind) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
        let Some(property) = properties.get(name) else { continue };
        let found = text(property, "type");
        if found != kind && !found.is_empty() {
            errors.invalid(format!("{place}.properties[{name}].type"), found, format!("must be {kind}"));
        }
    }
    let inner = properties.get("metadata").and_then(|metadata| metadata.get("properties"));
    let known = |name: &String| name == "name" || name == "generateName";
    if inner.and_then(Value::as_object).is_some_and(|inner| !inner.keys().all(known)) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.forbidden(format!("{place}.properties[metadata]"), detail);
    }
}
