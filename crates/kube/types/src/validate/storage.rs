//! Volumes, claims and classes of storage.

use serde_json::Value;

use super::path::{Found, IMMUTABLE, Path, entries, list, member, text};
use super::pods::resource_name;
use super::{format, selectors};
use crate::quantity::Quantity;

const SPEC: Path<'static> = Path::new("spec");
const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

fn access_modes(found: &mut Found, spec: &Value, detail: &str) {
    let modes: Vec<&str> = list(spec, "accessModes").iter().filter_map(Value::as_str).collect();
    let at = SPEC.child("accessModes");
    if modes.is_empty() {
        found.required(&at, detail);
    }
    for mode in &modes {
        found.one_of(&at, mode, &ACCESS_MODES);
    }
    if modes.len() > 1 && modes.contains(&"ReadWriteOncePod") {
        found.forbidden(&at, "may not use ReadWriteOncePod with other access modes");
    }
}

fn class_name(found: &mut Found, spec: &Value) {
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        found.texts(&SPEC.child("storageClassName"), class, format::dns_subdomain(class));
    }
}

fn volume_mode(found: &mut Found, spec: &Value) {
    if let Some(mode) = member(spec, "volumeMode").and_then(Value::as_str) {
        found.one_of(&SPEC.child("volumeMode"), mode, &["Block", "Filesystem"]);
    }
}

pub fn claim(found: &mut Found, object: &Value) {
    let spec = &object["spec"];
    access_modes(found, spec, "at least 1 access mode is required");
    if let Some(selector) = member(spec, "selector") {
        selectors::check(found, selector, &SPEC.child("selector"));
    }
    let at = SPEC.child("resources");
    let storage = member(&spec["resources"], "requests").and_then(|requests| requests.get("storage"));
    match storage.and_then(Value::as_str).and_then(Quantity::parse) {
        None => found.required(&at.key("storage"), ""),
        Some(amount) if amount.nano() <= 0 => {
            found.invalid(&at.key("storage"), amount.to_string(), "must be greater than zero");
        }
        Some(_) => {}
    }
    class_name(found, spec);
    volume_mode(found, spec);
}

const CLAIM_IMMUTABLE: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

pub fn claim_update(found: &mut Found, new: &Value, old: &Value) {
    let (spec, before) = (&new["spec"], &old["spec"]);
    let bound = text(&old["status"], "phase") == "Bound";
    let mut copy = spec.clone();
    if let Some(members) = copy.as_object_mut() {
        // Binding sets the volume, and a claim without a class may get the default one.
        let mut free = vec!["volumeAttributesClassName"];
        if text(before, "volumeName").is_empty() {
            free.push("volumeName");
        }
        if member(before, "storageClassName").is_none() {
            free.push("storageClassName");
        }
        if bound {
            free.push("resources");
        }
        for key in free {
            match before.get(key) {
                Some(value) => members.insert(key.to_owned(), value.clone()),
                None => members.remove(key),
            };
        }
    }
    if copy != *before {
        found.forbidden(&SPEC, CLAIM_IMMUTABLE);
    }
    if bound {
        let amount = |spec: &Value| {
            spec.pointer("/resources/requests/storage").and_then(Value::as_str).and_then(Quantity::parse)
        };
        if let (Some(now), Some(was)) = (amount(spec), amount(before))
            && now < was
        {
            let at = SPEC.child("resources");
            found.forbidden(
                &at.child("requests").child("storage"),
                "field can not be less than status.capacity",
            );
        }
    }
    volume_mode_stays(found, spec, before);
}

fn volume_mode_stays(found: &mut Found, spec: &Value, before: &Value) {
    if member(spec, "volumeMode") != member(before, "volumeMode") {
        found.invalid(&Path::new("volumeMode"), spec["volumeMode"].clone(), IMMUTABLE);
    }
}

/// Members of a volume's spec that are no source.
const NO_SOURCE: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeMode",
    "volumeAttributesClassName",
];

fn sources(spec: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let members = spec.as_object().into_iter().flatten();
    members.filter(|(key, value)| !NO_SOURCE.contains(&key.as_str()) && !value.is_null())
}

pub fn volume(found: &mut Found, object: &Value) {
    let spec = &object["spec"];
    access_modes(found, spec, "");
    let at = SPEC.child("capacity");
    let capacity: Vec<(&str, &Value)> = entries(spec, "capacity").collect();
    if capacity.is_empty() {
        found.required(&at, "");
    }
    if !capacity.iter().any(|(name, _)| *name == "storage") || capacity.len() > 1 {
        found.not_supported(
            &at,
            spec.get("capacity").cloned().unwrap_or_else(|| serde_json::json!({})),
            &["storage"],
        );
    }
    for (name, value) in capacity {
        let at = at.key(name);
        resource_name(found, name, &at);
        if let Some(amount) = value.as_str().and_then(Quantity::parse).filter(|amount| amount.nano() <= 0) {
            if amount.is_negative() {
                found.invalid(&at, amount.units() as i64, "must be a valid resource quantity");
            }
            found.invalid(&at, amount.to_string(), "must be greater than zero");
        }
    }
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        found.one_of(&SPEC.child("persistentVolumeReclaimPolicy"), policy, &["Delete", "Recycle", "Retain"]);
    }
    source(found, spec);
    class_name(found, spec);
    volume_mode(found, spec);
}

fn source(found: &mut Found, spec: &Value) {
    let mut count = 0;
    for (kind, source) in sources(spec) {
        count += 1;
        let at = SPEC.child(kind);
        if count > 1 {
            found.forbidden(&at, "may not specify more than 1 volume type");
            continue;
        }
        match kind.as_str() {
            "hostPath" => {
                let path = text(source, "path");
                if path.is_empty() {
                    found.required(&at.child("path"), "");
                } else if path.split('/').any(|step| step == "..") {
                    found.invalid(&at.child("path"), path, "must not contain '..'");
                }
            }
            "nfs" | "csi" => {
                let required: &[&str] =
                    if kind == "nfs" { &["server", "path"] } else { &["driver", "volumeHandle"] };
                for key in required {
                    if text(source, key).is_empty() {
                        found.required(&at.child(key), "");
                    }
                }
            }
            _ => {}
        }
    }
    if count == 0 {
        found.required(&SPEC, "must specify a volume type");
    }
}

pub fn volume_update(found: &mut Found, new: &Value, old: &Value) {
    let (spec, before) = (&new["spec"], &old["spec"]);
    if !sources(spec).eq(sources(before)) {
        let at = SPEC.child("persistentvolumesource");
        found.forbidden(&at, "spec.persistentvolumesource is immutable after creation");
    }
    volume_mode_stays(found, spec, before);
}

pub fn class(found: &mut Found, object: &Value) {
    let at = Path::new("provisioner");
    match text(object, "provisioner") {
        "" => found.required(&at, ""),
        name => found.texts(&at, name, format::qualified_name(&name.to_lowercase())),
    }
    for (key, _) in entries(object, "parameters") {
        if key.is_empty() {
            found.invalid(&Path::new("parameters"), "", "field can not be empty.");
        }
    }
    let policy = text(object, "reclaimPolicy");
    if !policy.is_empty() {
        found.one_of(&Path::new("reclaimPolicy"), policy, &["Delete", "Retain"]);
    }
    let at = Path::new("volumeBindingMode");
    match text(object, "volumeBindingMode") {
        "" => found.required(&at, ""),
        mode => found.one_of(&at, mode, &["Immediate", "WaitForFirstConsumer"]),
    }
}
