//! The core group, but for Pods.

use aro_kube_apimachinery::meta::Object;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::defaults::{
    below, child, children, default_if_absent, default_if_empty, is_absent, is_empty, text,
};

pub fn service(service: &mut Object) {
    let Some(spec) = below(service, "spec") else { return };
    default_if_empty(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => drop(spec.remove("sessionAffinityConfig")),
        "ClientIP" => {
            let config = spec.get("sessionAffinityConfig");
            let timeout = config.and_then(|config| config.pointer("/clientIP/timeoutSeconds"));
            if timeout.is_none_or(Value::is_null) {
                spec.insert(
                    "sessionAffinityConfig".to_owned(),
                    json!({"clientIP": {"timeoutSeconds": 10_800}}),
                );
            }
        }
        _ => {}
    }
    default_if_empty(spec, "type", "ClusterIP");
    children(spec, "ports").for_each(service_port);
    let kind = text(spec, "type").to_owned();
    let has_external_ips = !is_empty(spec, "externalIPs");
    let outside = matches!(&*kind, "NodePort" | "LoadBalancer") || (kind == "ClusterIP" && has_external_ips);
    if outside {
        default_if_empty(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(&*kind, "NodePort" | "LoadBalancer" | "ClusterIP") {
        default_if_absent(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        default_if_absent(spec, "allocateLoadBalancerNodePorts", true);
        let balancer = child(service, "status").and_then(|status| child(status, "loadBalancer"));
        for ingress in balancer.into_iter().flat_map(|balancer| children(balancer, "ingress")) {
            if !is_empty(ingress, "ip") {
                default_if_absent(ingress, "ipMode", "VIP");
            }
        }
    }
}

fn service_port(port: &mut Object) {
    default_if_empty(port, "protocol", "TCP");
    if let Some(number) = port.get("port").cloned() {
        default_if_empty(port, "targetPort", number);
    }
}

pub fn replication_controller(controller: &mut Object) {
    let labels = controller.get("spec").and_then(|spec| spec.pointer("/template/metadata/labels")).cloned();
    let Some(labels) = labels.filter(Value::is_object) else { return };
    if let Some(spec) = child(controller, "spec") {
        default_if_empty(spec, "selector", labels.clone());
    }
    if let Some(metadata) = below(controller, "metadata") {
        default_if_empty(metadata, "labels", labels);
    }
}

pub fn secret(secret: &mut Object) {
    default_if_empty(secret, "type", "Opaque");
    // Only ever written: it ends up among the encoded data.
    let Some(Value::Object(plain)) = secret.remove("stringData") else { return };
    let Some(data) = below(secret, "data") else { return };
    for (key, value) in plain {
        let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
        data.insert(key, encoded.into());
    }
}

pub fn namespace(namespace: &mut Object) {
    let Some(metadata) = child(namespace, "metadata") else { return };
    let name = text(metadata, "name").to_owned();
    if name.is_empty() {
        return;
    }
    if let Some(labels) = below(metadata, "labels") {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
}

pub fn namespace_status(status: &mut Object) {
    default_if_empty(status, "phase", "Active");
}

pub fn node_status(status: &mut Object) {
    if is_absent(status, "allocatable")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        status.insert("allocatable".to_owned(), capacity);
    }
}

pub fn persistent_volume(volume: &mut Object) {
    if let Some(status) = below(volume, "status") {
        default_if_empty(status, "phase", "Pending");
    }
    if let Some(spec) = below(volume, "spec") {
        default_if_empty(spec, "persistentVolumeReclaimPolicy", "Retain");
        default_if_absent(spec, "volumeMode", "Filesystem");
    }
}

pub fn claim(claim: &mut Object) {
    if let Some(status) = below(claim, "status") {
        default_if_empty(status, "phase", "Pending");
    }
}

pub fn claim_spec(spec: &mut Object) {
    default_if_absent(spec, "volumeMode", "Filesystem");
}

pub fn endpoint_port(port: &mut Object) {
    default_if_empty(port, "protocol", "TCP");
}

pub fn limit_range_item(item: &mut Object) {
    if text(item, "type") != "Container" {
        return;
    }
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let Some(Value::Object(amounts)) = item.get(from).cloned() else { continue };
        let Some(target) = below(item, to) else { continue };
        for (name, amount) in amounts {
            target.entry(name).or_insert(amount);
        }
    }
}
