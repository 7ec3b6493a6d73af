//! Taking out of an answer what is allowed to differ: times, versions, random names, keys.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

/// What one side has shown so far. Needed to tell whether a write made a new version.
#[derive(Debug, Default)]
pub struct Normal {
    versions: HashMap<String, String>,
}

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        #[allow(clippy::expect_used, reason = "written here and tested")]
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect("a pattern that compiles"));
    };
}

pattern!(UUID, r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
pattern!(TIME, r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)");
pattern!(ADDRESS, r"\b10\.0\.\d+\.\d+\b");
pattern!(VOLUME, r"kube-api-access-[a-z0-9]{5}");
pattern!(TOKEN, r"eyJ[A-Za-z0-9_-]+\.eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+");
pattern!(
    VERSIONS,
    r"(?i)((?:resource ?version|current)[a-z ]*(?: in (?:precondition|object meta))?: )\d+(?: \(\d+\))?"
);
pattern!(RECORDED, r"(?i)(ResourceVersion in (?:the precondition|record)) \(\d+\)");
pattern!(SHOWN, r#"Invalid value: ("\{.*\}"|\[\{.*\}\]|\{.*\}): "#);
pattern!(NODE_PORT, r"\b3[0-2]\d{3}\b");

/// Custom resources of scenarios are in this domain; their lists show the kind of each item.
const OWN_GROUP: &str = "test.aro.dev";

impl Normal {
    /// What is left of a body when all that may differ is taken out.
    pub fn body(&mut self, mut value: Value, sorted: bool) -> Value {
        if is_list(&value) {
            list(&mut value, sorted);
        }
        self.walk(&mut value);
        value
    }

    fn walk(&mut self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
                    self.metadata(metadata);
                }
                let random: Vec<String> =
                    members.keys().filter(|name| UUID.is_match(name)).cloned().collect();
                for name in random {
                    if let Some(member) = members.remove(&name) {
                        members.insert(UUID.replace_all(&name, "<uid>").into_owned(), member);
                    }
                }
                for (name, member) in members.iter_mut() {
                    if name == "nodePort" && member.is_number() {
                        *member = json!("<node port>");
                    } else {
                        self.walk(member);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item)),
            Value::String(text) => *text = clean(text),
            _ => {}
        }
    }

    fn metadata(&mut self, metadata: &mut Map<String, Value>) {
        let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (uid, version, prefix) = (text("uid"), text("resourceVersion"), text("generateName"));
        if !prefix.is_empty() && !uid.is_empty() && text("name").starts_with(&prefix) {
            metadata.insert("name".to_owned(), json!(format!("{prefix}<random>")));
        }
        if !version.is_empty() {
            // The same object in the same version again: nothing was written in between.
            let shown = if uid.is_empty() {
                "<version>"
            } else if self.versions.insert(uid, version.clone()).is_some_and(|before| before == version) {
                "<same version>"
            } else {
                "<new version>"
            };
            metadata.insert("resourceVersion".to_owned(), json!(shown));
        }
        if metadata.contains_key("continue") {
            metadata.insert("continue".to_owned(), json!("<continue>"));
        }
        if let Some(Value::Array(managed)) = metadata.get_mut("managedFields") {
            // They are in the order of their times, and a second may end in between.
            managed.sort_by_key(|entry| {
                ["operation", "manager", "subresource", "apiVersion"]
                    .map(|name| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned())
            });
        }
    }
}

fn list(list: &mut Value, sorted: bool) {
    let own =
        list.get("apiVersion").and_then(Value::as_str).is_some_and(|version| version.contains(OWN_GROUP));
    let partial = list.get("kind").and_then(Value::as_str) == Some("PartialObjectMetadataList");
    if let Some(items) = list.get_mut("items").and_then(Value::as_array_mut) {
        if !own && !partial {
            // Ours always show them, the real one never does.
            for item in items.iter_mut().filter_map(Value::as_object_mut) {
                item.remove("kind");
                item.remove("apiVersion");
            }
        }
        if sorted {
            items.sort_by_key(name_of);
        }
    }
    if sorted && let Some(rows) = list.get_mut("rows").and_then(Value::as_array_mut) {
        rows.sort_by_key(|row| row.get("object").map(name_of).unwrap_or_default());
    }
}

fn is_list(value: &Value) -> bool {
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    kind == "Table" || (kind.ends_with("List") && value.get("items").is_some())
}

fn name_of(object: &Value) -> String {
    let text =
        |name: &str| object.pointer(&format!("/metadata/{name}")).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

/// A text without what is random or told by a clock.
pub fn clean(text: &str) -> String {
    if text.contains("-----BEGIN ") {
        return "<pem>".to_owned();
    }
    if text.starts_with("X509SHA256=") {
        return "<fingerprint>".to_owned();
    }
    if text.starts_with("LS0tLS1CRUdJTi") {
        return "<pem in base64>".to_owned();
    }
    let text = UUID.replace_all(text, "<uid>");
    let text = TIME.replace_all(&text, "<time>");
    let text = ADDRESS.replace_all(&text, "<address>");
    let text = VOLUME.replace_all(&text, "kube-api-access-<random>");
    let text = TOKEN.replace_all(&text, "<token>");
    let text = NODE_PORT.replace_all(&text, "<node port>");
    // An object that an error shows: its members are in another order.
    let text = SHOWN.replace_all(&text, "Invalid value: <object>: ");
    let text = RECORDED.replace_all(&text, "${1} (<n>)");
    VERSIONS.replace_all(&text, "${1}<n>").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_differ_is_taken_out() {
        let mut normal = Normal::default();
        let object = json!({"metadata": {
            "name": "a-x7k2p", "generateName": "a-", "uid": "0b8f4d0e-6f0e-4b52-9c1a-7c5b3f6f5a11",
            "resourceVersion": "17", "creationTimestamp": "2020-01-01T00:00:00Z"}});
        let first = normal.body(object.clone(), false);
        assert_eq!(
            first,
            json!({"metadata": {"name": "a-<random>", "generateName": "a-", "uid": "<uid>",
            "resourceVersion": "<new version>", "creationTimestamp": "<time>"}})
        );
        assert_eq!(normal.body(object, false)["metadata"]["resourceVersion"], "<same version>");
        assert_eq!(clean("too old resource version: 1 (17)"), "too old resource version: <n>");
        assert_eq!(clean("clusterIP 10.0.3.4"), "clusterIP <address>");
    }
}
