//! The reference meaning of a condition, on the stored text; see [`crate::Condition`].

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::filter::descend;
use super::like::like;
use crate::{Condition, Expr, Literal, Order, Path, Raw, Relation};

/// Whether a body meets a condition.
pub fn holds(condition: &Condition, body: &Raw) -> bool {
    searchable(body.get()) && truth(condition.expr(), body.get()) == Some(true)
}

/// Whether every backend can look into a body. The escapes are rare, so the thorough look is too.
pub fn searchable(body: &str) -> bool {
    let suspicious = ["\\u0000", "\\ud", "\\uD"].iter().any(|escape| body.contains(escape));
    !suspicious || serde_json::from_str::<Value>(body).is_ok_and(|value| !has_nul(&value))
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(members) => members.iter().any(|(name, value)| name.contains('\0') || has_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// `None` is unknown.
fn truth(expr: &Expr, body: &str) -> Option<bool> {
    match expr {
        Expr::And(parts) => all(parts.iter().map(|part| truth(part, body))),
        Expr::Or(parts) => any(parts.iter().map(|part| truth(part, body))),
        Expr::Not(part) => truth(part, body).map(|truth| !truth),
        Expr::Compare(path, relation, literal) => compare(at(body, path), *relation, literal),
        Expr::Like { path, pattern, ignore_case } => {
            let text = text(at(body, path)?)?;
            Some(like(&text, pattern, *ignore_case))
        }
        Expr::In(path, literals) => {
            let member = at(body, path);
            any(literals.iter().map(|literal| compare(member, Relation::Eq, literal)))
        }
        Expr::Between(path, low, high) => {
            let member = at(body, path);
            all([compare(member, Relation::Ge, low), compare(member, Relation::Le, high)].into_iter())
        }
        Expr::IsNull(path) => Some(at(body, path).is_none_or(|member| member == "null")),
        Expr::Contains(path, wanted) => {
            let member: Value = serde_json::from_str(at(body, path)?).ok()?;
            Some(contains_at_root(&member, wanted))
        }
    }
}

/// False if any is false, else unknown if any is unknown.
fn all(parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(true);
    for part in parts {
        match part {
            Some(false) => return Some(false),
            None => result = None,
            Some(true) => {}
        }
    }
    result
}

/// True if any is true, else unknown if any is unknown.
fn any(parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    all(parts.map(|part| part.map(|truth| !truth))).map(|truth| !truth)
}

fn at<'a>(body: &'a str, path: &Path) -> Option<&'a str> {
    descend(body, path.names().iter().map(String::as_str))
}

fn compare(member: Option<&str>, relation: Relation, literal: &Literal) -> Option<bool> {
    let member = member?;
    let order = match literal {
        Literal::Text(wanted) => text(member)?.as_ref().cmp(wanted.as_str()),
        Literal::Number(wanted) => number(member)?.partial_cmp(wanted)?,
        Literal::Bool(wanted) => boolean(member)?.cmp(wanted),
        Literal::Null => return None,
    };
    Some(match relation {
        Relation::Eq => order == Ordering::Equal,
        Relation::Ne => order != Ordering::Equal,
        Relation::Lt => order == Ordering::Less,
        Relation::Le => order != Ordering::Greater,
        Relation::Gt => order == Ordering::Greater,
        Relation::Ge => order != Ordering::Less,
    })
}

fn boolean(json: &str) -> Option<bool> {
    match json {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn number(json: &str) -> Option<f64> {
    json.starts_with(|first: char| first == '-' || first.is_ascii_digit()).then(|| json.parse().ok())?
}

/// The text a member compares by: a string's content, a number or boolean as written.
fn text(json: &str) -> Option<Cow<'_, str>> {
    if let Some(inner) = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return if inner.contains('\\') {
            serde_json::from_str(json).ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inner))
        };
    }
    boolean(json).map(|_| json).map(Cow::Borrowed).or_else(|| number(json).map(|_| decimal(json)))
}

