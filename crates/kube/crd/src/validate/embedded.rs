//! Objects inside of objects (`x-kubernetes-embedded-resource`) say what they are.

use aro_kube_apimachinery::{FieldError, GroupVersion};
use serde_json::{Map, Value};

use crate::cel::functions::named_formats::{DNS_1123_LABEL, LABEL_VALUE, qualified_name_problem};
use crate::definition::names::label_problem;
use crate::node::Node;
use crate::validate::Path;
use crate::validate::formats::{is_dns_label, is_label_value};

pub(crate) fn validate(root: &Node, object: &Value, errors: &mut Vec<FieldError>) {
    walk(root, object, &mut Path::default(), errors, true);
}

fn walk(node: &Node, value: &Value, path: &mut Path, errors: &mut Vec<FieldError>, is_root: bool) {
    if !node.below.embedded {
        return;
    }
    if node.embedded && !is_root {
        check(value, path, errors);
    }
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match (node.properties.get(name), node.additional.as_deref()) {
                    (Some(node), _) => path.member(name, |path| walk(node, value, path, errors, false)),
                    (None, Some(node)) => path.at(name, |path| walk(node, value, path, errors, false)),
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(node) = node.items.as_deref() else { return };
            for (index, item) in items.iter().enumerate() {
                path.at(index, |path| walk(node, item, path, errors, false));
            }
        }
        _ => {}
    }
}

fn check(value: &Value, path: &mut Path, errors: &mut Vec<FieldError>) {
    let Value::Object(members) = value else { return };
    path.member("apiVersion", |path| {
        if let Some(api_version) = named(members, "apiVersion", path, errors)
            && GroupVersion::parse(api_version).is_none()
        {
            let problem = format!("unexpected GroupVersion string: {api_version}");
            errors.push(FieldError::invalid(path.as_str(), api_version, problem));
        }
    });
    path.member("kind", |path| {
        if let Some(kind) = named(members, "kind", path, errors)
            && let Some(problem) = label_problem(&kind.to_lowercase())
        {
            let detail = format!("may have mixed case, but should otherwise match: {problem}");
            errors.push(FieldError::invalid(path.as_str(), kind, detail));
        }
    });
    if let Some(metadata) = members.get("metadata") {
        path.member("metadata", |path| check_metadata(metadata, path, errors));
    }
}

/// A text that must be there and not be empty.
fn named<'a>(
    members: &'a Map<String, Value>,
    key: &str,
    path: &Path,
    errors: &mut Vec<FieldError>,
) -> Option<&'a str> {
    match members.get(key).and_then(Value::as_str) {
        None => errors.push(FieldError::required(path.as_str(), "")),
        Some("") => errors.push(FieldError::invalid(path.as_str(), "", "must not be empty")),
        Some(text) => return Some(text),
    }
    None
}

/// Metadata of an embedded object. Of its name only what no type allows is refused.
fn check_metadata(metadata: &Value, path: &mut Path, errors: &mut Vec<FieldError>) {
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
    let mut refuse = |problem: String| {
        path.member("name", |path| errors.push(FieldError::invalid(path.as_str(), name, problem)));
    };
    if matches!(name, "." | "..") {
        refuse(format!("may not be '{name}'"));
    }
    for c in ['/', '%'] {
        if name.contains(c) {
            refuse(format!("may not contain '{c}'"));
        }
    }
    let namespace = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if !namespace.is_empty() && !is_dns_label(namespace) {
        let problem =
            if namespace.len() > 63 { "must be no more than 63 characters" } else { DNS_1123_LABEL };
        path.member("namespace", |path| {
            errors.push(FieldError::invalid(path.as_str(), namespace, problem));
        });
    }
    let Some(labels) = metadata.get("labels").and_then(Value::as_object) else { return };
    path.member("labels", |path| {
        for (name, value) in labels {
            if let Some(problem) = qualified_name_problem(name) {
                errors.push(FieldError::invalid(path.as_str(), name.as_str(), problem));
            }
            let value = value.as_str().unwrap_or_default();
            if !is_label_value(value) {
                errors.push(FieldError::invalid(path.as_str(), value, LABEL_VALUE));
            }
        }
    });
}
