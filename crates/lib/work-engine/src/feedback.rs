//! What is reported of an object, by rule.

use aro_crds::work::v1::{FeedbackRule, FeedbackType, FeedbackValue, FieldValue, JsonPath, ValueType};
use serde_json::Value;

/// What the rules found, and what they could not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Feedback {
    pub(crate) values: Vec<FeedbackValue>,
    pub(crate) errors: Vec<String>,
}

/// Applies rules to an object.
pub(crate) fn gather(rules: &[FeedbackRule], object: &Value, max_raw: usize) -> Feedback {
    let mut feedback = Feedback::default();
    for rule in rules {
        let paths = match rule.kind {
            FeedbackType::JsonPaths => rule.json_paths.clone(),
            FeedbackType::WellKnownStatus => {
                let Some(paths) = well_known(object) else {
                    let (version, kind) = (text(object, "apiVersion"), text(object, "kind"));
                    feedback.errors.push(format!(
                        "cannot find the wellknown statuses for resource with gvk {version}, Kind={kind}"
                    ));
                    continue;
                };
                paths
            }
        };
        for path in paths {
            match value_at(&path, object, max_raw) {
                // A name is reported once; the first rule that has a value wins.
                Ok(Some(value)) if feedback.values.iter().all(|known| known.name != path.name) => {
                    feedback.values.push(FeedbackValue { name: path.name, field_value: value });
                }
                Ok(_) => {}
                Err(error) => feedback.errors.push(error),
            }
        }
    }
    feedback
}

fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object[member].as_str().unwrap_or_default()
}

