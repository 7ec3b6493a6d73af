//! Typed decoding of request bodies, with the strictness and the error texts of Go's decoder.
//!
//! [`decode`] is what a request for a built-in type wants: one pass, problems in the order of the document. [`parse`]
//! and [`coerce`] are its halves, for documents that come as YAML, out of a patch or of a type that is not known yet.
//! Custom types only [`parse`]: their schemas prune and check in another way.
//!
//! Invariants: names are case-sensitive; of repeated members the last counts; null is absent; decoding what was decoded
//! changes nothing.

mod named;
mod names;
pub mod quantity;
mod scalar;
mod syntax;
mod typed;
mod yaml;

use std::cell::RefCell;
use std::fmt;

use serde::de::DeserializeSeed as _;
use serde_json::Value;

pub use self::scalar::is_plain_utc;
use self::typed::{Node, Notes, Path};
use crate::schema::Typed;

#[cfg(test)]
mod tests;

/// What a strict request is refused for and others are warned of. Shown as `unknown field "spec.foo"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The type has no such member; it was dropped.
    Unknown(String),
    /// A member was given more than once; the last one counts.
    Duplicate(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(path) => write!(f, "unknown field \"{path}\""),
            Self::Duplicate(path) => write!(f, "duplicate field \"{path}\""),
        }
    }
}

/// The type a body says it is of. Both are empty when not given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TypeMeta {
    pub api_version: String,
    pub kind: String,
}

/// Reads only `apiVersion` and `kind`, and that the rest is JSON. The error is what upstream says after
/// `couldn't get version/kind; `.
pub fn type_meta(bytes: &[u8]) -> Result<TypeMeta, String> {
    #[derive(serde::Deserialize)]
    struct Head {
        #[serde(default, rename = "apiVersion")]
        api_version: Value,
        #[serde(default)]
        kind: Value,
    }
    let malformed = |why: &str| Err(format!("json parse error: {why} ({})", summary(bytes)));
    let target = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    // A struct would be read out of an array too.
    let is_array = bytes.trim_ascii_start().starts_with(b"[");
    match serde_json::from_slice::<Option<Head>>(bytes) {
        Ok(head) if !is_array => {
            let Head { api_version, kind } =
                head.unwrap_or(Head { api_version: Value::Null, kind: Value::Null });
            let text = |name: &str, value: Value| match value {
                Value::Null => Ok(String::new()),
                Value::String(text) => Ok(text),
                other => Err(format!(
                    "json: cannot unmarshal {} into Go struct field .{name} of type string",
                    json_type(&other)
                )),
            };
            match (text("apiVersion", api_version), text("kind", kind)) {
                (Ok(api_version), Ok(kind)) => Ok(TypeMeta { api_version, kind }),
                (Err(why), _) | (_, Err(why)) => malformed(&why),
            }
        }
        _ => match serde_json::from_slice::<Value>(bytes) {
            // Sound JSON of another kind, or members given twice.
            Ok(Value::Object(object)) => {
                let text =
                    |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                Ok(TypeMeta { api_version: text("apiVersion"), kind: text("kind") })
            }
            Ok(value) => malformed(&format!(
                "json: cannot unmarshal {} into Go value of type {target}",
                json_type(&value)
            )),
            Err(error) => malformed(&syntax::message(&error, bytes)),
        },
    }
}

/// The start of a body, as errors show it: as text when it looks like JSON, else in hexadecimal.
pub fn summary(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    const MAX: usize = 30;
    let start = bytes.get(..MAX).unwrap_or(bytes);
    let mut text = match bytes.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start.iter().fold(String::new(), |mut out, byte| {
            // Writing to a String cannot fail.
            let _ = write!(out, "{byte:02x}");
            out
        }),
    };
    if bytes.len() > MAX {
        text.push_str(" ...");
    }
    text
}

