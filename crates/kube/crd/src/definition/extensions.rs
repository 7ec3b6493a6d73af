//! Subresources, printer columns and selectable fields of a version.

use serde_json::Value;

use crate::definition::{Errors, text};
use crate::json_path::JsonPath;

const SIMPLE: &str = "must be a simple json path starting with .";

fn is_simple(path: &str) -> bool {
    path.starts_with('.') && JsonPath::parse(path).is_some_and(|path| path.names().is_some())
}

pub(super) fn subresources(value: &Value, place: &str, errors: &mut Errors) {
    let Some(scale) = value.get("scale").filter(|scale| !scale.is_null()) else { return };
    for (key, under) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let field = format!("{place}.scale.{key}");
        match text(scale, key) {
            "" => errors.required(field, ""),
            path if !path.starts_with('.') => errors.invalid(field, path, SIMPLE),
            path if !path.starts_with(&format!("{under}.")) => {
                errors.invalid(field, path, format!("should be a json path under {under}"));
            }
            _ => {}
        }
    }
    let selector = text(scale, "labelSelectorPath");
    let field = format!("{place}.scale.labelSelectorPath");
    if selector.is_empty() {
        return;
    }
    if !is_simple(selector) {
        errors.invalid(field, selector, SIMPLE);
    } else if !selector.starts_with(".spec.") && !selector.starts_with(".status.") {
        errors.invalid(field, selector, "should be a json path under either .spec or .status");
    }
}

pub(super) fn columns(value: &Value, place: &str, errors: &mut Errors) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for (index, column) in value.as_array().into_iter().flatten().enumerate() {
        let place = format!("{place}[{index}]");
        if text(column, "name").is_empty() {
            errors.required(format!("{place}.name"), "");
        }
        match text(column, "type") {
            "" => errors.required(format!("{place}.type"), &format!("must be one of {}", TYPES.join(","))),
            kind if !TYPES.contains(&kind) => {
                errors.invalid(format!("{place}.type"), kind, format!("must be one of {}", TYPES.join(",")));
            }
            _ => {}
        }
        let format = text(column, "format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            errors.invalid(
                format!("{place}.format"),
                format,
                format!("must be one of {}", FORMATS.join(",")),
            );
        }
        match text(column, "jsonPath") {
            "" => errors.required(format!("{place}.JSONPath"), ""),
            path if !path.starts_with('.') => errors.invalid(format!("{place}.JSONPath"), path, SIMPLE),
            _ => {}
        }
    }
}

pub(super) fn selectable_fields(value: &Value, version: &Value, place: &str, errors: &mut Errors) {
    let root = version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null);
    for (index, field) in value.as_array().into_iter().flatten().enumerate() {
        let place = format!("{place}[{index}].jsonPath");
        let path = text(field, "jsonPath");
        let refuse = |errors: &mut Errors, why: &str| {
            errors.invalid(place.clone(), path, format!("is an invalid path: {why}"));
        };
        if path.is_empty() {
            errors.required(place, "");
            continue;
        }
        let parsed = JsonPath::parse(path).filter(|_| path.starts_with('.'));
        let Some(names) = parsed.as_ref().and_then(JsonPath::names) else {
            refuse(errors, "does not refer to a valid field");
            continue;
        };
        let target = names.iter().try_fold(root, |schema, name| schema.get("properties")?.get(name));
        match target.map(|schema| text(schema, "type")) {
            Some("string" | "integer" | "boolean") => {
                if names.first() == Some(&"metadata") {
                    errors.invalid(place, path, "must not point to fields in metadata");
                }
            }
            Some(_) => refuse(errors, "must point to a field of type string, boolean or integer"),
            None => refuse(errors, "does not refer to a valid field"),
        }
    }
}
