//! Rules of `x-kubernetes-validations` inside of a definition: their shape and their syntax.
//!
//! Types and costs are not checked. A rule that names what does not exist is admitted, and listed as not enforced.

use aro_kube_apimachinery::FieldError;
use serde_json::{Value, json};

use crate::cel::lower;
use crate::definition::{Errors, list, text};

const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

pub(super) fn check(schema: &Value, place: &str, errors: &mut Errors) {
    for (index, rule) in list(schema, "x-kubernetes-validations").iter().enumerate() {
        let place = format!("{place}.x-kubernetes-validations[{index}]");
        let source = text(rule, "rule").trim();
        if source.is_empty() {
            errors.required(format!("{place}.rule"), "rule is not specified");
            continue;
        }
        let message = text(rule, "message");
        if !message.is_empty() && message.trim().is_empty() {
            errors.invalid(format!("{place}.message"), message, "message must be non-empty if specified");
        } else if message.trim().contains('\n') {
            errors.invalid(format!("{place}.message"), message, "must not contain line breaks");
        } else if message.is_empty() && source.contains('\n') && text(rule, "messageExpression").is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.required(format!("{place}.message"), detail);
        }
        if let Some(reason) = rule.get("reason").and_then(Value::as_str)
            && !REASONS.contains(&reason)
        {
            errors.push(FieldError::not_supported(format!("{place}.reason"), reason, REASONS));
        }
        let field_path = text(rule, "fieldPath");
        if !field_path.is_empty() && !reaches(schema, field_path) {
            errors.invalid(format!("{place}.fieldPath"), field_path, "must be a valid path");
        }
        if let Err(problem) = lower::check(text(rule, "rule")) {
            let detail = format!("compilation failed: {problem}");
            errors.invalid_as(format!("{place}.rule"), &dump(rule), &detail);
        }
    }
}

/// Whether a field path ends at a field of the schema.
fn reaches(schema: &Value, path: &str) -> bool {
    let Some(parsed) = crate::json_path::JsonPath::parse(path) else { return false };
    let Some(names) = parsed.names() else { return false };
    let step = |schema: &Value, name: &&str| {
        let property = schema.get("properties").and_then(|properties| properties.get(name));
        property
            .or_else(|| schema.get("additionalProperties").filter(|additional| additional.is_object()))
            .cloned()
    };
    names.iter().try_fold(schema.clone(), |schema, name| step(&schema, name)).is_some()
}

/// A rule as upstream shows it.
fn dump(rule: &Value) -> String {
    let show = |key: &str| json!(text(rule, key));
    let optional = |key: &str| rule.get(key).cloned().unwrap_or_default();
    format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        show("rule"),
        show("message"),
        show("messageExpression"),
        optional("reason"),
        show("fieldPath"),
        optional("optionalOldSelf"),
    )
}
