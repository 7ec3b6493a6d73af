//! Whether a configuration fits its type well enough to be merged.

use serde_json::Value;

use super::element::Element;
use super::fieldset::show_path;
use super::shape::{Relation, Shape, Type, item_element};
use crate::schema::{Kind, Typed};

/// Checks a configuration. The error is upstream's text, one line per problem.
pub(super) fn validate(config: &Value, typed: Typed<'_>) -> Result<(), String> {
    let mut problems = Vec::new();
    check(config, Type::Known(typed), Place::Root, &mut problems);
    match problems.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        several => Err(format!("errors:\n  {}", several.join("\n  "))),
    }
}

/// Where a check stands. On the stack: most configurations are valid, and the path is not needed.
#[derive(Clone, Copy)]
enum Place<'p> {
    Root,
    Member(&'p Place<'p>, &'p str),
    Item(&'p Place<'p>, &'p Element),
}

impl Place<'_> {
    fn show(self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Member(parent, name) => parent.show() + &show_path(&[Element::Field(name.to_owned())]),
            Self::Item(parent, element) => parent.show() + &show_path(std::slice::from_ref(element)),
        }
    }
}

fn check(value: &Value, kind: Type<'_>, place: Place<'_>, problems: &mut Vec<String>) {
    let mut report = |problem: String| {
        let path = place.show();
        problems.push(if path.is_empty() { problem } else { format!("{path}: {problem}") });
    };
    match (kind.shape(value), value) {
        (_, Value::Null) => {}
        (Shape::Scalar, value) => {
            if let Some(problem) = scalar_problem(value, kind) {
                report(problem);
            }
        }
        (Shape::Map { .. }, Value::Object(members)) => {
            for (name, member) in members {
                let below = Place::Member(&place, name);
                if !kind.knows(name) {
                    problems.push(format!("{}: field not declared in schema", below.show()));
                    break;
                }
                check(member, kind.member(name).0, below, problems);
            }
        }
        (Shape::Map { .. }, other) => report(format!("expected map, got {}", go_value(other))),
        (Shape::List(relation), Value::Array(items)) => {
            let mut seen = std::collections::BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                let element = if relation == Relation::Whole {
                    Element::Index(index as i64)
                } else {
                    match item_element(kind, relation, item) {
                        Ok(element) => element,
                        Err(problem) => {
                            problems.push(format!("{}: element {index}: {problem}", place.show()));
                            return;
                        }
                    }
                };
                if relation != Relation::Whole && !seen.insert(element.clone()) {
                    problems.push(format!("{}: duplicate entries for key {element}", place.show()));
                }
                check(item, kind.items(), Place::Item(&place, &element), problems);
            }
        }
        (Shape::List(_), other) => report(format!("expected list, got {}", go_value(other))),
    }
}

fn scalar_problem(value: &Value, kind: Type<'_>) -> Option<String> {
    let Type::Known(typed) = kind else { return None };
    match typed.kind() {
        Kind::Integer | Kind::Number if !value.is_number() => {
            Some(format!("expected numeric (int or float), got {}", go_type(value)))
        }
        // Texts with a format may be anything but lists and maps.
        Kind::String
            if matches!(typed.schema.format.as_deref(), None | Some("byte")) && !value.is_string() =>
        {
            Some(format!("expected string, got {}", go_syntax(value)))
        }
        Kind::Boolean if !value.is_boolean() => Some(format!("expected boolean, got {}", go_value(value))),
        Kind::String | Kind::IntOrString if value.is_object() || value.is_array() => {
            Some(format!("expected any scalar, got {}", go_value(value)))
        }
        _ => None,
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn go_value(value: &Value) -> String {
    format!("&{{{}}}", crate::patch::show(value))
}

/// As Go's `%#v`.
fn go_syntax(value: &Value) -> String {
    format!("&value.valueUnstructured{{Value:{}}}", go_literal(value))
}

fn go_literal(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => crate::status::go_quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_literal).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                format!("{}:{}", crate::status::go_quote(name), go_literal(value))
            };
            let members: Vec<String> = members.iter().map(member).collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
    }
}
