//! Objects inside of objects (`x-kubernetes-embedded-resource`) say what they are.

use aro_machinery::{FieldError, GroupVersion};
use serde_json::Value;

use crate::node::Node;
use crate::validate::Path;

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
    let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("apiVersion");
    path.member("apiVersion", |path| {
        if api_version.is_empty() {
            errors.push(FieldError::required(path.as_str(), ""));
        } else if GroupVersion::parse(api_version).is_none() {
            let problem = format!("unexpected GroupVersion string: {api_version}");
            errors.push(FieldError::invalid(path.as_str(), api_version, problem));
        }
    });
    path.member("kind", |path| {
        if text("kind").is_empty() {
            errors.push(FieldError::required(path.as_str(), ""));
        }
    });
}
