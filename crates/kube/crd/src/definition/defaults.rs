//! What is filled in before a definition is checked.

use serde_json::{Value, json};

use crate::definition::{flag, list, text};

pub(super) fn apply(crd: &mut Value, old: Option<&Value>) {
    let stored = storage_version(crd).map(str::to_owned);
    let status = match old {
        None => json!({
            "conditions": null,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": stored.into_iter().collect::<Vec<_>>(),
        }),
        Some(old) => with_stored(old.get("status"), stored),
    };
    let Some(members) = crd.as_object_mut() else { return };
    members.insert("status".to_owned(), status);
    let Some(spec) = members.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        let empty = |value: Option<&Value>| value.is_none_or(|v| v.is_null() || v.as_str() == Some(""));
        if !kind.is_empty() && empty(names.get("singular")) {
            names.insert("singular".to_owned(), json!(kind.to_lowercase()));
        }
        if !kind.is_empty() && empty(names.get("listKind")) {
            names.insert("listKind".to_owned(), json!(format!("{kind}List")));
        }
    }
    let conversion = spec.entry("conversion").or_insert(Value::Null);
    if conversion.is_null() {
        *conversion = json!({"strategy": "None"});
    }
    if let Some(service) =
        conversion.pointer_mut("/webhook/clientConfig/service").and_then(Value::as_object_mut)
    {
        service.entry("port").or_insert(json!(443));
    }
    // False is what an absent field means, and is not written.
    if spec.get("preserveUnknownFields").is_some_and(|value| value != &json!(true)) {
        spec.remove("preserveUnknownFields");
    }
}

/// The last version that is marked.
pub(super) fn storage_version(crd: &Value) -> Option<&str> {
    let versions = list(crd.get("spec")?, "versions");
    versions.iter().find(|version| flag(version, "storage")).map(|version| text(version, "name"))
}

fn with_stored(status: Option<&Value>, stored: Option<String>) -> Value {
    let mut status = status.filter(|status| status.is_object()).cloned().unwrap_or_else(|| json!({}));
    let Some(stored) = stored.map(Value::String) else { return status };
    match status.get_mut("storedVersions").and_then(Value::as_array_mut) {
        Some(list) if list.contains(&stored) => {}
        Some(list) => list.push(stored),
        None => status["storedVersions"] = json!([stored]),
    }
    status
}