/// A number without an exponent and without a sign of zero, as a database of decimal numbers would print it.
fn decimal(json: &str) -> Cow<'_, str> {
    let (sign, digits) = json.strip_prefix('-').map_or(("", json), |rest| ("-", rest));
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let sign = if mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) { sign } else { "" };
    if exponent == "0" && (json.starts_with('-') == (sign == "-")) && !digits.contains(['e', 'E']) {
        return Cow::Borrowed(json);
    }
    // Beyond this no double goes, and no text is made of it.
    let shift = exponent.parse::<i32>().unwrap_or(0).clamp(-400, 400);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let point = whole.len() as i32 + shift;
    let mut all = format!("{whole}{fraction}");
    if point < 1 {
        all.insert_str(0, &"0".repeat((1 - point) as usize));
    }
    let point = point.max(1) as usize;
    while all.len() < point {
        all.push('0');
    }
    let (whole, fraction) = all.split_at(point);
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let dot = if fraction.is_empty() { "" } else { "." };
    Cow::Owned(format!("{sign}{whole}{dot}{fraction}"))
}

/// At the root a list also contains a bare value that is one of its items.
fn contains_at_root(member: &Value, wanted: &Value) -> bool {
    match (member, wanted) {
        (Value::Array(items), scalar) if !scalar.is_array() && !scalar.is_object() => {
            items.iter().any(|item| contains(item, scalar))
        }
        _ => contains(member, wanted),
    }
}

fn contains(member: &Value, wanted: &Value) -> bool {
    match (member, wanted) {
        (Value::Object(members), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| members.get(name).is_some_and(|member| contains(member, wanted))),
        (Value::Array(items), Value::Array(wanted)) => {
            wanted.iter().all(|wanted| items.iter().any(|item| contains(item, wanted)))
        }
        (Value::Number(member), Value::Number(wanted)) => member.as_f64() == wanted.as_f64(),
        (member, wanted) => member == wanted,
    }
}

/// What a document is sorted by for one [`Order`]: numbers by value first, then texts by bytes, then all else.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey(Option<f64>, Option<String>);

/// What a body is sorted by. One that not every backend can look into sorts as if it had no members.
pub fn sort_keys(orders: &[Order], body: &Raw) -> Vec<SortKey> {
    let searchable = orders.is_empty() || searchable(body.get());
    let key = |order: &Order| {
        let member = at(body.get(), &order.path).filter(|_| searchable);
        let number = member.and_then(number);
        let text = if number.is_some() { None } else { member.and_then(text).map(Cow::into_owned) };
        SortKey(number, text)
    };
    orders.iter().map(key).collect()
}

/// Compares two documents by their keys; equal ones are ordered by resource id.
pub fn compare_keys(orders: &[Order], left: &[SortKey], right: &[SortKey]) -> Ordering {
    for ((order, left), right) in orders.iter().zip(left).zip(right) {
        let number = last(left.0, right.0, |left, right| left.partial_cmp(&right).unwrap_or(Ordering::Equal));
        let text = || last(left.1.as_deref(), right.1.as_deref(), str::cmp);
        let found = number.then_with(text);
        let found = if order.descending { found.reverse() } else { found };
        if found != Ordering::Equal {
            return found;
        }
    }
    Ordering::Equal
}

