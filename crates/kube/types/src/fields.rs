//! Field selectors: which fields of a built-in resource can be asked for, and their values.

use std::borrow::Cow;

use aro_kube_apimachinery::{ResourceType, meta};
use serde_json::Value;

const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

const PODS: &[&str] = &[
    NAME,
    NAMESPACE,
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];
const EVENTS: &[&str] = &[
    NAME,
    NAMESPACE,
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];
const NEW_EVENTS: &[&str] = &[
    NAME,
    NAMESPACE,
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];

/// The fields a resource can be selected by. All have `metadata.name`, namespaced ones `metadata.namespace` too (and
/// upstream takes it, matching nothing but the empty text, for others).
pub fn field_selectors(resource: &ResourceType) -> &'static [&'static str] {
    if resource.custom {
        return &[NAME, NAMESPACE];
    }
    match (&*resource.gvk.group, &*resource.gvk.kind) {
        ("", "Pod") => PODS,
        ("", "Event") => EVENTS,
        ("events.k8s.io", "Event") => NEW_EVENTS,
        ("", "Node") => &[NAME, "spec.unschedulable"],
        ("", "Namespace") => &[NAME, "status.phase"],
        ("", "Secret") => &[NAME, NAMESPACE, "type"],
        ("", "Service") => &[NAME, NAMESPACE, "spec.clusterIP", "spec.type"],
        ("", "ReplicationController") => &[NAME, NAMESPACE, "status.replicas"],
        ("batch", "Job") => &[NAME, NAMESPACE, "status.successful"],
        ("certificates.k8s.io", "CertificateSigningRequest") => &[NAME, "spec.signerName"],
        ("resource.k8s.io", "ResourceSlice") => &[NAME, "spec.nodeName", "spec.driver"],
        _ => &[NAME, NAMESPACE],
    }
}

/// The value of a selectable field, empty when the object has none. `None`: the resource is not selectable by it.
pub fn field_value<'a>(resource: &ResourceType, object: &'a Value, field: &str) -> Option<Cow<'a, str>> {
    if !field_selectors(resource).contains(&field) {
        return None;
    }
    let text = |path: &[&str]| meta::get(object, path).and_then(Value::as_str).unwrap_or_default();
    Some(match field {
        NAME => Cow::Borrowed(meta::name(object)),
        NAMESPACE => Cow::Borrowed(meta::namespace(object)),
        "status.podIP" => {
            let first = object.pointer("/status/podIPs/0/ip").and_then(Value::as_str);
            Cow::Borrowed(first.unwrap_or_else(|| text(&["status", "podIP"])))
        }
        "source" => {
            let component = text(&["source", "component"]);
            Cow::Borrowed(if component.is_empty() { text(&["reportingComponent"]) } else { component })
        }
        "spec.hostNetwork" | "spec.unschedulable" => {
            let path: Vec<&str> = field.split('.').collect();
            let flag = meta::get(object, &path).and_then(Value::as_bool).unwrap_or_default();
            Cow::Borrowed(if flag { "true" } else { "false" })
        }
        "status.replicas" | "status.successful" => {
            let key = if field == "status.replicas" { "replicas" } else { "succeeded" };
            let count = meta::get(object, &["status", key]).and_then(Value::as_i64).unwrap_or_default();
            Cow::Owned(count.to_string())
        }
        _ => {
            let path: Vec<&str> = field.split('.').collect();
            Cow::Borrowed(text(&path))
        }
    })
}

/// What to answer (400) when a resource is not selectable by a field.
pub fn unknown_field(resource: &ResourceType, field: &str) -> String {
    // Kinds with fields of their own speak for themselves; the rest shares one text.
    if field_selectors(resource) == [NAME, NAMESPACE] && !resource.custom {
        format!("{field:?} is not a known field selector: only {NAME:?}, {NAMESPACE:?}")
    } else {
        format!("field label not supported: {field}")
    }
}

#[cfg(test)]
mod tests {
    use aro_kube_apimachinery::GroupVersionKind;
    use serde_json::json;

    use super::*;
    use crate::registry::builtin;

    fn value(group: &str, kind: &str, object: &Value, field: &str) -> Option<String> {
        let resource = builtin().by_gvk(&GroupVersionKind::new(group, "v1", kind)).unwrap();
        field_value(resource, object, field).map(Cow::into_owned)
    }

    #[test]
    fn fields_have_values_and_absent_ones_are_empty() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "status": {"podIPs": [{"ip": "1.1.1.1"}]}});
        assert_eq!(value("", "Pod", &pod, "spec.nodeName").as_deref(), Some("n"));
        assert_eq!(value("", "Pod", &pod, "status.podIP").as_deref(), Some("1.1.1.1"));
        assert_eq!(value("", "Pod", &pod, "spec.hostNetwork").as_deref(), Some("false"));
        assert_eq!(value("", "Pod", &pod, "status.phase").as_deref(), Some(""));
        assert_eq!(value("", "Pod", &pod, "spec.priority"), None);
        assert_eq!(
            value("batch", "Job", &json!({"status": {"succeeded": 2}}), "status.successful").as_deref(),
            Some("2")
        );
    }

    #[test]
    fn every_resource_can_be_selected_by_name() {
        for resource in builtin().resources() {
            assert!(field_selectors(resource).contains(&NAME), "{}", resource.gvk);
        }
    }
}
