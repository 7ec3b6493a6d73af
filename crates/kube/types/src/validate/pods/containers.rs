//! Containers of all three kinds.

use std::collections::HashSet;

use serde_json::Value;

use super::{id, probes, resources};
use crate::validate::format;
use crate::validate::path::{Found, Path, flag, list, member, number, text};

const NOT_FOR_INIT: &str = "may not be set for init containers without restartPolicy=Always";

pub fn all<'a>(found: &mut Found, spec: &'a Value, at: &Path<'_>, volumes: &HashSet<&'a str>) {
    let below = at.child("containers");
    let containers = list(spec, "containers");
    let grace = number(spec, "terminationGracePeriodSeconds");
    let mut names = HashSet::new();
    if containers.is_empty() {
        found.required(&below, "");
    }
    for (index, container) in containers.iter().enumerate() {
        let at = below.index(index);
        common(found, container, &at, volumes);
        let name = text(container, "name");
        if !names.insert(name) {
            found.duplicate(&at.child("name"), name);
        }
        probes::all(found, container, &at, grace);
    }
    let below = at.child("initContainers");
    for (index, container) in list(spec, "initContainers").iter().enumerate() {
        let at = below.index(index);
        common(found, container, &at, volumes);
        let name = text(container, "name");
        if names.contains(name) {
            found.duplicate(&at.child("name"), name);
        } else if !name.is_empty() {
            names.insert(name);
        }
        if text(container, "restartPolicy") == "Always" {
            probes::all(found, container, &at, grace);
            continue;
        }
        for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if member(container, key).is_some() {
                found.forbidden(&at.child(key), NOT_FOR_INIT);
            }
        }
    }
    let below = at.child("ephemeralContainers");
    for (index, container) in list(spec, "ephemeralContainers").iter().enumerate() {
        let at = below.index(index);
        common(found, container, &at, volumes);
        let name = text(container, "name");
        if !names.insert(name) {
            found.duplicate(&at.child("name"), name);
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !containers.iter().any(|of| text(of, "name") == target) {
            found.not_found(&at.child("targetContainerName"), target);
        }
    }
}

fn common(found: &mut Found, container: &Value, at: &Path<'_>, volumes: &HashSet<&str>) {
    match text(container, "name") {
        "" => found.required(&at.child("name"), ""),
        name => found.texts(&at.child("name"), name, format::dns_label(name)),
    }
    let image = text(container, "image");
    if image.is_empty() {
        found.required(&at.child("image"), "");
    } else if image.trim() != image {
        found.invalid(&at.child("image"), image, "must not have leading or trailing whitespace");
    }
    let policy = text(container, "terminationMessagePolicy");
    found.one_of(&at.child("terminationMessagePolicy"), policy, &["File", "FallbackToLogsOnError"]);
    ports(found, list(container, "ports"), &at.child("ports"));
    env(found, list(container, "env"), &at.child("env"));
    env_from(found, list(container, "envFrom"), &at.child("envFrom"));
    mounts(found, list(container, "volumeMounts"), &at.child("volumeMounts"), volumes);
    let policy = text(container, "imagePullPolicy");
    found.one_of(&at.child("imagePullPolicy"), policy, &["Always", "IfNotPresent", "Never"]);
    resources::requirements(found, &container["resources"], &at.child("resources"));
    security(found, &container["securityContext"], &at.child("securityContext"));
}

fn ports(found: &mut Found, ports: &[Value], at: &Path<'_>) {
    let mut names = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = at.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            let wrong = format::port_name(name);
            if !wrong.is_empty() {
                found.texts(&at.child("name"), name, wrong);
            } else if !names.insert(name) {
                found.duplicate(&at.child("name"), name);
            }
        }
        match number(port, "containerPort").unwrap_or_default() {
            0 => found.required(&at.child("containerPort"), ""),
            number => found.port(&at.child("containerPort"), number),
        }
        if let Some(number) = number(port, "hostPort").filter(|number| *number != 0) {
            found.port(&at.child("hostPort"), number);
        }
        match text(port, "protocol") {
            "" => found.required(&at.child("protocol"), ""),
            protocol => found.one_of(&at.child("protocol"), protocol, &["SCTP", "TCP", "UDP"]),
        }
    }
}

/// Members a variable can point at, and how their path may begin.
const FIELDS: [&str; 12] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.labels",
    "metadata.annotations",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "spec.restartPolicy",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

fn env(found: &mut Found, variables: &[Value], at: &Path<'_>) {
    for (index, variable) in variables.iter().enumerate() {
        let at = at.index(index);
        match text(variable, "name") {
            "" => found.required(&at.child("name"), ""),
            name => found.texts(&at.child("name"), name, format::env_name(name)),
        }
        if let Some(source) = member(variable, "valueFrom") {
            let has_value = !text(variable, "value").is_empty();
            env_source(found, source, &at.child("valueFrom"), has_value);
        }
    }
}

