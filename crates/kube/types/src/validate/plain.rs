//! Kinds of the core group with few rules.

use aro_kube_apimachinery::meta;
use serde_json::Value;

use super::format;
use super::metadata::{NOT_STANDARD, is_standard_finalizer};
use super::path::{Found, IMMUTABLE, Path, entries, flag, list, member, text};
use super::pods::resource_name;
use crate::quantity::Quantity;

const MAX_SIZE: usize = 1024 * 1024;
const IMMUTABLE_WHEN_SET: &str = "field is immutable when `immutable` is set";

pub fn config_map(found: &mut Found, object: &Value) {
    let mut size = 0;
    let at = Path::new("data");
    let binary = member(object, "binaryData");
    for (key, value) in entries(object, "data") {
        found.texts(&at.key(key), key, format::config_key(key));
        if binary.is_some_and(|binary| binary.get(key).is_some()) {
            found.invalid(&at.key(key), key, "duplicate of key present in binaryData");
        }
        size += value.as_str().map_or(0, str::len);
    }
    let at = Path::new("binaryData");
    for (key, value) in entries(object, "binaryData") {
        found.texts(&at.key(key), key, format::config_key(key));
        size += decoded_length(value);
    }
    if size > MAX_SIZE {
        // Upstream has no field to point at here.
        found.too_long("[]", MAX_SIZE);
    }
}

/// The length of base64 once decoded.
fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default().trim_end_matches('=');
    text.len() * 3 / 4
}

pub fn config_map_update(found: &mut Found, new: &Value, old: &Value) {
    immutable_data(found, new, old, &["data", "binaryData"]);
}

pub fn secret_update(found: &mut Found, new: &Value, old: &Value) {
    let at = Path::new("type");
    if text(new, "type") != text(old, "type") {
        found.invalid(&at, text(new, "type"), IMMUTABLE);
    }
    immutable_data(found, new, old, &["data"]);
}

fn immutable_data(found: &mut Found, new: &Value, old: &Value, keys: &[&str]) {
    if !flag(old, "immutable") {
        return;
    }
    if !flag(new, "immutable") {
        found.forbidden(&Path::new("immutable"), IMMUTABLE_WHEN_SET);
    }
    for key in keys {
        if member(new, key) != member(old, key) {
            found.forbidden(&Path::new(key), IMMUTABLE_WHEN_SET);
        }
    }
}

pub fn secret(found: &mut Found, object: &Value) {
    let at = Path::new("data");
    let mut size = 0;
    for (key, value) in entries(object, "data") {
        found.texts(&at.key(key), key, format::config_key(key));
        size += decoded_length(value);
    }
    if size > MAX_SIZE {
        found.too_long("data", MAX_SIZE);
    }
    let has = |key: &str| object["data"].get(key).is_some();
    let filled = |key: &str| !text(&object["data"], key).is_empty();
    match text(object, "type") {
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            let named = meta::annotations(object).and_then(|all| all.get(key)).and_then(Value::as_str);
            if named.unwrap_or_default().is_empty() {
                let metadata = Path::new("metadata");
                let annotations = metadata.child("annotations");
                found.required(&annotations.key(key), "");
            }
        }
        "kubernetes.io/dockercfg" => json_key(found, object, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => json_key(found, object, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            found.required(&at.key("username"), "");
            found.required(&at.key("password"), "");
        }
        "kubernetes.io/ssh-auth" if !filled("ssh-privatekey") => {
            found.required(&at.key("ssh-privatekey"), "");
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"] {
                if !has(key) {
                    found.required(&at.key(key), "");
                }
            }
        }
        _ => {}
    }
}

fn json_key(found: &mut Found, object: &Value, key: &str) {
    use base64::Engine as _;
    let data = Path::new("data");
    let at = data.key(key);
    let Some(encoded) = object["data"].get(key).and_then(Value::as_str) else {
        found.required(&at, "");
        return;
    };
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap_or_default();
    if let Err(error) = serde_json::from_slice::<Value>(&decoded) {
        let why = if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() };
        found.invalid(&at, "<secret contents redacted>", why);
    }
}

