//! Validation of a bundle before it is stored.

use std::collections::BTreeSet;
use std::fmt;

use aro_base::nesting;
use aro_kube_apimachinery::selector::syntax::{label_key_problems, label_value_problems, subdomain_problems};
use serde_json::{Map, Value};

use crate::{EventError, ManifestBundle, headers};

/// One violation and its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleProblem {
    /// A path like `manifests[0].metadata.name`.
    pub at: String,
    /// The violation.
    pub what: String,
}

impl fmt::Display for BundleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}

/// The deepest data of a bundle.
const MAX_DEPTH: usize = nesting::MAX_DEPTH - 8;

/// Metadata fields that only an API server sets.
const FORBIDDEN: [&str; 3] = ["generateName", "resourceVersion", "deletionGracePeriodSeconds"];

/// All violations in the data of a spec event, without keeping the data. An error if the data cannot be decoded as a
/// bundle.
pub fn validate_data(data: &[u8]) -> Result<Vec<BundleProblem>, EventError> {
    // Rows, events and answers wrap it a few times.
    if nesting::is_text_deeper_than(data, MAX_DEPTH) {
        return Err(EventError::Data(format!("it is nested deeper than {MAX_DEPTH} levels")));
    }
    let bundle = headers::read(data).map_err(|error| EventError::Data(error.to_string()))?;
    Ok(validate(&bundle))
}

/// All violations of a bundle; empty if it may be stored.
pub fn validate(bundle: &ManifestBundle) -> Vec<BundleProblem> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, manifest) in bundle.manifests.iter().enumerate() {
        let at = format!("manifests[{index}]");
        let Value::Object(object) = manifest else {
            problems.push(BundleProblem { at, what: "is not an object".to_owned() });
            continue;
        };
        let mut found = Found { at: &at, problems: &mut problems };
        found.object(object);
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"]
            .map(|path| text(path).to_owned());
        let complete = !name[0].is_empty() && !name[1].is_empty() && !name[3].is_empty();
        if complete && !seen.insert(name.clone()) {
            let [version, kind, namespace, name] = name;
            found.add(
                "",
                format!(
                    "is the second {version} {kind} {namespace}/{name}; a bundle may hold an object once"
                ),
            );
        }
    }
    problems
}

struct Found<'a> {
    at: &'a str,
    problems: &'a mut Vec<BundleProblem>,
}

impl Found<'_> {
    fn add(&mut self, path: &str, what: impl Into<String>) {
        let dot = if path.is_empty() { "" } else { "." };
        self.problems.push(BundleProblem { at: format!("{}{dot}{path}", self.at), what: what.into() });
    }

    fn object(&mut self, object: &Map<String, Value>) {
        match object.get("apiVersion").and_then(Value::as_str) {
            None | Some("") => self.add("apiVersion", "is needed"),
            Some(version) => {
                if let Some(what) = wrong_version(version) {
                    self.add("apiVersion", what);
                }
            }
        }
        if object.get("kind").and_then(Value::as_str).is_none_or(str::is_empty) {
            self.add("kind", "is needed");
        }
        match object.get("metadata") {
            Some(Value::Object(metadata)) => self.metadata(metadata),
            _ => self.add("metadata.name", "is needed"),
        }
    }

    fn metadata(&mut self, metadata: &Map<String, Value>) {
        if metadata.get("name").and_then(Value::as_str).is_none_or(str::is_empty) {
            self.add("metadata.name", "is needed");
        }
        match metadata.get("namespace") {
            None | Some(Value::Null) => {}
            Some(Value::String(name)) if name.is_empty() || is_label(name) => {}
            Some(_) => self.add("metadata.namespace", "is not the name of a namespace"),
        }
        for name in FORBIDDEN {
            let set = metadata.get(name).is_some_and(|value| !value.is_null() && value != "" && value != 0);
            if set {
                self.add(&format!("metadata.{name}"), "must not be set");
            }
        }
        for (member, values) in [("labels", true), ("annotations", false)] {
            match metadata.get(member) {
                None | Some(Value::Null) => {}
                Some(Value::Object(entries)) => {
                    for (key, value) in entries {
                        let mut wrong = label_key_problems(key);
                        match value.as_str() {
                            Some(value) if values => wrong.extend(label_value_problems(value)),
                            Some(_) => {}
                            None => wrong.push("the value is not a text".to_owned()),
                        }
                        for what in wrong {
                            self.add(&format!("metadata.{member}[{key}]"), what);
                        }
                    }
                }
                Some(_) => self.add(&format!("metadata.{member}"), "is not an object"),
            }
        }
        match metadata.get("finalizers") {
            None | Some(Value::Null) => {}
            Some(Value::Array(all)) => {
                for (index, one) in all.iter().enumerate() {
                    let wrong = one.as_str().is_none_or(|name| !label_key_problems(name).is_empty());
                    if wrong {
                        self.add(&format!("metadata.finalizers[{index}]"), "is not a qualified name");
                    }
                }
            }
            Some(_) => self.add("metadata.finalizers", "is not a list"),
        }
    }
}

