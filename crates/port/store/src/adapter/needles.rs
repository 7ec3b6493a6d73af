//! Texts that every body meeting a condition must hold: looking for them is much cheaper than reading the body.

use serde_json::Value;

use crate::{Condition, Expr, Literal, Relation};

/// Shorter ones are everywhere.
const SHORTEST: usize = 3;

/// More of them would not save more.
const MOST: usize = 4;

/// What a body holds that may spell any character otherwise; then a needle that is not found means nothing.
pub const ESCAPE: &str = "\\u";

/// The texts that a body must hold to meet a condition, unless it holds an [`ESCAPE`].
pub fn needles(condition: &Condition) -> Vec<&str> {
    let mut found = Vec::new();
    collect(condition.expr(), &mut found);
    // The longest are the rarest.
    found.sort_by_key(|text| std::cmp::Reverse(text.len()));
    found.truncate(MOST);
    found
}

/// Whether a body may meet a condition with these needles.
pub fn may_hold(needles: &[&str], body: &str) -> bool {
    needles.iter().all(|needle| body.contains(needle)) || body.contains(ESCAPE)
}

fn collect<'a>(expr: &'a Expr, found: &mut Vec<&'a str>) {
    match expr {
        Expr::And(parts) => parts.iter().for_each(|part| collect(part, found)),
        // Without a letter it might be a number, which can be written in many ways.
        Expr::Compare(_, Relation::Eq, Literal::Text(text))
            if text.bytes().any(|c| c.is_ascii_alphabetic()) =>
        {
            add(text, found);
        }
        Expr::Contains(_, value) => members(value, found),
        _ => {}
    }
}

fn members<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => add(text, found),
        Value::Array(items) => items.iter().for_each(|item| members(item, found)),
        Value::Object(inner) => {
            for (name, value) in inner {
                add(name, found);
                members(value, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Only characters that JSON writes as themselves, or by a `\u` escape.
fn add<'a>(text: &'a str, found: &mut Vec<&'a str>) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" ._-:".contains(&byte);
    if text.len() >= SHORTEST && text.bytes().all(plain) {
        found.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Path;
    use serde_json::json;

    fn path() -> Path {
        Path::member("a")
    }

    #[test]
    fn only_texts_that_must_be_there_as_they_are_written_are_needles() {
        let condition = Expr::And(vec![
            Expr::is(path(), "plain-text"),
            Expr::is(path(), "it's"),
            Expr::is(path(), "12345"),
            Expr::is(path(), "ab"),
            Expr::is(path(), "negated").negated(),
            Expr::Or(vec![Expr::is(path(), "either"), Expr::is(path(), "other")]),
            Expr::Contains(path(), json!([{"name": {"k": "value", "n": 12345}, "a/b": "c\"d"}])),
        ]);
        assert_eq!(needles(&condition.check().unwrap()), ["plain-text", "value", "name"]);
    }

    #[test]
    fn an_escape_may_spell_anything() {
        assert!(may_hold(&["abc"], r#"{"a":"abc"}"#) && !may_hold(&["abc"], r#"{"a":"abd"}"#));
        assert!(may_hold(&["abc"], r#"{"a":"\u0061bc"}"#) && may_hold(&[], "{}"));
    }
}