/// What is absent comes last.
fn last<T: Copy>(left: Option<T>, right: Option<T>, compare: impl Fn(T, T) -> Ordering) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => compare(left, right),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(dotted: &str) -> Path {
        Path::new(dotted.split('.')).expect("a path")
    }

    fn found(expr: Expr) -> bool {
        let body = json!({
            "s": "it's", "n": 5, "d": 1.5, "t": true, "nil": null, "o": {"k": "v"}, "l": [1, "a", {"x": 1, "y": [2]}],
            "slash/dot.name": {"in": "x"}
        });
        holds(&expr.check().expect("within limits"), &Raw::of(&body).expect("JSON"))
    }

    fn is(name: &str, relation: Relation, literal: Literal) -> Expr {
        Expr::Compare(path(name), relation, literal)
    }

    #[test]
    fn comparisons_are_unknown_for_what_is_absent_or_of_another_sort() {
        use Relation::{Eq, Ge, Lt, Ne};
        let text = |text: &str| Literal::Text(text.to_owned());
        assert!(found(is("s", Eq, text("it's"))));
        assert!(found(is("n", Eq, text("5"))) && found(is("t", Eq, text("true"))));
        assert!(found(is("d", Ge, Literal::Number(1.5))) && found(is("n", Lt, Literal::Number(10.0))));
        assert!(found(is("n", Lt, text("6"))) && !found(is("n", Lt, text("10"))), "text compares as text");
        for name in ["none", "nil", "o", "l", "o.none", "l.0"] {
            for expr in [is(name, Eq, text("x")), is(name, Ne, text("x")), is(name, Ne, text("x")).negated()]
            {
                assert!(!found(expr.clone()), "{expr:?}");
            }
        }
        assert!(!found(is("s", Ne, Literal::Number(1.0))) && !found(is("s", Eq, Literal::Null)));
        assert!(!found(is("s", Eq, Literal::Null).negated()));
        assert!(found(Expr::Compare(Path::new(["slash/dot.name", "in"]).expect("a path"), Eq, text("x"))));
    }

    #[test]
    fn connectives_have_three_values() {
        let yes = || Expr::IsNull(path("none"));
        let no = || yes().negated();
        let unknown = || is("none", Relation::Eq, Literal::Text("x".to_owned()));
        assert!(found(Expr::Or(vec![unknown(), yes()])) && !found(Expr::And(vec![unknown(), yes()])));
        assert!(found(Expr::And(vec![unknown(), no()]).negated()), "false and unknown is false");
        assert!(!found(Expr::Or(vec![unknown(), no()]).negated()), "false or unknown is unknown");
        assert!(found(Expr::And(vec![])) && !found(Expr::Or(vec![])));
        let list = |values: &[&str]| {
            let literals = values.iter().map(|text| Literal::Text((*text).to_owned())).collect::<Vec<_>>();
            Expr::In(path("s"), literals)
        };
        assert!(found(list(&["x", "it's"])) && !found(list(&["x"])) && !found(list(&[])));
        let with_null = Expr::In(path("s"), vec![Literal::Text("x".to_owned()), Literal::Null]);
        assert!(!found(with_null.clone()) && !found(with_null.negated()));
        assert!(found(Expr::Between(path("n"), Literal::Number(5.0), Literal::Number(6.0))));
    }

    #[test]
    fn containment_is_that_of_jsonb() {
        let has = |name: &str, wanted: Value| found(Expr::Contains(path(name), wanted));
        assert!(has("o", json!({"k": "v"})) && has("o", json!({})) && !has("o", json!({"k": "w"})));
        assert!(has("l", json!(["a", 1.0, 1])) && has("l", json!("a")) && has("l", json!([])));
        assert!(has("l", json!([{"y": [2]}])) && !has("l", json!([{"y": 2}])) && !has("l", json!({"x": 1})));
        assert!(!has("none", json!({})) && !found(Expr::Contains(path("none"), json!({})).negated()));
        assert!(has("nil", json!(null)) && !has("s", json!(["it's"])));
    }

    #[test]
    fn numbers_have_the_text_of_a_decimal_database() {
        for (json, text) in [
            ("5", "5"),
            ("-0", "0"),
            ("-0.0", "0.0"),
            ("-2.50", "-2.50"),
            ("1e2", "100"),
            ("1.5E-3", "0.0015"),
            ("1.25e1", "12.5"),
            ("12e-1", "1.2"),
            ("0e5", "0"),
        ] {
            assert_eq!(decimal(json), text, "{json}");
        }
    }

    #[test]
    fn a_body_not_every_backend_can_look_into_meets_nothing() {
        let always = || Expr::And(vec![]).check().expect("small");
        for body in [r#"{"a":"\u0000"}"#, r#"{"\u0000":1}"#, r#"{"a":"\ud800"}"#] {
            assert!(!holds(&always(), &Raw::parse(body.to_owned()).expect("JSON")), "{body}");
        }
        for body in [r#"{"a":"\\u0000"}"#, r#"{"a":"\ud83d\ude00"}"#] {
            assert!(holds(&always(), &Raw::parse(body.to_owned()).expect("JSON")), "{body}");
        }
    }
}