pub fn namespace(found: &mut Found, object: &Value) {
    let spec = Path::new("spec");
    let at = spec.child("finalizers");
    for name in list(&object["spec"], "finalizers").iter().filter_map(Value::as_str) {
        let wrong = format::qualified_name(name);
        if wrong.is_empty() && !is_standard_finalizer(name) {
            found.invalid(&at, name, NOT_STANDARD);
        }
        found.texts(&at, name, wrong);
    }
}

pub fn node(found: &mut Found, object: &Value) {
    // Upstream looks for taints below metadata, where they never were.
    let metadata = Path::new("metadata");
    let at = metadata.child("taints");
    for (index, taint) in list(&object["spec"], "taints").iter().enumerate() {
        let at = at.index(index);
        let (key, value) = (text(taint, "key"), text(taint, "value"));
        found.texts(&at.child("key"), key, format::qualified_name(key));
        found.texts(&at.child("value"), value, format::label_value(value));
        match text(taint, "effect") {
            "" => found.required(&at.child("effect"), ""),
            effect => {
                found.one_of(&at.child("effect"), effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
            }
        }
    }
    let spec = Path::new("spec");
    let at = spec.child("podCIDRs");
    let cidrs = list(&object["spec"], "podCIDRs");
    let single = text(&object["spec"], "podCIDR");
    let all: Vec<&str> = match cidrs {
        [] if !single.is_empty() => vec![single],
        _ => cidrs.iter().filter_map(Value::as_str).collect(),
    };
    for (index, cidr) in all.into_iter().enumerate() {
        if format::cidr(cidr).is_none() {
            found.invalid(&at.index(index), cidr, format::CIDR_RULE);
        }
    }
}

pub fn event(found: &mut Found, object: &Value) {
    let (own, about) = (meta::namespace(object), text(&object["involvedObject"], "namespace"));
    let involved = Path::new("involvedObject");
    // Events about objects outside of namespaces live in the default one.
    let fits = if about.is_empty() {
        matches!(own, "default" | "kube-system") || own.is_empty()
    } else {
        own == about
    };
    if !fits {
        found.invalid(&involved.child("namespace"), about, "does not match event.namespace");
    }
    let metadata = Path::new("metadata");
    if !own.is_empty() {
        found.texts(&metadata.child("namespace"), own, format::dns_subdomain(own));
    }
}

/// A namespace is going exactly when it is marked for deletion.
pub fn namespace_phase(found: &mut Found, object: &Value) {
    let phase = text(&object["status"], "phase");
    let at = Path::new("status.Phase");
    match aro_kube_apimachinery::meta::deletion_timestamp(object) {
        None if phase != "Active" => {
            found.invalid(&at, phase, "may only be 'Active' if `deletionTimestamp` is empty");
        }
        Some(_) if phase != "Terminating" => {
            found.invalid(&at, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty");
        }
        _ => {}
    }
}

/// Events made in the newer group leave out what the older one has for them.
pub fn new_event(found: &mut Found, object: &Value) {
    if text(object, "eventTime").is_empty() {
        found.required(&Path::new("eventTime"), "");
    }
    let kind = text(object, "type");
    if !matches!(kind, "Normal" | "Warning") {
        found.invalid(&Path::new("type"), "", format!("has invalid value: {kind}"));
    }
    let blank = |name: &str| match object.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::Object(members)) => members.is_empty(),
        Some(value) => value.as_i64() == Some(0),
    };
    let old = [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ];
    for (_, shown) in old.iter().filter(|(name, _)| !blank(name)) {
        found.invalid(&Path::new(shown), "", "needs to be unset");
    }
}

const QUOTA_RESOURCES: [&str; 18] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
];
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