fn env_source(found: &mut Found, source: &Value, at: &Path<'_>, has_value: bool) {
    let mut sources = 0;
    if let Some(field) = member(source, "fieldRef") {
        sources += 1;
        let at = at.child("fieldRef");
        let path = text(field, "fieldPath");
        let known = FIELDS.contains(&path)
            || path.starts_with("metadata.labels[")
            || path.starts_with("metadata.annotations[");
        if path.is_empty() {
            found.required(&at.child("fieldPath"), "");
        } else if !known {
            let why = format!("error converting fieldPath: field label not supported: {path}");
            found.invalid(&at.child("fieldPath"), path, why);
        }
    }
    if let Some(resource) = member(source, "resourceFieldRef") {
        sources += 1;
        let at = at.child("resourceFieldRef");
        let name = text(resource, "resource");
        let huge = name.starts_with("limits.hugepages-") || name.starts_with("requests.hugepages-");
        if name.is_empty() {
            found.required(&at.child("resource"), "");
        } else if !huge {
            found.one_of(&at.child("resource"), name, &RESOURCES);
        }
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        let Some(reference) = member(source, kind) else { continue };
        sources += 1;
        let at = at.child(kind);
        let name = text(reference, "name");
        found.texts(&at.child("name"), name, format::dns_subdomain(name));
        match text(reference, "key") {
            "" => found.required(&at.child("key"), ""),
            key => found.texts(&at.child("key"), key, format::config_key(key)),
        }
    }
    sources += usize::from(member(source, "fileKeyRef").is_some());
    if sources == 0 {
        let why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        found.invalid(at, "", why);
    } else if has_value {
        found.invalid(at, "", "may not be specified when `value` is not empty");
    } else if sources > 1 {
        found.invalid(at, "", "may not have more than one field specified at a time");
    }
}

fn env_from(found: &mut Found, sources: &[Value], at: &Path<'_>) {
    for (index, source) in sources.iter().enumerate() {
        let own = at.index(index);
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            found.texts(&own.child("prefix"), prefix, format::env_name(prefix));
        }
        let mut count = 0;
        for kind in ["configMapRef", "secretRef"] {
            let Some(reference) = member(source, kind) else { continue };
            count += 1;
            let own = own.child(kind);
            match text(reference, "name") {
                "" => found.required(&own.child("name"), ""),
                name => found.texts(&own.child("name"), name, format::dns_subdomain(name)),
            }
        }
        if count == 0 {
            found.invalid(at, "", "must specify one of: `configMapRef` or `secretRef`");
        } else if count > 1 {
            found.invalid(at, "", "may not have more than one field specified at a time");
        }
    }
}

fn mounts(found: &mut Found, mounts: &[Value], at: &Path<'_>, volumes: &HashSet<&str>) {
    let mut paths = HashSet::new();
    for (index, mount) in mounts.iter().enumerate() {
        let own = at.index(index);
        let (name, path) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            found.required(&own.child("name"), "");
        }
        if !volumes.contains(name) {
            found.not_found(&own.child("name"), name);
        }
        if path.is_empty() {
            found.required(&own.child("mountPath"), "");
        }
        if !paths.insert(path) {
            found.invalid(&own.child("mountPath"), path, "must be unique");
        }
        let sub = text(mount, "subPath");
        if !sub.is_empty() {
            descending(found, sub, &at.child("subPath"));
        }
        if let Some(mode) = member(mount, "mountPropagation").and_then(Value::as_str) {
            found.one_of(&at.child("mountPropagation"), mode, &["Bidirectional", "HostToContainer", "None"]);
        }
    }
}

/// A path that stays below where it starts.
pub fn descending(found: &mut Found, path: &str, at: &Path<'_>) {
    if path.starts_with('/') {
        found.invalid(at, path, "must be a relative path");
    }
    no_backsteps(found, path, at);
}

pub fn no_backsteps(found: &mut Found, path: &str, at: &Path<'_>) {
    if path.split('/').any(|step| step == "..") {
        found.invalid(at, path, "must not contain '..'");
    }
}

fn security(found: &mut Found, context: &Value, at: &Path<'_>) {
    for key in ["runAsUser", "runAsGroup"] {
        id(found, context, key, at);
    }
    let escalation = context.get("allowPrivilegeEscalation").and_then(Value::as_bool);
    if escalation == Some(false) && flag(context, "privileged") {
        let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        found.invalid(at, context.clone(), why);
    }
}
