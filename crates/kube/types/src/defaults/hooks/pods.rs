//! Pods and what they are made of.

use aro_kube_apimachinery::meta::Object;
use serde_json::Value;

use crate::defaults::{child, children, default_if_absent, default_if_empty, is_absent, is_empty, text};

pub fn pod(pod: &mut Object) {
    let Some(spec) = child(pod, "spec") else { return };
    let host_network = spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or_default();
    for list in ["containers", "initContainers"] {
        for container in children(spec, list) {
            if let Some(resources) = child(container, "resources") {
                requests_from_limits(resources);
            }
            if host_network {
                children(container, "ports").for_each(host_port);
            }
        }
    }
    if let Some(resources) = child(spec, "resources") {
        requests_from_limits(resources);
    }
    default_if_absent(spec, "enableServiceLinks", true);
}

/// Only a Pod's own containers do this: a template shows what was written.
fn requests_from_limits(resources: &mut Object) {
    let Some(Value::Object(limits)) = resources.get("limits") else { return };
    let limits = limits.clone();
    if is_absent(resources, "requests") {
        resources.insert("requests".to_owned(), Value::Object(limits));
    } else if let Some(requests) = child(resources, "requests") {
        for (name, amount) in limits {
            requests.entry(name).or_insert(amount);
        }
    }
}

fn host_port(port: &mut Object) {
    if let Some(number) = port.get("containerPort").cloned() {
        default_if_empty(port, "hostPort", number);
    }
}

pub fn pod_spec(spec: &mut Object) {
    default_if_empty(spec, "dnsPolicy", "ClusterFirst");
    default_if_empty(spec, "restartPolicy", "Always");
    default_if_absent(spec, "securityContext", Object::new());
    default_if_absent(spec, "terminationGracePeriodSeconds", 30);
    default_if_empty(spec, "schedulerName", "default-scheduler");
    // The older name of the same thing, kept in step for older clients.
    let account = text(spec, "serviceAccountName").to_owned();
    if account.is_empty() {
        let older = text(spec, "serviceAccount").to_owned();
        if !older.is_empty() {
            spec.insert("serviceAccountName".to_owned(), older.into());
        }
    } else {
        spec.insert("serviceAccount".to_owned(), account.into());
    }
}

pub fn container(container: &mut Object) {
    if is_empty(container, "imagePullPolicy") {
        let policy = pull_policy(text(container, "image"));
        container.insert("imagePullPolicy".to_owned(), policy.into());
    }
    default_if_empty(container, "terminationMessagePath", "/dev/termination-log");
    default_if_empty(container, "terminationMessagePolicy", "File");
}

/// The latest image may change under its name, so it is always pulled.
fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image.split_once('@').map_or((image, false), |(name, _)| (name, true));
    let last = name.rsplit('/').next().unwrap_or_default();
    let latest = match last.rsplit_once(':') {
        Some((_, tag)) => tag == "latest",
        None => !digest && !image.is_empty(),
    };
    if latest { "Always" } else { "IfNotPresent" }
}

pub fn probe(probe: &mut Object) {
    let numbers =
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)];
    for (key, value) in numbers {
        default_if_empty(probe, key, value);
    }
}

pub fn http_get(action: &mut Object) {
    default_if_empty(action, "path", "/");
    default_if_empty(action, "scheme", "HTTP");
}

pub fn volume(volume: &mut Object) {
    let has_source = volume.iter().any(|(key, value)| key != "name" && !value.is_null());
    if !has_source {
        volume.insert("emptyDir".to_owned(), Value::Object(Object::new()));
    }
    if let Some(image) = child(volume, "image")
        && is_empty(image, "pullPolicy")
    {
        let policy = pull_policy(text(image, "reference"));
        image.insert("pullPolicy".to_owned(), policy.into());
    }
}

pub fn host_path(source: &mut Object) {
    default_if_absent(source, "type", "");
}

pub fn default_mode(source: &mut Object) {
    default_if_absent(source, "defaultMode", 0o644);
}

pub fn token_projection(source: &mut Object) {
    default_if_absent(source, "expirationSeconds", 3600);
}

pub fn field_selector(selector: &mut Object) {
    default_if_empty(selector, "apiVersion", "v1");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pull_policy_follows_the_tag() {
        for (image, policy) in [
            ("busybox", "Always"),
            ("busybox:latest", "Always"),
            ("busybox:1", "IfNotPresent"),
            ("host:5000/busybox", "Always"),
            ("host:5000/a/busybox:1", "IfNotPresent"),
            ("busybox@sha256:00", "IfNotPresent"),
            ("busybox:latest@sha256:00", "Always"),
            ("", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
