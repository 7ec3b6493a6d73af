//! Pods and templates of Pods.

mod containers;
mod probes;
mod resources;
mod scheduling;
mod update;
mod volumes;

use std::collections::HashSet;

use serde_json::Value;

pub use resources::resource_name;
pub use update::update;

use super::format;
use super::metadata;
use super::path::{Found, Path, list, member, number, text};

const SPEC: Path<'static> = Path::new("spec");

pub fn pod(found: &mut Found, pod: &Value) {
    spec(found, &pod["spec"], &SPEC);
}

/// What only a new Pod must not have.
pub fn create_only(found: &mut Found, pod: &Value) {
    if !list(&pod["spec"], "ephemeralContainers").is_empty() {
        found.forbidden(&SPEC.child("ephemeralContainers"), "cannot be set on create");
    }
    if !list(&pod["spec"], "schedulingGates").is_empty() && !text(&pod["spec"], "nodeName").is_empty() {
        found.forbidden(&SPEC.child("nodeName"), "cannot be set until all schedulingGates have been cleared");
    }
}

pub fn pod_template(found: &mut Found, template: &Value) {
    template_spec(found, &template["template"], &Path::new("template"));
}

/// Metadata and spec of a template.
pub fn template_spec(found: &mut Found, template: &Value, at: &Path<'_>) {
    let below = at.child("metadata");
    metadata::labels(found, &template["metadata"], "labels", &at.child("labels"));
    metadata::annotations(found, &template["metadata"], &below.child("annotations"));
    let below = at.child("spec");
    spec(found, &template["spec"], &below);
    if !list(&template["spec"], "ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        found.forbidden(&below.child("ephemeralContainers"), why);
    }
}

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

fn spec(found: &mut Found, spec: &Value, at: &Path<'_>) {
    let volumes = volumes::volumes(found, list(spec, "volumes"), &at.child("volumes"));
    containers::all(found, spec, at, &volumes);
    match text(spec, "restartPolicy") {
        "" => found.required(&at.child("restartPolicy"), ""),
        policy => found.one_of(&at.child("restartPolicy"), policy, &RESTART_POLICIES),
    }
    let dns = text(spec, "dnsPolicy");
    found.one_of(&at.child("dnsPolicy"), dns, &DNS_POLICIES);
    metadata::labels(found, spec, "nodeSelector", &at.child("nodeSelector"));
    pod_security(found, &spec["securityContext"], &at.child("securityContext"));
    scheduling::affinity(found, &spec["affinity"], &at.child("affinity"));
    if dns == "None" && list(&spec["dnsConfig"], "nameservers").is_empty() {
        if member(spec, "dnsConfig").is_none() {
            found.required(&at.child("dnsConfig"), "must provide `dnsConfig` when `dnsPolicy` is None");
        } else {
            let config = at.child("dnsConfig");
            found.required(
                &config.child("nameservers"),
                "must provide at least one DNS nameserver when `dnsPolicy` is None",
            );
        }
    }
    for (index, gate) in list(spec, "readinessGates").iter().enumerate() {
        let gates = at.child("readinessGates");
        let kind = text(gate, "conditionType");
        found.texts(&gates.index(index).child("conditionType"), kind, format::qualified_name(kind));
    }
    scheduling::gates(found, list(spec, "schedulingGates"), &at.child("schedulingGates"));
    scheduling::spread(
        found,
        list(spec, "topologySpreadConstraints"),
        &at.child("topologySpreadConstraints"),
    );
    names(found, spec, at);
    scheduling::tolerations(found, list(spec, "tolerations"), &at.child("tolerations"));
    host_aliases(found, list(spec, "hostAliases"), &at.child("hostAliases"));
    for key in ["priorityClassName", "runtimeClassName"] {
        let name = text(spec, key);
        if !name.is_empty() {
            found.texts(&at.child(key), name, format::dns_subdomain(name));
        }
    }
    if let Some(policy) = member(spec, "preemptionPolicy").and_then(Value::as_str) {
        found.one_of(&at.child("preemptionPolicy"), policy, &["PreemptLowerPriority", "Never"]);
    }
    if let Some(os) = member(spec, "os") {
        match text(os, "name") {
            "" => found.required(&at.child("os").child("name"), "cannot be empty"),
            name => found.one_of(&at.child("os"), name, &["linux", "windows"]),
        }
    }
}

fn names(found: &mut Found, spec: &Value, at: &Path<'_>) {
    for key in ["serviceAccountName", "nodeName"] {
        let name = text(spec, key);
        if !name.is_empty() {
            found.texts(&at.child(key), name, format::dns_subdomain(name));
        }
    }
    if let Some(seconds) = number(spec, "activeDeadlineSeconds")
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        found.invalid(
            &at.child("activeDeadlineSeconds"),
            seconds,
            "must be between 1 and 2147483647, inclusive",
        );
    }
    for key in ["hostname", "subdomain"] {
        let name = text(spec, key);
        if !name.is_empty() {
            found.texts(&at.child(key), name, format::dns_label(name));
        }
    }
}

const ID_RULE: &str = "must be between 0 and 2147483647, inclusive";

/// User and group ids.
fn id(found: &mut Found, holder: &Value, key: &str, at: &Path<'_>) {
    if let Some(id) = number(holder, key)
        && !(0..=i64::from(i32::MAX)).contains(&id)
    {
        found.invalid(&at.child(key), id, ID_RULE);
    }
}

fn pod_security(found: &mut Found, context: &Value, at: &Path<'_>) {
    for key in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(found, context, key, at);
    }
    for (index, group) in list(context, "supplementalGroups").iter().enumerate() {
        if let Some(group) = group.as_i64()
            && !(0..=i64::from(i32::MAX)).contains(&group)
        {
            found.invalid(&at.child("supplementalGroups").index(index), group, ID_RULE);
        }
    }
    if let Some(policy) = member(context, "fsGroupChangePolicy").and_then(Value::as_str) {
        found.one_of(&at.child("fsGroupChangePolicy"), policy, &["Always", "OnRootMismatch"]);
    }
    let mut seen = HashSet::new();
    for (index, sysctl) in list(context, "sysctls").iter().enumerate() {
        let all = at.child("sysctls");
        let name = text(sysctl, "name");
        if name.is_empty() {
            found.required(&all.index(index).child("name"), "");
        } else if !seen.insert(name) {
            found.duplicate(&all.index(index).child("name"), name);
        }
    }
}

fn host_aliases(found: &mut Found, aliases: &[Value], at: &Path<'_>) {
    for (index, alias) in aliases.iter().enumerate() {
        let at = at.index(index);
        let ip = text(alias, "ip");
        if format::ip(ip).is_none() {
            found.invalid(&at.child("ip"), ip, format::IP_RULE);
        }
        for (index, name) in list(alias, "hostnames").iter().filter_map(Value::as_str).enumerate() {
            found.texts(&at.child("hostnames").index(index), name, format::dns_subdomain(name));
        }
    }
}
