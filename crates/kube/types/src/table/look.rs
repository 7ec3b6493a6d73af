//! Looking into an object: absent members read as nothing.

use aro_base::Timestamp;
use serde_json::Value;

use super::age::since;

/// An object (or a part of it) at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    value: &'a Value,
    pub now: Timestamp,
}

impl<'a> Look<'a> {
    pub fn new(value: &'a Value, now: Timestamp) -> Self {
        Self { value, now }
    }

    /// A member below, by a path of names with slashes.
    pub fn get(self, path: &str) -> Option<&'a Value> {
        path.split('/').try_fold(self.value, |at, name| at.get(name)).filter(|value| !value.is_null())
    }

    pub fn has(self, path: &str) -> bool {
        self.get(path).is_some()
    }

    pub fn text(self, path: &str) -> &'a str {
        self.get(path).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text, or what stands for no text.
    pub fn text_or(self, path: &str, otherwise: &'a str) -> &'a str {
        Some(self.text(path)).filter(|text| !text.is_empty()).unwrap_or(otherwise)
    }

    pub fn number(self, path: &str) -> i64 {
        self.get(path).and_then(Value::as_i64).unwrap_or_default()
    }

    pub fn flag(self, path: &str) -> bool {
        self.get(path).and_then(Value::as_bool).unwrap_or_default()
    }

    pub fn list(self, path: &str) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        let items = self.get(path).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        items.iter().map(move |value| Self { value, now: self.now })
    }

    /// The texts of a list, separated.
    pub fn joined(self, path: &str, separator: &str) -> String {
        self.list(path).filter_map(|item| item.value.as_str()).collect::<Vec<_>>().join(separator)
    }

    pub fn count(self, path: &str) -> usize {
        match self.get(path) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(members)) => members.len(),
            _ => 0,
        }
    }

    pub fn name(self) -> &'a str {
        self.text("metadata/name")
    }

    pub fn age(self) -> String {
        self.since("metadata/creationTimestamp")
    }

    pub fn since(self, path: &str) -> String {
        since(self.text(path), self.now)
    }

    /// Going away, but not gone.
    pub fn is_deleting(self) -> bool {
        self.has("metadata/deletionTimestamp")
    }

    /// A number or a text, as text.
    pub fn shown(self, path: &str, otherwise: &str) -> String {
        match self.get(path) {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => otherwise.to_owned(),
        }
    }

    /// The status of a condition.
    pub fn condition(self, kind: &str) -> Option<Self> {
        self.list("status/conditions").find(|condition| condition.text("type") == kind)
    }

    /// Labels as `a=b,c=d`.
    pub fn labels(self, path: &str) -> String {
        let members = self.get(path).and_then(Value::as_object);
        let pairs = members
            .into_iter()
            .flatten()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
        let text = pairs.collect::<Vec<_>>().join(",");
        if text.is_empty() { "<none>".to_owned() } else { text }
    }

    /// A label selector as clients write it; empty when it selects everything or is absent.
    pub fn selector(self, path: &str) -> String {
        let Some(selector) = self.get(path) else { return String::new() };
        let selector = Self { value: selector, now: self.now };
        let mut parts: Vec<(String, String)> = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
        }
        for expression in selector.list("matchExpressions") {
            let key = expression.text("key");
            let mut values: Vec<&str> =
                expression.list("values").filter_map(|item| item.value.as_str()).collect();
            values.sort_unstable();
            let values = values.join(",");
            let text = match expression.text("operator") {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "Exists" => key.to_owned(),
                "DoesNotExist" => format!("!{key}"),
                _ => continue,
            };
            parts.push((key.to_owned(), text));
        }
        parts.sort_by(|a, b| a.0.cmp(&b.0));
        parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
    }

    pub fn selector_or_none(self, path: &str) -> String {
        Some(self.selector(path)).filter(|text| !text.is_empty()).unwrap_or_else(|| "<none>".to_owned())
    }

    /// Names and images of the containers of a Pod spec.
    pub fn containers(self, path: &str) -> (String, String) {
        let all = |key: &str| self.list(path).map(|of| of.text(key)).collect::<Vec<_>>().join(",");
        (all("name"), all("image"))
    }
}

/// The first few of a list, and how many more there are.
pub fn few(items: &[String], most: usize, otherwise: &str) -> String {
    let shown = items.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(",");
    match items.len() {
        0 => otherwise.to_owned(),
        count if count > most => format!("{shown} + {} more...", count - most),
        _ => shown,
    }
}