/// The well-known status fields of built-in kinds.
fn well_known(object: &Value) -> Option<Vec<JsonPath>> {
    let table: &[(&str, &str)] = match (text(object, "apiVersion"), text(object, "kind")) {
        ("apps/v1", "Deployment") => &[
            ("ReadyReplicas", ".status.readyReplicas"),
            ("Replicas", ".status.replicas"),
            ("AvailableReplicas", ".status.availableReplicas"),
        ],
        ("apps/v1", "DaemonSet") => &[
            ("NumberReady", ".status.numberReady"),
            ("DesiredNumberScheduled", ".status.desiredNumberScheduled"),
            ("NumberAvailable", ".status.numberAvailable"),
        ],
        ("batch/v1", "Job") => &[
            ("JobComplete", r#".status.conditions[?(@.type=="Complete")].status"#),
            ("JobSucceeded", ".status.succeeded"),
        ],
        ("v1", "Pod") => {
            &[("PodReady", r#".status.conditions[?(@.type=="Ready")].status"#), ("PodPhase", ".status.phase")]
        }
        _ => return None,
    };
    let path = |(name, path): &(&str, &str)| JsonPath {
        name: (*name).to_owned(),
        version: String::new(),
        path: (*path).to_owned(),
    };
    Some(table.iter().map(path).collect())
}

/// The value at a path. `None`: there is none.
fn value_at(path: &JsonPath, object: &Value, max_raw: usize) -> Result<Option<FieldValue>, String> {
    if !path.version.is_empty() {
        let api_version = text(object, "apiVersion");
        let version = api_version.rsplit('/').next().unwrap_or_default();
        if version != path.version {
            return Err(format!(
                "version set in the path {} is not matched for the related resource",
                path.name
            ));
        }
    }
    let bare = path.path.trim();
    let bare = bare.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(bare);
    let dotted = if bare.starts_with(['.', '[', '$']) { bare.to_owned() } else { format!(".{bare}") };
    let parsed = aro_kube_crd::JsonPath::parse(&dotted)
        .ok_or_else(|| format!("failed to parse json path {} of {}", path.path, path.name))?;
    let found = parsed.find(object);
    match found.as_slice() {
        [] | [Value::Null] => Ok(None),
        [one] => typed(&path.name, one, max_raw).map(Some),
        several => raw(&path.name, &serde_json::json!(several), max_raw).map(Some),
    }
}

fn typed(name: &str, value: &Value, max_raw: usize) -> Result<FieldValue, String> {
    let nothing =
        FieldValue { kind: ValueType::JsonRaw, integer: None, string: None, boolean: None, json_raw: None };
    Ok(match value {
        Value::String(text) => FieldValue { kind: ValueType::String, string: Some(text.clone()), ..nothing },
        Value::Bool(yes) => FieldValue { kind: ValueType::Boolean, boolean: Some(*yes), ..nothing },
        Value::Number(number) if number.as_i64().is_some() => {
            FieldValue { kind: ValueType::Integer, integer: number.as_i64(), ..nothing }
        }
        other => return raw(name, other, max_raw),
    })
}

fn raw(name: &str, value: &Value, max: usize) -> Result<FieldValue, String> {
    let json = value.to_string();
    if json.len() > max {
        return Err(format!(
            "the length of the value of {name} exceeds the limit {max}, its length is {}",
            json.len()
        ));
    }
    Ok(FieldValue {
        kind: ValueType::JsonRaw,
        integer: None,
        string: None,
        boolean: None,
        json_raw: Some(json),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(paths: &[(&str, &str, &str)]) -> Vec<FeedbackRule> {
        let path = |(name, version, path): &(&str, &str, &str)| JsonPath {
            name: (*name).to_owned(),
            version: (*version).to_owned(),
            path: (*path).to_owned(),
        };
        vec![FeedbackRule { kind: FeedbackType::JsonPaths, json_paths: paths.iter().map(path).collect() }]
    }

    fn shown(feedback: &Feedback) -> Value {
        feedback.values.iter().map(|value| (value.name.clone(), json!(value.field_value))).collect()
    }

    #[test]
    fn values_are_typed_and_what_is_missing_is_left_out() {
        let object = json!({"apiVersion": "x/v1", "kind": "K", "status": {
            "text": "t", "whole": 7, "part": 1.5, "yes": true, "none": null, "map": {"b": 1, "a": [2]},
            "conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "False"}],
        }});
        let rules = paths(&[
            ("text", "", ".status.text"),
            ("whole", "v1", "{.status.whole}"),
            ("part", "", "status.part"),
            ("yes", "", ".status.yes"),
            ("none", "", ".status.none"),
            ("missing", "", ".status.x.y"),
            ("map", "", ".status.map"),
            ("one", "", r#".status.conditions[?(@.type=="B")].status"#),
            ("many", "", ".status.conditions[*].status"),
        ]);
        let feedback = gather(&rules, &object, 1024);
        assert_eq!(feedback.errors, [""; 0]);
        assert_eq!(
            shown(&feedback),
            json!({
                "text": {"type": "String", "string": "t"},
                "whole": {"type": "Integer", "integer": 7},
                "part": {"type": "JsonRaw", "jsonRaw": "1.5"},
                "yes": {"type": "Boolean", "boolean": true},
                "map": {"type": "JsonRaw", "jsonRaw": "{\"a\":[2],\"b\":1}"},
                "one": {"type": "String", "string": "False"},
                "many": {"type": "JsonRaw", "jsonRaw": "[\"True\",\"False\"]"},
            })
        );
    }

    #[test]
    fn what_cannot_be_reported_is_said() {
        let object = json!({"apiVersion": "x/v1", "kind": "K", "status": {"long": ["aaaaaaaaaa"], "ok": 1}});
        let rules = paths(&[
            ("long", "", ".status.long"),
            ("old", "v2", ".status.ok"),
            ("bad", "", ".["),
            ("ok", "", ".status.ok"),
        ]);
        let feedback = gather(&rules, &object, 10);
        assert_eq!(feedback.errors.len(), 3, "{:?}", feedback.errors);
        assert_eq!(shown(&feedback), json!({"ok": {"type": "Integer", "integer": 1}}));
        let unknown = gather(&[FeedbackRule::default()], &object, 10);
        assert_eq!((unknown.values.len(), unknown.errors.len()), (0, 1));
    }

    #[test]
    fn known_kinds_are_known() {
        let well = [FeedbackRule::default()];
        for (object, expected) in [
            (
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "status": {"readyReplicas": 1, "replicas": 2}}),
                json!({"ReadyReplicas": {"type": "Integer", "integer": 1}, "Replicas": {"type": "Integer", "integer": 2}}),
            ),
            (
                json!({"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": [{"type": "Complete", "status": "True"}]}}),
                json!({"JobComplete": {"type": "String", "string": "True"}}),
            ),
            (
                json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running"}}),
                json!({"PodPhase": {"type": "String", "string": "Running"}}),
            ),
            (json!({"apiVersion": "apps/v1", "kind": "DaemonSet"}), json!({})),
        ] {
            assert_eq!(shown(&gather(&well, &object, 1024)), expected, "{object}");
        }
    }
}
