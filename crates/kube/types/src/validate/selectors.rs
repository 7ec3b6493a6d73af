//! Label selectors: whether they are sound, and whether they match labels.

use serde_json::Value;

use super::format;
use super::metadata::labels;
use super::path::{Found, Path, entries, list, text};

/// Says what is wrong; `true` when nothing is.
pub fn check(found: &mut Found, selector: &Value, at: &Path<'_>) -> bool {
    let before = found.0.len();
    labels(found, selector, "matchLabels", &at.child("matchLabels"));
    for (index, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let all = at.child("matchExpressions");
        let at = all.index(index);
        let values = list(expression, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                found.required(&at.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "In" | "NotIn" => {}
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                    found.forbidden(&at.child("values"), why);
                }
            }
            other => found.invalid(&at.child("operator"), other, "not a valid selector operator"),
        }
        let key = text(expression, "key");
        found.texts(&at.child("key"), key, format::qualified_name(key));
        for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
            found.texts(&at.child("values").index(index), value, format::label_value(value));
        }
    }
    found.0.len() == before
}

pub fn is_empty(selector: &Value) -> bool {
    entries(selector, "matchLabels").next().is_none() && list(selector, "matchExpressions").is_empty()
}

/// Whether a sound selector matches labels (an object of texts, or nothing).
pub fn matches(selector: &Value, labels: Option<&Value>) -> bool {
    let value_of = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let exact = entries(selector, "matchLabels").all(|(key, value)| value_of(key) == value.as_str());
    exact
        && list(selector, "matchExpressions").iter().all(|expression| {
            let value = value_of(text(expression, "key"));
            let among = |value: &str| list(expression, "values").iter().any(|of| of == value);
            match text(expression, "operator") {
                "In" => value.is_some_and(among),
                "NotIn" => !value.is_some_and(among),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}
