//! A bundle's payload with only the parts of its manifests that validation needs.
//!
//! Everything is parsed as strictly as an agent parses it (strings, numbers, depth): a payload accepted here can be decoded
//! there. The rest of each manifest is discarded.

use std::fmt;
use std::sync::Arc;

use aro_crds::work::v1::{DeleteOption, ManifestConfigOption, ManifestWorkExecutor};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::ManifestBundle;
use crate::payload::or_default;

/// The members kept of a manifest.
const KEPT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The prefix of names that the value parser treats specially.
const SPECIAL: &[u8] = b"$serde_json::";

/// The members of a [`ManifestBundle`], parsed the same except for the manifests.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Headers {
    #[serde(default, deserialize_with = "or_default")]
    manifests: Vec<Header>,
    #[serde(default)]
    delete_option: Option<DeleteOption>,
    #[serde(default, deserialize_with = "or_default")]
    manifest_configs: Vec<ManifestConfigOption>,
    #[serde(rename = "executer", default)]
    executor: Option<ManifestWorkExecutor>,
}

/// Parses a payload. It fails exactly when parsing a [`ManifestBundle`] fails.
pub(crate) fn read(data: &[u8]) -> serde_json::Result<ManifestBundle> {
    if data.windows(SPECIAL.len()).any(|part| part == SPECIAL) {
        return serde_json::from_slice(data);
    }
    let Headers { manifests, delete_option, manifest_configs, executor } = serde_json::from_slice(data)?;
    let manifests = Arc::new(manifests.into_iter().map(|Header(value)| value).collect());
    Ok(ManifestBundle { manifests, delete_option, manifest_configs, executor })
}

/// The header of a manifest: an object with [`KEPT`] members at most, or `null` for anything else.
struct Header(Value);

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HeaderVisitor).map(Self)
    }
}

struct HeaderVisitor;

impl<'de> Visitor<'de> for HeaderVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a manifest")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut head = Map::new();
        while let Some(name) = members.next_key_seed(Name)? {
            match name {
                Some(name) => {
                    head.insert(name.to_owned(), members.next_value()?);
                }
                None => members.next_value_seed(Thorough)?,
            }
        }
        Ok(Value::Object(head))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Value, A::Error> {
        Thorough.visit_seq(items).map(|()| Value::Null)
    }

    fn visit_str<E>(self, _: &str) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

/// A member's name, if its value is kept.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(KEPT.into_iter().find(|kept| *kept == text))
    }
}

/// Parses a value and discards it. Unlike `IgnoredAny` it rejects what cannot become a value.
struct Thorough;

impl<'de> DeserializeSeed<'de> for Thorough {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Thorough {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while members.next_key_seed(Self)?.is_some() {
            members.next_value_seed(Self)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Self)?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::validate;

    #[test]
    fn payload_an_agent_cannot_decode_is_rejected_and_the_rest_is_validated_alike() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let map = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":"#;
        let manifests = [
            format!("{map}{{}}}}"),
            format!("{map}{deep}}}"),
            format!("{map}1e999}}"),
            format!(r#"{map}"\ud800"}}"#),
            format!(r#"{map}{{"\ud800":1}}}}"#),
            format!(r#"{map}{{"$serde_json::private::RawValue":1}}}}"#),
            r#"{"metadata":{"name":"\ud800"}}"#.to_owned(),
            r#"{"kind":"A","kind":"B","metadata":{"name":"x"}}"#.to_owned(),
            r#"{"kind":1,"metadata":[]}"#.to_owned(),
            deep,
            "1".to_owned(),
            "-1.5".to_owned(),
            "null".to_owned(),
            "true".to_owned(),
            r#""text""#.to_owned(),
            r#"[{"a":[1,null,"x"]}]"#.to_owned(),
            "nonsense".to_owned(),
        ];
        let payloads = manifests.iter().map(|one| format!(r#"{{"manifests":[{one}]}}"#));
        let others = [
            "",
            "{}",
            "[]",
            r#"{"manifests":null,"manifestConfigs":null,"unknown":{}}"#,
            r#"{"manifests":1}"#,
            r#"{"manifests":[],"deleteOption":1}"#,
            r#"{"manifests":[],"manifestConfigs":[1]}"#,
            r#"{"manifests":[],"executer":1}"#,
            r#"{"manifests":[],"manifests":[]}"#,
            r#"{"manifests":[]} x"#,
        ];
        for payload in payloads.chain(others.map(str::to_owned)) {
            let judged = |read: serde_json::Result<ManifestBundle>| {
                read.map(|bundle| validate(&bundle)).map_err(|error| error.classify())
            };
            let thorough = judged(serde_json::from_str(&payload));
            assert_eq!(judged(read(payload.as_bytes())), thorough, "{payload}");
        }
    }

    #[test]
    fn only_the_manifest_headers_are_kept() {
        let payload =
            br#"{"manifests":[{"apiVersion":"v1","kind":"K","metadata":{"name":"n"},"data":{"a":"b"}}]}"#;
        let bundle = read(payload).unwrap();
        assert_eq!(bundle.manifests[0].as_object().unwrap().len(), 3);
    }
}
