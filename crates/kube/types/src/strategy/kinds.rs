//! Exceptions by kind.

use aro_kube_apimachinery::{GroupVersionKind, meta::Object};
use serde_json::{Value, json};

use super::{member, pods, put_back};

pub fn prepare_create(gvk: &GroupVersionKind, object: &mut Object) {
    match (&*gvk.group, &*gvk.kind) {
        ("", "Pod") => {
            let status = pods::initial_status(object);
            object.insert("status".to_owned(), status);
        }
        ("", "Namespace") => namespace_finalizer(object),
        ("", "ServiceAccount") => secret_names(object),
        ("", "Service") => first_cluster_ip(object),
        ("apps", "DaemonSet") => set_annotation(object, TEMPLATE_GENERATION, "1"),
        ("batch", "Job") => job_selector(object),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            if let Some(Value::Object(spec)) = object.get_mut("spec") {
                // The server knows better who is asking.
                for key in ["username", "uid", "groups", "extra"] {
                    spec.remove(key);
                }
            }
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => store_version(object),
        _ => {}
    }
}

pub fn prepare_update(gvk: &GroupVersionKind, subresource: &str, new: &mut Object, old: &Object) {
    match (&*gvk.group, &*gvk.kind, subresource) {
        ("", "Pod", "status") => keep_qos_class(new, old),
        ("", "Pod", "ephemeralcontainers") => pods::only_ephemeral_containers(new, old),
        ("", "Pod", "resize") => pods::only_resources(new, old),
        ("", "Namespace", "") => {
            let finalizers = member(old, "spec").and_then(|spec| spec.get("finalizers")).cloned();
            if let (Some(finalizers), Some(Value::Object(spec))) = (finalizers, new.get_mut("spec")) {
                spec.insert("finalizers".to_owned(), finalizers);
            }
        }
        ("", "Namespace", "finalize") => put_back(new, old, "status"),
        ("", "ServiceAccount", "") => secret_names(new),
        ("", "Service", "") => {
            keep_allocated(new, old);
            service_type_change(new, old);
        }
        ("apps", "DaemonSet", "") => {
            let template =
                |object: &Object| member(object, "spec").and_then(|spec| spec.get("template")).cloned();
            let before =
                annotation(old, TEMPLATE_GENERATION).and_then(|text| text.parse::<i64>().ok()).unwrap_or(1);
            let now = if template(new) == template(old) { before } else { before + 1 };
            set_annotation(new, TEMPLATE_GENERATION, &now.to_string());
        }
        ("certificates.k8s.io", "CertificateSigningRequest", "") => put_back(new, old, "spec"),
        ("certificates.k8s.io", "CertificateSigningRequest", "approval") => only_conditions(new, old),
        ("apiextensions.k8s.io", "CustomResourceDefinition", "") => store_version(new),
        _ => {}
    }
}

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn annotation<'a>(object: &'a Object, key: &str) -> Option<&'a str> {
    member(member(object, "metadata")?, "annotations")?.get(key)?.as_str()
}

fn set_annotation(object: &mut Object, key: &str, value: &str) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Value::Object(annotations) = annotations {
        annotations.insert(key.to_owned(), value.into());
    }
}

fn namespace_finalizer(namespace: &mut Object) {
    let spec = namespace.entry("spec").or_insert_with(|| json!({}));
    let Value::Object(spec) = spec else { return };
    let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
    let Value::Array(finalizers) = finalizers else { return };
    if !finalizers.iter().any(|name| name == "kubernetes") {
        finalizers.push("kubernetes".into());
    }
}

/// Secrets of a service account are referred to by name only.
fn secret_names(account: &mut Object) {
    let Some(Value::Array(secrets)) = account.get_mut("secrets") else { return };
    for secret in secrets.iter_mut().filter_map(Value::as_object_mut) {
        secret.retain(|key, _| key == "name");
    }
}

