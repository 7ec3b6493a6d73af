//! Validation by the schema's keywords.
//!
//! Ratcheting: a part that did not change since `old` is not looked at, so that objects that were accepted by an
//! earlier schema can still be changed elsewhere.

use aro_kube_apimachinery::FieldError;
use aro_kube_apimachinery::schema::Kind;
use serde_json::{Map, Value};

use crate::cel::functions::strings::shown_double as double;
use crate::node::{Checks, Node};
use crate::validate::formats::Format;
use crate::validate::{NOWHERE, Path, old_item};

pub(crate) fn validate(root: &Node, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check(root, new, old, &mut Path::default(), &mut errors);
    errors
}

fn check(node: &Node, value: &Value, old: Option<&Value>, path: &mut Path, errors: &mut Vec<FieldError>) {
    if old == Some(value) || (value.is_null() && node.nullable) {
        return;
    }
    check_type(node, value, path, errors);
    let checks = node.checks.as_deref();
    if let Some(checks) = checks {
        check_combined(checks, value, path, errors);
        if let Value::String(text) = value {
            check_text(checks, text, path, errors);
        }
    }
    if let (Value::String(text), Some(format)) = (value, node.format)
        && !format.accepts(text)
    {
        let detail =
            format!("{path} in body must be of type {}: {value}", format.name(), path = path.as_str());
        errors.push(FieldError::type_invalid(path.as_str(), text.as_str(), detail));
    }
    check_number(node, value, path, errors);
    if let Value::Array(items) = value {
        check_items(node, items, old, path, errors);
    }
    if let Some(choices) = checks.and_then(|checks| checks.choices.as_ref())
        && !choices.contains(value)
    {
        errors.push(unsupported(choices, value, path));
    }
    if let Value::Object(members) = value {
        check_members(node, members, old, path, errors);
    }
}

fn body(path: &Path, rest: &str) -> String {
    format!("{} in body {rest}", path.as_str())
}

/// A number that is whole, and small enough to be an integer.
fn is_integer(number: &serde_json::Number) -> bool {
    number.is_i64()
        || (number.is_f64() && number.as_f64().is_some_and(|f| f.fract() == 0.0 && f.abs() < 9.2e18))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if is_integer(number) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_type(node: &Node, value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let mut got = type_name(value);
    let (fits, mut wanted) = match node.kind {
        Kind::Any => (true, ""),
        Kind::Object => (got == "object", "object"),
        Kind::Array => (got == "array", "array"),
        Kind::String => (got == "string", "string"),
        Kind::Boolean => (got == "boolean", "boolean"),
        Kind::Integer => (got == "integer", "integer"),
        Kind::Number => (matches!(got, "integer" | "number"), "number"),
        Kind::IntOrString => (matches!(got, "integer" | "string"), "integer,string"),
    };
    if fits {
        return;
    }
    // With a format, upstream compares formats instead of types, and booleans and objects have
    // none.
    match (node.format, value) {
        (Some(_), Value::Array(_)) if node.kind == Kind::String => return,
        (Some(format), Value::Number(number)) => {
            (wanted, got) = (format.name(), if number.is_i64() { "int64" } else { "float64" });
        }
        (Some(format), Value::Object(_) | Value::Bool(_)) => (wanted, got) = (format.name(), ""),
        _ => {}
    }
    let detail = body(path, &format!("must be of type {wanted}: {got:?}"));
    errors.push(FieldError::type_invalid(path.as_str(), got, detail));
}

fn nowhere(detail: String) -> FieldError {
    FieldError::invalid(NOWHERE, "", detail)
}

/// What is wrong with a value by one of several schemas.
fn failures(node: &Node, value: &Value, path: &mut Path) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check(node, value, None, path, &mut errors);
    errors
}

/// `anyOf`, `oneOf`, `allOf` and `not`.
fn check_combined(checks: &Checks, value: &Value, path: &mut Path, errors: &mut Vec<FieldError>) {
    if !checks.any_of.is_empty() {
        let mut best = Vec::new();
        let valid = checks.any_of.iter().any(|node| {
            let failed = failures(node, value, path);
            let valid = failed.is_empty();
            keep_first(&mut best, failed);
            valid
        });
        if !valid {
            errors.push(nowhere(format!("{:?} must validate at least one schema (anyOf)", path.as_str())));
            errors.append(&mut best);
        }
    }
    if !checks.one_of.is_empty() {
        let mut best = Vec::new();
        let mut valid = 0;
        for node in &checks.one_of {
            let failed = failures(node, value, path);
            valid += usize::from(failed.is_empty());
            keep_first(&mut best, failed);
        }
        if valid != 1 {
            let found = match valid {
                0 => "Found none valid".to_owned(),
                _ => format!("Found {valid} valid alternatives"),
            };
            let place = path.as_str();
            errors.push(nowhere(format!("{place:?} must validate one and only one schema (oneOf). {found}")));
            if valid == 0 {
                errors.append(&mut best);
            }
        }
    }
    if !checks.all_of.is_empty() {
        let mut valid = 0;
        for node in &checks.all_of {
            let mut failed = failures(node, value, path);
            valid += usize::from(failed.is_empty());
            errors.append(&mut failed);
        }
        if valid != checks.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            errors.push(nowhere(format!("{:?} must validate all the schemas (allOf){none}", path.as_str())));
        }
    }
    if let Some(not) = &checks.not
        && failures(not, value, path).is_empty()
    {
        errors.push(nowhere(format!("{:?} must not validate the schema (not)", path.as_str())));
    }
}

