//! Conditions on the body, evaluated on the stored text without building a tree of it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::{Filter, Raw};

/// Whether a body meets all conditions.
pub fn matches(filters: &[Filter], body: &Raw) -> bool {
    filters.iter().all(|filter| meets(filter, body.get()))
}

fn meets(filter: &Filter, body: &str) -> bool {
    match filter {
        Filter::Eq(path, value) => string_at(body, path).is_some_and(|found| found == *value),
        Filter::EqIgnoreCase(path, value) => {
            string_at(body, path).is_some_and(|found| found.eq_ignore_ascii_case(value))
        }
        Filter::In(path, values) => string_at(body, path).is_some_and(|found| values.contains(&found)),
        Filter::Absent(path) => at(body, path).is_none_or(|found| found == "null"),
    }
}

fn string_at(body: &str, path: &str) -> Option<String> {
    serde_json::from_str(at(body, path)?).ok()
}

fn at<'a>(body: &'a str, path: &str) -> Option<&'a str> {
    descend(body, path.split('.'))
}

/// The JSON text of the member that these names lead to. Anything that is not an object on the way means there is none.
pub(super) fn descend<'a, 'n>(body: &'a str, names: impl IntoIterator<Item = &'n str>) -> Option<&'a str> {
    names.into_iter().try_fold(body, |body, name| {
        let mut reader = serde_json::Deserializer::from_str(body);
        reader.deserialize_map(Member(name)).ok()?.map(RawValue::get)
    })
}

/// Finds one member of an object. The last one wins when a name comes twice, as everywhere in JSON practice.
struct Member<'n>(&'n str);

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_it) = map.next_key_seed(Name(self.0))? {
            if is_it {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Compares a member's name without keeping it.
struct Name<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(text == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(value: serde_json::Value) -> Raw {
        Raw::of(&value).expect("a value is JSON")
    }

    #[test]
    fn members_are_found_at_any_depth_and_only_strings_are_equal_to_strings() {
        let body = body(serde_json::json!({
            "a": {"b": "It's \"x\"", "n": 5, "nil": null, "list": [{"b": 1}]}, "a.b": "dotted", "s": "Ü-Up"
        }));
        let holds = |filter: Filter| matches(&[filter], &body);
        assert!(holds(Filter::Eq("a.b", "It's \"x\"".into())));
        assert!(!holds(Filter::Eq("a.n", "5".into())));
        assert!(holds(Filter::EqIgnoreCase("s", "Ü-uP".into())));
        assert!(!holds(Filter::EqIgnoreCase("s", "ü-up".into())), "only ASCII case is ignored");
        assert!(holds(Filter::In("s", vec!["x".into(), "Ü-Up".into()])));
        assert!(!holds(Filter::In("s", vec![])));
        for path in ["a.nil", "a.none", "none.at.all", "a.list.b", "s.b"] {
            assert!(holds(Filter::Absent(path)), "{path}");
        }
        assert!(!holds(Filter::Absent("a.list")));
        assert!(!holds(Filter::Absent("a.b")));
    }
}
