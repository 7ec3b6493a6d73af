//! Where in an object a check stands, and what it found.
//!
//! A path is a chain on the stack: it becomes text only when there is something to complain about.

use std::fmt;

use aro_kube_apimachinery::FieldError;
use serde_json::Value;

#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Name(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    pub const fn new(name: &'a str) -> Self {
        Self { parent: None, step: Step::Name(name) }
    }

    /// `parent.name`
    pub const fn child(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Name(name) }
    }

    /// `parent[3]`
    pub const fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    /// `parent[key]`
    pub const fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Name(name) if self.parent.is_some() => write!(f, ".{name}"),
            Step::Name(name) => f.write_str(name),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

/// What was found so far.
#[derive(Debug, Default)]
pub struct Found(pub Vec<FieldError>);

pub const IMMUTABLE: &str = "field is immutable";
pub const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

impl Found {
    pub fn required(&mut self, at: &Path<'_>, detail: &str) {
        self.0.push(FieldError::required(at.to_string(), detail));
    }

    pub fn invalid(&mut self, at: &Path<'_>, value: impl Into<Value>, detail: impl Into<String>) {
        self.0.push(FieldError::invalid(at.to_string(), value, detail));
    }

    pub fn forbidden(&mut self, at: &Path<'_>, detail: &str) {
        self.0.push(FieldError::forbidden(at.to_string(), detail));
    }

    pub fn duplicate(&mut self, at: &Path<'_>, value: impl Into<Value>) {
        self.0.push(FieldError::duplicate(at.to_string(), value));
    }

    pub fn not_found(&mut self, at: &Path<'_>, value: impl Into<Value>) {
        self.0.push(FieldError::not_found(at.to_string(), value));
    }

    pub fn not_supported(&mut self, at: &Path<'_>, value: impl Into<Value>, supported: &[&str]) {
        self.0.push(FieldError::not_supported(at.to_string(), value, supported.iter().copied()));
    }

    pub fn too_long(&mut self, at: &str, most: usize) {
        self.0.push(FieldError::too_long(at, most));
    }

    /// All that is wrong with a text.
    pub fn texts(&mut self, at: &Path<'_>, value: &str, wrong: Vec<String>) {
        for detail in wrong {
            self.invalid(at, value, detail);
        }
    }

    pub fn not_negative(&mut self, at: &Path<'_>, value: Option<&Value>) {
        if let Some(number) = value.and_then(Value::as_i64).filter(|number| *number < 0) {
            self.invalid(at, number, NOT_NEGATIVE);
        }
    }

    /// One of a few texts; empty counts as given.
    pub fn one_of(&mut self, at: &Path<'_>, value: &str, supported: &[&str]) {
        if !supported.contains(&value) {
            self.not_supported(at, value, supported);
        }
    }

    /// A member that stays what it was.
    pub fn immutable(&mut self, at: &Path<'_>, new: Option<&Value>, old: Option<&Value>) {
        if new != old {
            self.invalid(at, new.cloned().unwrap_or_default(), IMMUTABLE);
        }
    }

    pub fn port(&mut self, at: &Path<'_>, number: i64) {
        if !(1..=65535).contains(&number) {
            self.invalid(at, number, "must be between 1 and 65535, inclusive");
        }
    }
}

/// Reading members: absent and of another type is the same.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A member that is there and not null.
pub fn member<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|value| !value.is_null())
}

pub fn number(value: &Value, key: &str) -> Option<i64> {
    value.get(key).and_then(Value::as_i64)
}

pub fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// The members of a map.
pub fn entries<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    value.get(key).and_then(Value::as_object).into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}
