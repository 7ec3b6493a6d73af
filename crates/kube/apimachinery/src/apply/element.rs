//! One step of a path, and its wire form (`f:name`, `k:{"name":"x"}`, `v:"x"`, `i:3`).

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Value};

use crate::status::go_quote;

/// One step of a path. The order is upstream's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// A member of a struct or map.
    Field(String),
    /// The item of a list that has these members, sorted by name.
    Key(Vec<(String, Scalar)>),
    /// The item of a set that has this value.
    Value(Scalar),
    /// The item at this place.
    Index(i64),
}

/// A value with a total order: numbers, texts, flags, then the rest.
#[derive(Debug, Clone)]
pub struct Scalar(pub Value);

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

fn compare(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => left.as_f64().unwrap_or_default().total_cmp(&right.as_f64().unwrap_or_default()),
        },
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => {
            left.to_string().cmp(&right.to_string())
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

/// Whether two values are the same: numbers by their value, however written.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_), Value::Number(_)) => compare(left, right) == Ordering::Equal,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|((name, left), (other, right))| name == other && same(left, right))
        }
        _ => left == right,
    }
}

impl Element {
    /// Reads the wire form. `None`: a kind of step that we do not know, to be ignored.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, String> {
        let Some((kind, rest)) = text.split_at_checked(2) else {
            return Err("key must be 2 characters long:".to_owned());
        };
        if !kind.ends_with(':') {
            return Err(format!("missing colon: {text}"));
        }
        let json = |text: &str| serde_json::from_str::<Value>(text).map_err(|error| error.to_string());
        Ok(Some(match kind {
            "f:" => Self::Field(rest.to_owned()),
            "v:" => Self::Value(Scalar(json(rest)?)),
            "i:" => Self::Index(
                rest.parse().map_err(|_| format!("strconv.Atoi: parsing {rest:?}: invalid syntax"))?,
            ),
            "k:" => match json(rest)? {
                Value::Object(members) => {
                    Self::Key(members.into_iter().map(|(name, value)| (name, Scalar(value))).collect())
                }
                _ => return Err(format!("key is no object: {text}")),
            },
            _ => return Ok(None),
        }))
    }

    /// The wire form.
    pub(super) fn serialize(&self) -> String {
        match self {
            // Nearly all are of this kind, and a format costs more than the text.
            Self::Field(name) => ["f:", name].concat(),
            Self::Value(value) => format!("v:{}", json(&value.0)),
            Self::Index(index) => format!("i:{index}"),
            Self::Key(fields) => {
                let members: Map<String, Value> =
                    fields.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect();
                format!("k:{}", json(&Value::Object(members)))
            }
        }
    }
}

/// JSON as Go writes it: safe inside of HTML.
pub(super) fn json(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    // These stand in texts only, where an escape means the same.
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// As conflicts name it: `.spec`, `[name="x"]`, `[="x"]`, `[3]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_str("]")
            }
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::String(text) => f.write_str(&go_quote(text)),
            other => write!(f, "{other}"),
        }
    }
}
