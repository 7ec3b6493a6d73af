//! Compares JSON with the table of a type and reports every mismatch at once, by its place.

use aro_base::Timestamp;
use serde_json::Value;

use crate::wire::{Object, Shape};
use crate::{Code, Problem};

/// More problems than this are not reported.
pub const MAX_PROBLEMS: usize = 50;

/// How deep a declared type may nest; the tables are not recursive, so nothing real comes near.
const MAX_LEVELS: usize = 24;

/// Finds everything in `value` that does not fit. Unknown members are ignored; `null` is the same as absent.
pub fn problems(shape: &Shape, value: &Value) -> Vec<Problem> {
    let mut found = Vec::new();
    check(shape, value, "", MAX_LEVELS, &mut found);
    found
}

fn check(shape: &Shape, value: &Value, at: &str, levels: usize, found: &mut Vec<Problem>) {
    let Some(levels) = levels.checked_sub(1) else { return };
    if found.len() >= MAX_PROBLEMS || (value.is_null() && !at.is_empty()) {
        return;
    }
    match (shape, value) {
        (Shape::Object(object), Value::Object(members)) => {
            for member in object.members {
                if let Some(inner) = members.get(member.name()) {
                    check(member.shape, inner, &join(at, member.name()), levels, found);
                }
            }
        }
        (Shape::List(inner), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                check_element(inner, item, &format!("{at}[{index}]"), levels, found);
            }
        }
        (Shape::Map(inner), Value::Object(members)) => {
            for (name, item) in members {
                check_element(inner, item, &join(at, name), levels, found);
            }
        }
        (Shape::Word(words), Value::String(text)) if !words.contains(&text.as_str()) => {
            let allowed: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            let reason = format!("'{}' is not supported, use one of {}", shortened(text), allowed.join(", "));
            found.push(Problem::new(Code::UnsupportedValue, at, reason));
        }
        (Shape::Date, Value::String(text)) if text.parse::<Timestamp>().is_err() => {
            let reason = format!("'{}' is not a time as in RFC 3339", shortened(text));
            found.push(Problem::new(Code::InvalidValue, at, reason));
        }
        (Shape::Integer, Value::Number(number)) if number.as_i64().is_none() => {
            found.push(Problem::new(Code::WrongType, at, format!("{number} is not an integer")));
        }
        (Shape::Bool, Value::Bool(_))
        | (Shape::Integer | Shape::Number, Value::Number(_))
        | (Shape::Text | Shape::Word(_) | Shape::Date, Value::String(_))
        | (Shape::Any, _) => {}
        _ => {
            let reason = format!("{} is expected, not {}", expected(shape), sort(value));
            found.push(Problem::new(Code::WrongType, at, reason));
        }
    }
}

/// An element has no way to be absent.
fn check_element(shape: &Shape, value: &Value, at: &str, levels: usize, found: &mut Vec<Problem>) {
    if value.is_null() && !matches!(shape, Shape::Any) {
        found.push(Problem::new(Code::WrongType, at, format!("{} is expected, not null", expected(shape))));
    } else {
        check(shape, value, at, levels, found);
    }
}

/// The path of a member.
pub fn join(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

/// A value as an error message shows it.
pub fn shortened(text: &str) -> String {
    const MAX: usize = 100;
    let mut short: String = text.chars().take(MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn expected(shape: &Shape) -> &'static str {
    match shape {
        Shape::Bool => "a boolean",
        Shape::Integer => "an integer",
        Shape::Number => "a number",
        Shape::Text | Shape::Word(_) => "a string",
        Shape::Date => "a time as in RFC 3339",
        Shape::Object(_) | Shape::Map(_) => "an object",
        Shape::List(_) => "a list",
        Shape::Any => "a value",
    }
}

fn sort(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A copy without nulls: serde then sees what the client meant as absent.
pub fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, inner)| !inner.is_null())
            .map(|(name, inner)| (name.clone(), without_nulls(inner)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// The declared types that a shape reaches, each once, the shape's own first.
pub fn reachable(shape: &'static Shape, found: &mut Vec<&'static Object>) {
    match shape {
        Shape::Object(object) => {
            if !object.name.is_empty() {
                if found.iter().any(|known| known.name == object.name) {
                    return;
                }
                found.push(object);
            }
            for member in object.members {
                reachable(member.shape, found);
            }
        }
        Shape::List(inner) | Shape::Map(inner) => reachable(inner, found),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Cluster;
    use crate::wire::Described as _;

    #[test]
    fn every_mismatch_is_reported_with_its_place() {
        let body = json!({
            "name": 5,
            "fips": "yes",
            "network": {"host_prefix": 23.5, "pod_cidr": null},
            "api": {"listening": "sideways"},
            "creation_timestamp": "",
            "properties": {"a": 1, "b": null},
            "registry_config": {"image_digest_mirrors": [{"mirrors": ["x", 2]}]},
            "azure": [],
            "unknown": {"anything": 1},
        });
        let found = problems(Cluster::SHAPE, &body);
        let mut fields: Vec<(&str, Code)> = found.iter().map(|one| (one.field.as_str(), one.code)).collect();
        fields.sort_unstable();
        assert_eq!(
            fields,
            [
                ("api.listening", Code::UnsupportedValue),
                ("azure", Code::WrongType),
                ("creation_timestamp", Code::InvalidValue),
                ("fips", Code::WrongType),
                ("name", Code::WrongType),
                ("network.host_prefix", Code::WrongType),
                ("properties.a", Code::WrongType),
                ("properties.b", Code::WrongType),
                ("registry_config.image_digest_mirrors[0].mirrors[1]", Code::WrongType),
            ]
        );
        assert_eq!(problems(Cluster::SHAPE, &json!(null)).len(), 1);
        let many: Vec<i64> = (0..1000).collect();
        assert_eq!(problems(Vec::<String>::SHAPE, &json!(many)).len(), MAX_PROBLEMS);
    }

    #[test]
    fn names_of_types_are_unique() {
        let mut found = Vec::new();
        reachable(Cluster::SHAPE, &mut found);
        assert!(found.len() > 40 && found[0].name == "Cluster");
    }
}
