//! Resources of containers, and names of resources.

use serde_json::Value;

use crate::quantity::Quantity;
use crate::validate::format;
use crate::validate::path::{Found, NOT_NEGATIVE, Path, entries, member};

const STANDARD: [&str; 25] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
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
    "services.loadbalancers",
    "services.nodeports",
    "storage",
    "requests.storage",
    "count/pods",
    "bindings",
    "hugepages",
    "services.externalname",
    "endpoints",
];

/// A qualified name, or one Kubernetes itself knows.
pub fn resource_name(found: &mut Found, name: &str, at: &Path<'_>) {
    let wrong = format::qualified_name(name);
    if !wrong.is_empty() {
        found.texts(at, name, wrong);
    } else if !name.contains('/') && !STANDARD.contains(&name) && !is_huge_page(name) {
        found.invalid(at, name, "must be a standard resource type or fully qualified");
    }
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-") || name.starts_with("requests.hugepages-")
}

fn container_resource_name(found: &mut Found, name: &str, at: &Path<'_>) {
    resource_name(found, name, at);
    let native = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if !name.contains('/') {
        if !native {
            found.invalid(at, name, "must be a standard resource for containers");
        }
    } else if name.starts_with("requests.") && !name.contains("kubernetes.io/") {
        found.invalid(at, name, "doesn't follow extended resource name standard");
    }
}

fn is_whole_only(name: &str) -> bool {
    name.contains('/') && !name.split('/').next().is_some_and(|prefix| prefix.ends_with("kubernetes.io"))
}

pub fn requirements(found: &mut Found, resources: &Value, at: &Path<'_>) {
    let (limits_at, requests_at) = (at.child("limits"), at.child("requests"));
    for (kind, at) in [("limits", &limits_at), ("requests", &requests_at)] {
        for (name, value) in entries(resources, kind) {
            let own = at.key(name);
            container_resource_name(found, name, &own);
            amount(found, name, value, &own);
            if kind == "requests" {
                against_limit(found, resources, name, value, at, &limits_at);
            }
        }
    }
}

fn amount(found: &mut Found, name: &str, value: &Value, at: &Path<'_>) {
    let Some(quantity) = value.as_str().and_then(Quantity::parse) else { return };
    if quantity.is_negative() {
        found.invalid(at, quantity.to_string(), NOT_NEGATIVE);
    }
    if is_whole_only(name) && quantity.milli() % 1000 != 0 {
        found.invalid(at, quantity.to_string(), "must be an integer");
    }
}

fn against_limit(
    found: &mut Found,
    resources: &Value,
    name: &str,
    value: &Value,
    at: &Path<'_>,
    limits_at: &Path<'_>,
) {
    let shared = matches!(name, "cpu" | "memory" | "ephemeral-storage");
    let limit = member(resources, "limits").and_then(|limits| limits.get(name)).and_then(Value::as_str);
    let request = value.as_str().and_then(Quantity::parse);
    match (limit.and_then(Quantity::parse), request) {
        (Some(limit), Some(request)) if !shared && request != limit && request.nano() != limit.nano() => {
            found.invalid(at, request.to_string(), format!("must be equal to {name} limit of {limit}"));
        }
        (Some(limit), Some(request)) if shared && request > limit => {
            found.invalid(
                at,
                request.to_string(),
                format!("must be less than or equal to {name} limit of {limit}"),
            );
        }
        (None, _) if !shared && limit.is_none() => {
            found.required(limits_at, "Limit must be set for non overcommitable resources");
        }
        _ => {}
    }
}
