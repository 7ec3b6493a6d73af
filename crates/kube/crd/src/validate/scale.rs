//! Numbers that the scale subresource reads are sound wherever they stand.

use aro_kube_apimachinery::FieldError;
use serde_json::Value;

use crate::cel::functions::strings::shown_double;
use crate::custom_type::ScalePaths;

pub(crate) fn validate(paths: &ScalePaths, object: &Value, errors: &mut Vec<FieldError>) {
    for path in [&paths.spec, &paths.status] {
        match replicas(path, object) {
            Ok(Some(count)) if count < 0 => {
                errors.push(FieldError::invalid(path, count, "should be a non-negative integer"));
            }
            Ok(Some(count)) if count > i64::from(i32::MAX) => {
                let detail = format!("should be less than or equal to {}", i32::MAX);
                errors.push(FieldError::invalid(path, count, detail));
            }
            Ok(_) => {}
            Err(problem) => errors.push(FieldError::invalid(path, 0, problem)),
        }
    }
}

/// The number at a path of names. The error is the accessor's, in Go's words.
fn replicas(path: &str, object: &Value) -> Result<Option<i64>, String> {
    let wrong = |upto: &str, value: &Value, wanted: &str| {
        let (shown, kind) = (go_value(value), go_type(value));
        format!("{upto} accessor error: {shown} is of the type {kind}, expected {wanted}")
    };
    let mut at = object;
    let mut end = 0;
    for name in path.split('.').skip(1) {
        end += name.len() + 1;
        let upto = path.get(..end).unwrap_or(path);
        let Value::Object(members) = at else { return Err(wrong(upto, at, "map[string]interface{}")) };
        match members.get(name) {
            Some(value) => at = value,
            None => return Ok(None),
        }
    }
    at.as_i64().map(Some).ok_or_else(|| wrong(path, at, "int64"))
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as `%v` writes it.
fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => shown_double(number.as_f64().unwrap_or_default()),
        Value::Array(items) => format!("[{}]", items.iter().map(go_value).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let members: Vec<_> =
                members.iter().map(|(name, value)| format!("{name}:{}", go_value(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        other => other.to_string(),
    }
}