fn keep_first(best: &mut Vec<FieldError>, failed: Vec<FieldError>) {
    if best.is_empty() {
        *best = failed;
    }
}

/// Only the first thing that is wrong with a text is said.
fn check_text(checks: &Checks, text: &str, path: &Path, errors: &mut Vec<FieldError>) {
    // Bytes bound characters, which saves counting most of the time.
    if let Some(max) = checks.max_length
        && text.len() as u64 > max
        && text.chars().count() as u64 > max
    {
        errors.push(FieldError::too_long(path.as_str(), usize::try_from(max).unwrap_or(usize::MAX)));
    } else if let Some(min) = checks.min_length
        && (text.chars().count() as u64) < min
    {
        let detail = body(path, &format!("should be at least {min} chars long"));
        errors.push(FieldError::invalid(path.as_str(), text, detail));
    } else if let Some(pattern) = &checks.pattern
        && !pattern.is_match(text)
    {
        let detail = body(path, &format!("should match '{}'", pattern.source()));
        errors.push(FieldError::invalid(path.as_str(), text, detail));
    }
}

fn check_number(node: &Node, value: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let Value::Number(number) = value else { return };
    if node.kind == Kind::Integer {
        let fits = match (node.format, number.as_i64()) {
            (Some(Format::Int32), Some(int)) => i32::try_from(int).is_ok(),
            _ => is_integer(number),
        };
        if !fits {
            let format = match node.format {
                Some(format @ (Format::Int32 | Format::Int64)) => format!("with format {}", format.name()),
                _ => "(default format)".to_owned(),
            };
            let place = path.as_str();
            errors.push(nowhere(format!("Checked value must be of type integer {format} in {place}")));
        }
    }
    let Some(checks) = node.checks.as_deref() else { return };
    let Some(float) = number.as_f64() else { return };
    // Upstream compares integers with the whole part of a bound.
    let bound = |bound: f64| if number.is_i64() { bound.trunc() } else { bound };
    let mut wrong = |rest: String| {
        errors.push(FieldError::invalid(path.as_str(), value.clone(), body(path, &rest)));
    };
    if let Some(factor) = checks.multiple_of.map(bound)
        && factor != 0.0
        && (float / factor).fract() != 0.0
    {
        wrong(format!("should be a multiple of {}", double(factor)));
    }
    if let Some(max) = checks.maximum.map(bound) {
        let (fits, or_equal) = match checks.exclusive_maximum {
            true => (float < max, ""),
            false => (float <= max, " or equal to"),
        };
        if !fits {
            wrong(format!("should be less than{or_equal} {}", double(max)));
        }
    }
    if let Some(min) = checks.minimum.map(bound) {
        let (fits, or_equal) = match checks.exclusive_minimum {
            true => (float > min, ""),
            false => (float >= min, " or equal to"),
        };
        if !fits {
            wrong(format!("should be greater than{or_equal} {}", double(min)));
        }
    }
}

fn check_items(
    node: &Node,
    items: &[Value],
    old: Option<&Value>,
    path: &mut Path,
    errors: &mut Vec<FieldError>,
) {
    if let Some(below) = node.items.as_deref() {
        for (index, item) in items.iter().enumerate() {
            let old = old_item(node, item, old);
            path.at(index, |path| check(below, item, old, path, errors));
        }
    }
    let Some(checks) = node.checks.as_deref() else { return };
    let count = items.len();
    if let Some(min) = checks.min_items
        && (count as u64) < min
    {
        let detail = body(path, &format!("should have at least {min} items"));
        errors.push(FieldError::invalid(path.as_str(), count, detail));
    }
    if let Some(max) = checks.max_items.and_then(|max| usize::try_from(max).ok())
        && count > max
    {
        errors.push(FieldError::too_many(path.as_str(), count, max));
    }
    if checks.unique_items && items.iter().enumerate().any(|(index, item)| items[..index].contains(item)) {
        let detail = body(path, "shouldn't contain duplicates");
        errors.push(FieldError::invalid(path.as_str(), "", detail));
    }
}

fn check_members(
    node: &Node,
    members: &Map<String, Value>,
    old: Option<&Value>,
    path: &mut Path,
    errors: &mut Vec<FieldError>,
) {
    if let Some(checks) = node.checks.as_deref() {
        let count = members.len();
        if let Some(min) = checks.min_properties
            && (count as u64) < min
        {
            let detail = body(path, &format!("should have at least {min} properties"));
            errors.push(FieldError::invalid(path.as_str(), count, detail));
        }
        if let Some(max) = checks.max_properties.and_then(|max| usize::try_from(max).ok())
            && count > max
        {
            errors.push(FieldError::too_many(path.as_str(), count, max));
        }
    }
    for (name, value) in members {
        if let Some(below) = node.member(name) {
            let old = old.and_then(|old| old.get(name));
            path.member(name, |path| check(below, value, old, path, errors));
        }
    }
    for name in &node.required {
        if !members.contains_key(name) {
            path.member(name, |path| errors.push(FieldError::required(path.as_str(), "")));
        }
    }
}

fn unsupported(choices: &[Value], value: &Value, path: &Path) -> FieldError {
    let name = |choice: &Value| match choice {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let names: Vec<String> = choices.iter().map(name).collect();
    FieldError::not_supported(path.as_str(), value.clone(), names.iter().map(String::as_str))
}