fn wrong_version(text: &str) -> Option<&'static str> {
    let (group, version) =
        text.rsplit_once('/').map_or((None, text), |(group, version)| (Some(group), version));
    if group.is_some_and(|group| !subdomain_problems(group).is_empty()) {
        return Some("has a group that is not a DNS name");
    }
    let starts = version.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    (!starts || !is_label(version)).then_some("is not [group/]version")
}

/// A DNS label (RFC 1123).
fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let edges = [text.bytes().next(), text.bytes().last()];
    text.len() <= 63
        && edges.into_iter().all(|byte| byte.is_some_and(plain))
        && text.bytes().all(|byte| plain(byte) || byte == b'-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(manifests: Value) -> Vec<String> {
        let Value::Array(manifests) = manifests else { panic!("a list") };
        let bundle = ManifestBundle { manifests: manifests.into(), ..ManifestBundle::default() };
        validate(&bundle).iter().map(|problem| problem.at.clone()).collect()
    }

    #[test]
    fn all_violations_are_reported_at_once_with_their_paths() {
        let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        assert!(problems(json!([map("a"), map("b")])).is_empty());
        assert!(problems(json!([])).is_empty());
        assert_eq!(problems(json!([map("a"), map("a")])), ["manifests[1]"]);
        assert_eq!(problems(json!([1])), ["manifests[0]"]);
        assert_eq!(
            problems(json!([{}, {"apiVersion": "a/b/v1", "kind": "", "metadata": {}}])),
            [
                "manifests[0].apiVersion",
                "manifests[0].kind",
                "manifests[0].metadata.name",
                "manifests[1].apiVersion",
                "manifests[1].kind",
                "manifests[1].metadata.name",
            ]
        );
        let metadata = json!({
            "name": "x", "namespace": "Not_One", "generateName": "x-", "resourceVersion": "3",
            "deletionGracePeriodSeconds": 0, "labels": {"a b": "c", "ok": "not ok!"},
            "annotations": {"ok": "anything at all!"}, "finalizers": ["example.com/x", "no no"],
        });
        assert_eq!(
            problems(json!([{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}])),
            [
                "manifests[0].metadata.namespace",
                "manifests[0].metadata.generateName",
                "manifests[0].metadata.resourceVersion",
                "manifests[0].metadata.labels[a b]",
                "manifests[0].metadata.labels[ok]",
                "manifests[0].metadata.finalizers[1]",
            ]
        );
    }

    #[test]
    fn data_too_deep_to_be_read_back_is_refused() {
        let data = |depth: usize| {
            let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
            let object = r#"{"apiVersion":"v1","kind":"X","metadata":{"name":"a"},"x":"#;
            format!(r#"{{"manifests":[{object}{deep}}}]}}"#)
        };
        assert_eq!(validate_data(data(50).as_bytes()), Ok(Vec::new()));
        assert!(validate_data(data(MAX_DEPTH).as_bytes()).is_err());
        assert!(validate_data(data(1_000_000).as_bytes()).is_err());
    }
}
