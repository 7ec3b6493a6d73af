//! Versions of a definition: names, storage, and what each of them serves.
//!
//! What all versions have in common is checked once, and named as if it stood beside them (`spec.validation`,
//! `spec.subresources`, …): so did the first version of this API, and messages still do.

use serde_json::{Value, json};

use crate::definition::{Errors, extensions, flag, list, names, schema, text};

/// What a version may have of its own, the name of its place in a version, and beside the versions.
const PARTS: [(&str, &str, &str); 4] = [
    ("schema", "schema", "validation"),
    ("subresources", "subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields", "selectableFields"),
];

/// The value that a part has in all versions.
fn common<'a>(spec: &'a Value, part: &str) -> Option<&'a Value> {
    let mut versions = list(spec, "versions").iter();
    let first = versions.next()?.get(part);
    if versions.all(|version| version.get(part) == first) { first } else { None }
}

fn is_common(spec: &Value, part: &str) -> bool {
    let versions = list(spec, "versions");
    versions.windows(2).all(|pair| matches!(pair, [a, b] if a.get(part) == b.get(part)))
}

/// Checks versions one by one, and how they go together.
pub(super) fn each(spec: &Value, errors: &mut Errors) {
    let versions = list(spec, "versions");
    for (index, version) in versions.iter().enumerate() {
        let place = format!("spec.versions[{index}]");
        let name = text(version, "name");
        if let Some(problem) = names::label_problem(name) {
            errors.invalid(format!("{place}.name"), name, problem);
        }
        if let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str)
            && !flag(version, "deprecated")
        {
            let detail = "can only be set for deprecated versions";
            errors.invalid(format!("{place}.deprecationWarning"), warning, detail);
        }
        if version.pointer("/schema/openAPIV3Schema").is_none_or(Value::is_null) {
            errors.required(format!("{place}.schema.openAPIV3Schema"), "");
        }
        for (part, here, _) in PARTS {
            if !is_common(spec, part)
                && let Some(value) = version.get(part)
            {
                check_part(part, value, version, &format!("{place}.{here}"), errors);
            }
        }
    }
    let mut seen: Vec<&str> = versions.iter().map(|version| text(version, "name")).collect();
    seen.sort_unstable();
    if seen.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
        errors.invalid_as("spec.versions", &dump(spec), "must contain unique version names");
    }
    if versions.iter().filter(|version| flag(version, "storage")).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.invalid_as("spec.versions", &dump(spec), detail);
    }
    if let Some(first) = versions.first().map(|version| text(version, "name"))
        && let Some(problem) = names::label_problem(first)
    {
        errors.invalid("spec.version", first, problem);
    }
}

/// Checks what all versions have in common.
pub(super) fn shared(spec: &Value, errors: &mut Errors) {
    for (part, _, beside) in PARTS {
        let first = list(spec, "versions").first().unwrap_or(&Value::Null);
        if let Some(value) = common(spec, part) {
            check_part(part, value, first, &format!("spec.{beside}"), errors);
        }
    }
}

fn check_part(part: &str, value: &Value, version: &Value, place: &str, errors: &mut Errors) {
    match part {
        "schema" => {
            if let Some(root) = value.get("openAPIV3Schema").filter(|root| !root.is_null()) {
                schema::check(root, &format!("{place}.openAPIV3Schema"), errors);
            }
        }
        "subresources" => extensions::subresources(value, place, errors),
        "additionalPrinterColumns" => extensions::columns(value, place, errors),
        _ => extensions::selectable_fields(value, version, place, errors),
    }
}

/// Versions as upstream shows them: in its internal form, where parts that are common are absent.
fn dump(spec: &Value) -> String {
    let show = |value: Value| value.to_string();
    let part = |version: &Value, name: &str| {
        let own = version.get(name).filter(|_| !is_common(spec, name));
        show(own.cloned().unwrap_or_default())
    };
    let version = |version: &Value| {
        format!(
            r#"{{"Name":{},"Served":{},"Storage":{},"Deprecated":{},"DeprecationWarning":{},"Schema":{},"Subresources":{},"AdditionalPrinterColumns":{},"SelectableFields":{}}}"#,
            show(json!(text(version, "name"))),
            flag(version, "served"),
            flag(version, "storage"),
            flag(version, "deprecated"),
            show(version.get("deprecationWarning").cloned().unwrap_or_default()),
            part(version, "schema"),
            part(version, "subresources"),
            part(version, "additionalPrinterColumns"),
            part(version, "selectableFields"),
        )
    };
    let versions: Vec<String> = list(spec, "versions").iter().map(version).collect();
    format!("[{}]", versions.join(","))
}

/// Versions that objects may be stored in.
pub(super) fn stored(crd: &Value, errors: &mut Errors) {
    let field = "status.storedVersions";
    let spec = crd.get("spec").unwrap_or(&Value::Null);
    let stored = list(crd.get("status").unwrap_or(&Value::Null), "storedVersions");
    if stored.is_empty() {
        errors.invalid(field, Value::Null, "must have at least one stored version");
        return;
    }
    let versions = list(spec, "versions");
    for (index, name) in stored.iter().filter_map(Value::as_str).enumerate() {
        if !versions.iter().any(|version| text(version, "name") == name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.invalid(format!("{field}[{index}]"), name, detail);
        }
    }
    for version in versions.iter().filter(|version| flag(version, "storage")) {
        let name = text(version, "name");
        if !stored.iter().any(|stored| stored.as_str() == Some(name)) {
            errors.invalid(field, stored.to_vec(), format!("must have the storage version {name}"));
        }
    }
}
