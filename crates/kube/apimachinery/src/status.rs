//! The errors clients see: `Status` objects and the field errors inside them.
//!
//! Texts follow upstream's, because people and programs match on them.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::names::{GroupKind, GroupResource};

/// A failed answer (or the success of a deletion).
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    pub code: u16,
    /// Upstream's reason: `NotFound`, `Invalid`, … Empty when upstream gives none.
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Box<Details>>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Details {
    pub name: String,
    pub group: String,
    /// A kind or a resource, whichever upstream writes at that place.
    pub kind: String,
    pub uid: String,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

impl std::error::Error for Status {}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Status {
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None }
    }

    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    fn of_resource(
        code: u16,
        reason: &'static str,
        message: String,
        resource: &GroupResource,
        name: &str,
    ) -> Self {
        Self::new(code, reason, message).with_details(Details {
            name: name.to_owned(),
            group: resource.group.clone(),
            kind: resource.resource.clone(),
            ..Details::default()
        })
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(401, "Unauthorized", message)
    }

    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::of_resource(404, "NotFound", format!("{resource} {name:?} not found"), resource, name)
    }

    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        Self::of_resource(409, "AlreadyExists", format!("{resource} {name:?} already exists"), resource, name)
    }

    pub fn conflict(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::of_resource(409, "Conflict", message, resource, name)
    }

    pub fn forbidden(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        let message = if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} {name:?} is forbidden: {why}")
        };
        Self::of_resource(403, "Forbidden", message, resource, name)
    }

    /// Field errors of one object, as `Invalid` (422).
    pub fn invalid(kind: &GroupKind, name: &str, errors: &[FieldError]) -> Self {
        let message = format!("{kind} {name:?} is invalid: {}", aggregate(errors));
        Self::new(422, "Invalid", message).with_details(Details {
            name: name.to_owned(),
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            causes: errors.iter().map(FieldError::cause).collect(),
            ..Details::default()
        })
    }

    pub fn method_not_supported(resource: &GroupResource, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind {:?}", resource.to_string());
        Self::of_resource(405, "MethodNotAllowed", message, resource, "")
    }

    /// 410: the resource version asked for is older than what is kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    pub fn internal(message: impl fmt::Display) -> Self {
        let message = format!("Internal error occurred: {message}");
        Self::new(500, "InternalError", message)
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// The object that goes over the wire.
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_value();
        }
        status
    }
}

impl Details {
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, value) in
            [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !value.is_empty() {
                map.insert(key.to_owned(), json!(value));
            }
        }
        if !self.causes.is_empty() {
            map.insert("causes".to_owned(), self.causes.iter().map(Cause::to_value).collect());
        }
        if self.retry_after_seconds > 0 {
            map.insert("retryAfterSeconds".to_owned(), json!(self.retry_after_seconds));
        }
        Value::Object(map)
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (key, value) in [("reason", &self.reason), ("message", &self.message), ("field", &self.field)] {
            if !value.is_empty() {
                map.insert(key.to_owned(), json!(value));
            }
        }
        Value::Object(map)
    }
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    pub kind: FieldErrorKind,
    /// `spec.containers[0].name`
    pub field: String,
    /// The offending value, as it is shown.
    pub value: Value,
    pub detail: String,
    /// The value is left out of the text: rules on objects and lists do not repeat them.
    pub hidden: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldErrorKind {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooMany,
    TooFew,
    TypeInvalid,
    Internal,
}

impl FieldErrorKind {
    /// The words in a message.
    pub fn words(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
        }
    }

    /// The reason in a cause.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }
}

