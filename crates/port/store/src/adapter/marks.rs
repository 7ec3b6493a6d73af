//! A digest of all words of a body (a Bloom filter): shows which bodies cannot meet a condition, without reading them.
//!
//! The words are names of members and texts. A database that keeps bodies away from their rows keeps the marks in the row;
//! a search then reads the bodies of what it finds, and of few others.
//!
//! The digest is stored, so neither the hash nor the places may ever change for an existing column.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::{Condition, Expr, Literal, Path, Relation};

/// Places that one word marks.
const PLACES: u64 = 3;

/// Bits per word: with three places about one body in fifty is read for nothing.
const BITS_PER_WORD: usize = 8;

/// Bytes of a digest, a power of two between these.
const FEWEST: usize = 32;
const MOST: usize = 1024;

/// More words of a condition would not rule out more.
const WORDS: usize = 6;

/// The digest of a body; `None` if it cannot be read, which rules out nothing.
pub fn marks(body: &str) -> Option<Vec<u8>> {
    let mut words = Vec::new();
    let mut reader = serde_json::Deserializer::from_str(body);
    Walk(&mut words).deserialize(&mut reader).ok()?;
    words.sort_unstable();
    words.dedup();
    let bytes = (words.len() * BITS_PER_WORD / 8).next_power_of_two().clamp(FEWEST, MOST);
    let mut marks = vec![0_u8; bytes];
    for place in words.into_iter().flat_map(places) {
        let bit = place as usize & (bytes * 8 - 1);
        marks[bit / 8] |= 1 << (bit % 8);
    }
    Some(marks)
}

/// The places that are marked in every body that meets a condition, each modulo the bits of that body's digest: bit `n` is
/// bit `n % 8`, counted from the lowest, of byte `n / 8`.
pub fn marked_by(condition: &Condition) -> Vec<u32> {
    let mut words = Vec::new();
    collect(condition.expr(), &mut words);
    words.sort_unstable();
    words.dedup();
    words.truncate(WORDS);
    words.into_iter().flat_map(places).collect()
}

fn places(word: u64) -> impl Iterator<Item = u32> {
    let (first, step) = (word as u32, (word >> 32) as u32 | 1);
    // Never negative for a database that only knows signed numbers.
    (0..PLACES).map(move |n| first.wrapping_add(step.wrapping_mul(n as u32)) & 0x7fff_ffff)
}

/// FNV-1a, mixed once more since its low bits are weak.
fn hash(word: &str) -> u64 {
    let fnv = word
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mixed = (fnv ^ (fnv >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ (mixed >> 33)
}

fn collect(expr: &Expr, words: &mut Vec<u64>) {
    match expr {
        Expr::And(parts) => parts.iter().for_each(|part| collect(part, words)),
        Expr::Compare(path, relation, literal) => {
            last_name(path, words);
            if let (Relation::Eq, Literal::Text(text)) = (relation, literal)
                && !may_be_number(text)
            {
                words.push(hash(text));
            }
        }
        Expr::Like { path, .. } | Expr::In(path, _) | Expr::Between(path, ..) => last_name(path, words),
        Expr::Contains(path, value) => {
            last_name(path, words);
            all_of(value, words);
        }
        // What is absent, or one of several, marks nothing for certain.
        Expr::Or(_) | Expr::Not(_) | Expr::IsNull(_) => {}
    }
}

/// The member itself must be there; the names above it are in most bodies anyway.
fn last_name(path: &Path, words: &mut Vec<u64>) {
    words.extend(path.names().last().map(|name| hash(name)));
}

/// A number equals its text, and can be written in many ways.
fn may_be_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
}

fn all_of(value: &Value, words: &mut Vec<u64>) {
    match value {
        Value::String(text) => words.push(hash(text)),
        Value::Array(items) => items.iter().for_each(|item| all_of(item, words)),
        Value::Object(inner) => {
            for (name, value) in inner {
                words.push(hash(name));
                all_of(value, words);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Goes through a body without building it.
struct Walk<'w>(&'w mut Vec<u64>);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.push(hash(text));
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        // It equals its text.
        self.0.push(hash(if value { "true" } else { "false" }));
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Walk(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while members.next_key_seed(Walk(self.0))?.is_some() {
            members.next_value_seed(Walk(self.0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn may_meet(expr: Expr, body: &Value) -> bool {
        let marks = marks(&body.to_string()).expect("JSON");
        let bits = marks.len() * 8;
        marked_by(&expr.check().expect("small")).into_iter().all(|place| {
            let bit = place as usize & (bits - 1);
            marks[bit / 8] & (1 << (bit % 8)) != 0
        })
    }

    #[test]
    fn what_meets_a_condition_is_never_ruled_out_and_most_else_is() {
        let body = |n: usize| json!({"labels": {"a/id": format!("bundle {n}"), "n": n, "t": true}, "l": ["ü", {"k": null}]});
        let id = |n: usize| Expr::is(Path::new(["labels", "a/id"]).unwrap(), format!("bundle {n}"));
        let ruled_out = (0..500).filter(|n| !may_meet(id(7), &body(*n))).count();
        assert!(ruled_out > 450, "{ruled_out}");
        for n in 0..500 {
            assert!(may_meet(id(n), &body(n)));
            let path = Path::new(["labels", "n"]).unwrap();
            assert!(may_meet(Expr::is(path, n.to_string()), &body(n)), "a number equals its text");
        }
        for (number, text) in [(json!(1e300), "1e300"), (json!(-0.5), "-0.5"), (json!(1e-7), "1e-7")] {
            assert!(may_meet(Expr::is(Path::member("n"), text), &json!({"n": number})), "{text}");
        }
        assert!(may_meet(Expr::is(Path::new(["labels", "t"]).unwrap(), "true"), &body(1)));
        let list = Path::member("l");
        assert!(may_meet(Expr::Contains(list.clone(), json!(["ü", {"k": null}])), &body(1)));
        assert!(!may_meet(Expr::Contains(list, json!([{"other": 1}])), &body(1)));
        let none = Expr::IsNull(Path::member("none"));
        assert!(may_meet(none.clone(), &body(1)) && may_meet(Expr::Or(vec![id(9), none]), &body(1)));
        assert!(may_meet(id(9).negated(), &body(1)));
    }

    #[test]
    fn the_digest_is_stored_and_so_stays_as_it_is() {
        let word = Expr::is(Path::member("a"), "maestro").check().unwrap();
        let mut known = marked_by(&word);
        known.sort_unstable();
        assert_eq!(known.len(), 6);
        let sum = known.iter().fold(0_u64, |sum, place| sum.wrapping_mul(31).wrapping_add(u64::from(*place)));
        assert_eq!(sum, 3_581_960_367_088_160);
    }

    #[test]
    fn a_large_body_has_a_bounded_digest_and_a_broken_one_none() {
        let large = Value::from((0..5000).map(|n| format!("word {n}")).collect::<Vec<_>>());
        assert_eq!(marks(&large.to_string()).unwrap().len(), MOST);
        assert_eq!(marks("{}").unwrap().len(), FEWEST);
        assert_eq!(marks(r#"{"a":"\ud800"}"#), None);
    }
}