/// Pods of a Job are told apart by labels made from the Job's uid, unless the Job brings its own selector.
fn job_selector(job: &mut Object) {
    let text = |key: &str| {
        member(job, "metadata")
            .and_then(|of| of.get(key))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (name, uid) = (text("name"), text("uid"));
    let Some(Value::Object(spec)) = job.get_mut("spec") else { return };
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let Some(template) = object_at(spec, "template") else { return };
    let Some(metadata) = object_at(template, "metadata") else { return };
    let Some(labels) = object_at(metadata, "labels") else { return };
    for (key, value) in [
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/controller-uid", &uid),
    ] {
        labels.entry(key).or_insert_with(|| value.as_str().into());
    }
    let labels = labels.clone();
    if let Some(selector) = object_at(spec, "selector")
        && let Some(matched) = object_at(selector, "matchLabels")
    {
        matched.entry("batch.kubernetes.io/controller-uid").or_insert_with(|| uid.as_str().into());
    }
    // A Job without labels shows those of its template.
    if let Some(metadata) = object_at(job, "metadata")
        && metadata.get("labels").and_then(Value::as_object).is_none_or(Object::is_empty)
    {
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
}

fn object_at<'a>(object: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    object.entry(key).or_insert_with(|| json!({})).as_object_mut()
}

/// The storage version counts as stored from the moment it is named.
fn store_version(definition: &mut Object) {
    let versions = member(definition, "spec").and_then(|spec| spec.get("versions")).and_then(Value::as_array);
    let storage = versions.into_iter().flatten().find(|version| version["storage"] == true);
    let Some(name) = storage.and_then(|version| version.get("name")).cloned() else { return };
    let Some(status) = object_at(definition, "status") else { return };
    match status.get_mut("storedVersions") {
        Some(Value::Array(stored)) if stored.contains(&name) => {}
        Some(Value::Array(stored)) => stored.push(name),
        _ => {
            status.insert("storedVersions".to_owned(), Value::Array(vec![name]));
        }
    }
}

fn keep_qos_class(new: &mut Object, old: &Object) {
    let before = member(old, "status").and_then(|status| status.get("qosClass")).cloned();
    if let (Some(before), Some(Value::Object(status))) = (before, new.get_mut("status")) {
        status.entry("qosClass").or_insert(before);
    }
}

fn only_conditions(new: &mut Object, old: &Object) {
    let conditions = member(new, "status").and_then(|status| status.get("conditions")).cloned();
    put_back(new, old, "spec");
    put_back(new, old, "status");
    let Some(status) = object_at(new, "status") else { return };
    match conditions {
        Some(conditions) => status.insert("conditions".to_owned(), conditions),
        None => status.remove("conditions"),
    };
}

/// The older name of the first address. Clients know one of the two.
fn first_cluster_ip(service: &mut Object) {
    let Some(Value::Object(spec)) = service.get_mut("spec") else { return };
    let ip = spec.get("clusterIP").filter(|ip| *ip != "").cloned();
    match (ip, spec.get("clusterIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty())) {
        (Some(ip), false) => {
            spec.insert("clusterIPs".to_owned(), Value::Array(vec![ip]));
        }
        (None, true) => {
            let first = spec["clusterIPs"].get(0).cloned().unwrap_or_default();
            spec.insert("clusterIP".to_owned(), first);
        }
        _ => {}
    }
}

/// What was allocated stays when a client sends an object without it; a new address is one for both names.
fn keep_allocated(new: &mut Object, old: &Object) {
    let (Some(Value::Object(spec)), Some(before)) = (new.get_mut("spec"), member(old, "spec")) else {
        return;
    };
    let text =
        |spec: &Object, key: &str| spec.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (now, was) = (text(spec, "clusterIP"), text(before, "clusterIP"));
    let uses_ip = |spec: &Object| text(spec, "type") != "ExternalName";
    if uses_ip(spec) && uses_ip(before) {
        if now.is_empty() && spec.get("clusterIPs").is_none_or(|ips| Some(ips) == before.get("clusterIPs")) {
            put_back(spec, before, "clusterIP");
            put_back(spec, before, "clusterIPs");
        } else if now != was && spec.get("clusterIPs") == before.get("clusterIPs") {
            spec.insert("clusterIPs".to_owned(), Value::Array(vec![now.into()]));
        }
        for key in ["ipFamilies", "ipFamilyPolicy"] {
            if !spec.contains_key(key) {
                put_back(spec, before, key);
            }
        }
    }
    let uses_ports = |spec: &Object| matches!(&*text(spec, "type"), "NodePort" | "LoadBalancer");
    if !uses_ports(spec) || !uses_ports(before) {
        return;
    }
    let known = before.get("ports").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let Some(Value::Array(ports)) = spec.get_mut("ports") else { return };
    for port in
        ports.iter_mut().filter_map(Value::as_object_mut).filter(|port| !port.contains_key("nodePort"))
    {
        let same =
            |of: &&Value| of.get("port") == port.get("port") && of.get("protocol") == port.get("protocol");
        if let Some(number) = known.iter().find(same).and_then(|of| of.get("nodePort")) {
            port.insert("nodePort".to_owned(), number.clone());
        }
    }
}

/// Drops what a Service of another type had, as long as the client did not touch it.
fn service_type_change(new: &mut Object, old: &Object) {
    let (Some(Value::Object(spec)), Some(before)) = (new.get_mut("spec"), member(old, "spec")) else {
        return;
    };
    let kind = |spec: &Object| spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (now, was) = (kind(spec), kind(before));
    let drop_if_same = |spec: &mut Object, keys: &[&str]| {
        for key in keys {
            if spec.get(*key) == before.get(*key) {
                spec.remove(*key);
            }
        }
    };
    if was != "ExternalName" && now == "ExternalName" {
        drop_if_same(spec, &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]);
    }
    let node_ports = |kind: &str| matches!(kind, "NodePort" | "LoadBalancer");
    if node_ports(&was) && !node_ports(&now) {
        drop_if_same(spec, &["externalTrafficPolicy"]);
        let number = |port: &Value| port.get("nodePort").cloned();
        let ports = before.get("ports").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if let Some(Value::Array(own)) = spec.get_mut("ports") {
            let same = own.iter().map(number).eq(ports.iter().map(number));
            for port in own.iter_mut().filter_map(Value::as_object_mut).filter(|_| same) {
                port.remove("nodePort");
            }
        }
    }
    if was == "LoadBalancer" && now != "LoadBalancer" {
        drop_if_same(spec, &["allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"]);
    }
    if now != "LoadBalancer"
        && let Some(Value::Object(status)) = new.get_mut("status")
    {
        status.insert("loadBalancer".to_owned(), json!({}));
    }
}