impl FieldError {
    fn new(kind: FieldErrorKind, field: impl Into<String>, value: Value, detail: impl Into<String>) -> Self {
        Self { kind, field: field.into(), value, detail: detail.into(), hidden: false }
    }

    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, field, Value::Null, detail)
    }

    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, field, value.into(), detail)
    }

    pub fn type_invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(FieldErrorKind::TypeInvalid, field, value.into(), detail)
    }

    pub fn not_found(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::NotFound, field, value.into(), "")
    }

    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::Duplicate, field, value.into(), "")
    }

    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, Value::Null, detail)
    }

    pub fn not_supported<'a>(
        field: impl Into<String>,
        value: impl Into<Value>,
        supported: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let names: Vec<String> = supported.into_iter().map(|name| format!("{name:?}")).collect();
        let detail =
            if names.is_empty() { String::new() } else { format!("supported values: {}", names.join(", ")) };
        Self::new(FieldErrorKind::NotSupported, field, value.into(), detail)
    }

    pub fn too_long(field: impl Into<String>, max: usize) -> Self {
        let plural = if max == 1 { "" } else { "s" };
        Self::new(
            FieldErrorKind::TooLong,
            field,
            Value::Null,
            format!("may not be more than {max} byte{plural}"),
        )
    }

    pub fn too_many(field: impl Into<String>, actual: usize, max: usize) -> Self {
        let plural = if max == 1 { "" } else { "s" };
        Self::new(
            FieldErrorKind::TooMany,
            field,
            actual.into(),
            format!("must have at most {max} item{plural}"),
        )
    }

    fn cause(&self) -> Cause {
        Cause { reason: self.kind.reason().to_owned(), message: self.body(), field: self.field.clone() }
    }

    /// The error without the field's name.
    pub fn body(&self) -> String {
        use FieldErrorKind as K;
        let words = self.kind.words();
        let head = match self.kind {
            K::Required | K::Forbidden | K::TooLong | K::Internal => words.to_owned(),
            _ if self.hidden => words.to_owned(),
            _ => format!("{words}: {}", show(&self.value)),
        };
        if self.detail.is_empty() { head } else { format!("{head}: {}", self.detail) }
    }
}

/// A value as upstream shows it: strings quoted, everything else as JSON.
fn show(value: &Value) -> String {
    match value {
        Value::String(text) => go_quote(text),
        Value::Null => "null".to_owned(),
        other => other.to_string(),
    }
}

/// Quotes as Go's `%q` does.
pub fn go_quote(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        // Writing to a String cannot fail.
        let _ = match c {
            '"' => out.write_str("\\\""),
            '\\' => out.write_str("\\\\"),
            '\n' => out.write_str("\\n"),
            '\t' => out.write_str("\\t"),
            '\r' => out.write_str("\\r"),
            '\u{7}' => out.write_str("\\a"),
            '\u{8}' => out.write_str("\\b"),
            '\u{b}' => out.write_str("\\v"),
            '\u{c}' => out.write_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => write!(out, "\\x{:02x}", c as u32),
            c if c.is_control() => write!(out, "\\u{:04x}", c as u32),
            c => out.write_char(c),
        };
    }
    out.push('"');
    out
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// One line for several errors: alone as it is, several in brackets, repeated ones once.
pub fn aggregate(errors: &[FieldError]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for error in errors {
        let line = error.to_string();
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    match lines.as_slice() {
        [one] => one.clone(),
        _ => format!("[{}]", lines.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_errors_read_like_upstreams() {
        let error = FieldError::invalid("metadata.name", "A b", "must be lower case");
        assert_eq!(error.to_string(), r#"metadata.name: Invalid value: "A b": must be lower case"#);
        assert_eq!(FieldError::required("spec.x", "").to_string(), "spec.x: Required value");
        let error = FieldError::not_supported("type", "x", ["A", "B"]);
        assert_eq!(error.to_string(), r#"type: Unsupported value: "x": supported values: "A", "B""#);
    }

    #[test]
    fn several_errors_are_bracketed_and_said_once() {
        let one = FieldError::required("a", "");
        let two = FieldError::duplicate("b[1]", "x");
        assert_eq!(aggregate(std::slice::from_ref(&one)), "a: Required value");
        assert_eq!(aggregate(&[one.clone(), two, one]), r#"[a: Required value, b[1]: Duplicate value: "x"]"#);
    }

    #[test]
    fn a_status_carries_its_causes() {
        let kind = GroupKind { group: "apps".into(), kind: "Deployment".into() };
        let status = Status::invalid(&kind, "web", &[FieldError::required("spec.selector", "")]).to_value();
        assert_eq!(status["message"], r#"Deployment.apps "web" is invalid: spec.selector: Required value"#);
        assert_eq!(status["details"]["causes"][0]["reason"], "FieldValueRequired");
        assert_eq!(status["code"], 422);
    }
}