pub fn resource_quota(found: &mut Found, object: &Value) {
    let spec = Path::new("spec");
    let hard = spec.child("hard");
    for (name, value) in entries(&object["spec"], "hard") {
        let at = hard.key(name);
        resource_name(found, name, &at);
        let known = QUOTA_RESOURCES.contains(&name)
            || name == "services.loadbalancers"
            || name.contains("hugepages-");
        if !name.contains('/') && !known {
            found.invalid(&at, name, "must be a standard resource for quota");
        }
        let Some(quantity) = value.as_str().and_then(Quantity::parse) else { continue };
        if quantity.is_negative() {
            found.invalid(&at, quantity.to_string(), super::path::NOT_NEGATIVE);
        }
        let whole = COUNTED.contains(&name) || name.starts_with("count/");
        if whole && quantity.milli() % 1000 != 0 {
            found.invalid(&at, quantity.to_string(), "must be an integer");
        }
    }
    const SCOPES: [&str; 7] = [
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
        "VolumeAttributesClass",
    ];
    let scopes = list(&object["spec"], "scopes");
    for scope in scopes.iter().filter_map(Value::as_str) {
        if !SCOPES.contains(&scope) {
            found.invalid(&spec.child("scopes"), scopes.to_vec(), "unsupported scope");
        }
    }
}

pub fn limit_range(found: &mut Found, object: &Value) {
    let spec = Path::new("spec");
    let limits = spec.child("limits");
    for (index, item) in list(&object["spec"], "limits").iter().enumerate() {
        let at = limits.index(index);
        let kind = text(item, "type");
        found.texts(&at.child("type"), kind, format::qualified_name(kind));
        for key in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
            let own = at.child(key);
            for (name, _) in entries(item, key) {
                resource_name(found, name, &own.key(name));
                let native = matches!(name, "cpu" | "memory" | "ephemeral-storage" | "storage")
                    || name.starts_with("hugepages-");
                if kind == "Container" && !name.contains('/') && !native {
                    found.invalid(&own.key(name), name, "must be a standard resource for containers");
                }
            }
        }
        limits_in_order(found, item, &at);
    }
}

fn limits_in_order(found: &mut Found, item: &Value, at: &Path<'_>) {
    let amount = |key: &str, name: &str| item.get(key)?.get(name)?.as_str().and_then(Quantity::parse);
    let mut names: Vec<&str> = Vec::new();
    for key in ["min", "max", "default", "defaultRequest"] {
        names.extend(
            entries(item, key)
                .map(|(name, _)| name)
                .filter(|name| item.get(key).is_some() && !name.is_empty()),
        );
    }
    names.sort_unstable();
    names.dedup();
    for name in names {
        let (min, max) = (amount("min", name), amount("max", name));
        let (default, request) = (amount("default", name), amount("defaultRequest", name));
        let mut complain = |key: &str, shown: Quantity, why: String| {
            let own = at.child(key);
            found.invalid(&own.key(name), shown.to_string(), why);
        };
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            complain("min", min, format!("min value {min} is greater than max value {max}"));
        }
        if let (Some(min), Some(request)) = (min, request)
            && min > request
        {
            complain(
                "defaultRequest",
                request,
                format!("min value {min} is greater than default request value {request}"),
            );
        }
        if let (Some(request), Some(max)) = (request, max)
            && request > max
        {
            complain(
                "defaultRequest",
                request,
                format!("default request value {request} is greater than max value {max}"),
            );
        }
        if let (Some(request), Some(default)) = (request, default)
            && request > default
        {
            complain(
                "defaultRequest",
                request,
                format!("default request value {request} is greater than default limit value {default}"),
            );
        }
        if let (Some(min), Some(default)) = (min, default)
            && min > default
        {
            complain("default", min, format!("min value {min} is greater than default value {default}"));
        }
        if let (Some(default), Some(max)) = (default, max)
            && default > max
        {
            complain("default", max, format!("default value {default} is greater than max value {max}"));
        }
    }
}