/// What JSON calls a value, as Go's errors name it.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Reads JSON of a type: drops unknown members and nulls, checks the rest, and puts times and amounts into their one
/// form. Beside the value: the problems, in the order of the document. The error is Go's text
/// (`json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`).
pub fn decode(bytes: &[u8], typed: Typed<'_>) -> Result<(Value, Vec<Problem>), String> {
    let notes = RefCell::new(Notes::default());
    let value = read(bytes, Node { typed: Some(typed), path: Path::Root, notes: &notes, duplicates: false })?;
    let notes = notes.into_inner();
    match notes.error {
        Some(error) => Err(error),
        None => Ok((value, notes.problems)),
    }
}

fn read(bytes: &[u8], node: Node<'_, '_, '_>) -> Result<Value, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = node.deserialize(&mut deserializer);
    let value = value.and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| syntax::message(&error, bytes))
}

/// Reads JSON. Beside the value: the paths of members given more than once.
pub fn parse(bytes: &[u8]) -> Result<(Value, Vec<String>), String> {
    let notes = RefCell::new(Notes::default());
    let value = read(bytes, Node { typed: None, path: Path::Root, notes: &notes, duplicates: true })?;
    Ok((value, paths(notes.into_inner().problems)))
}

/// Reads YAML (or JSON, which is YAML too), as [`parse`] reads JSON. The error starts with `yaml: line`; upstream puts
/// `error converting YAML to JSON: ` before it in patches.
pub fn parse_yaml(bytes: &[u8]) -> Result<(Value, Vec<String>), String> {
    if bytes.trim_ascii_start().starts_with(b"{")
        && let Ok(parsed) = parse(bytes)
    {
        return Ok(parsed);
    }
    let (value, duplicates) = yaml::parse(bytes)?;
    // Once more as JSON, for the form of numbers.
    let notes = RefCell::new(Notes::default());
    let node = Node { typed: None, path: Path::Root, notes: &notes, duplicates: false };
    Ok((node.deserialize(value).map_err(|error| error.to_string())?, duplicates))
}

fn paths(problems: Vec<Problem>) -> Vec<String> {
    let path = |problem| match problem {
        Problem::Unknown(path) | Problem::Duplicate(path) => path,
    };
    problems.into_iter().map(path).collect()
}

/// Makes a value be of a type, as [`decode`] does. Answers the paths of unknown members (`spec.containers[0].bar`),
/// in the order of names.
pub fn coerce(value: &mut Value, typed: Typed<'_>) -> Result<Vec<String>, String> {
    let notes = RefCell::new(Notes::default());
    let node = Node { typed: Some(typed), path: Path::Root, notes: &notes, duplicates: false };
    *value = node.deserialize(value.take()).map_err(|error| error.to_string())?;
    let notes = notes.into_inner();
    match notes.error {
        Some(error) => Err(error),
        None => Ok(paths(notes.problems)),
    }
}

/// Whether a value can be read as one of a type: the error of [`coerce`], and nothing is changed.
pub fn check(value: &Value, typed: Typed<'_>) -> Result<(), String> {
    let notes = RefCell::new(Notes::default());
    let node = Node { typed: Some(typed), path: Path::Root, notes: &notes, duplicates: false };
    node.deserialize(value).map_err(|error| error.to_string())?;
    notes.into_inner().error.map_or(Ok(()), Err)
}

/// What a strict request is refused with: `strict decoding error: unknown field "spec.foo", duplicate field "x"`.
/// For the order of the document, give the problems of [`decode`] to [`strict_problems`].
pub fn strict_error(unknown: &[String], duplicates: &[String]) -> String {
    format!("strict decoding error: {}", warnings(unknown, duplicates).join(", "))
}

/// What a strict request with these problems is refused with.
pub fn strict_problems(problems: &[Problem]) -> String {
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    format!("strict decoding error: {}", texts.join(", "))
}

/// The same, one by one, for `Warning` headers.
pub fn warnings(unknown: &[String], duplicates: &[String]) -> Vec<String> {
    let unknown = unknown.iter().cloned().map(Problem::Unknown);
    let duplicates = duplicates.iter().cloned().map(Problem::Duplicate);
    unknown.chain(duplicates).map(|problem| problem.to_string()).collect()
}
