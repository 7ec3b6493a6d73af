//! The smaller groups.

use aro_kube_apimachinery::meta::Object;
use serde_json::{Value, json};

use crate::defaults::{below, child, default_if_absent, default_if_empty, is_empty, text};

const RBAC: &str = "rbac.authorization.k8s.io";

pub fn autoscaler_v1(spec: &mut Object) {
    default_if_absent(spec, "minReplicas", 1);
    default_if_absent(spec, "targetCPUUtilizationPercentage", 80);
}

pub fn autoscaler_v2(spec: &mut Object) {
    default_if_absent(spec, "minReplicas", 1);
    let cpu = json!([{"type": "Resource", "resource":
        {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]);
    default_if_empty(spec, "metrics", cpu);
    let Some(behavior) = child(spec, "behavior") else { return };
    if let Some(up) = below(behavior, "scaleUp") {
        default_if_absent(up, "stabilizationWindowSeconds", 0);
        default_if_absent(up, "selectPolicy", "Max");
        let policies = json!([{"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15}]);
        default_if_absent(up, "policies", policies);
    }
    if let Some(down) = below(behavior, "scaleDown") {
        default_if_absent(down, "selectPolicy", "Max");
        default_if_absent(down, "policies", json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]));
    }
}

pub fn network_policy(spec: &mut Object) {
    let egress = !is_empty(spec, "egress");
    let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    default_if_empty(spec, "policyTypes", types);
}

pub fn ingress_class_parameters(parameters: &mut Object) {
    default_if_absent(parameters, "scope", "Cluster");
}

pub fn role_ref(role: &mut Object) {
    default_if_empty(role, "apiGroup", RBAC);
}

pub fn subject(subject: &mut Object) {
    if matches!(text(subject, "kind"), "User" | "Group") {
        default_if_empty(subject, "apiGroup", RBAC);
    }
}

pub fn storage_class(class: &mut Object) {
    default_if_absent(class, "reclaimPolicy", "Delete");
    default_if_absent(class, "volumeBindingMode", "Immediate");
}

pub fn csi_driver(spec: &mut Object) {
    default_if_absent(spec, "attachRequired", true);
    default_if_absent(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    default_if_empty(spec, "volumeLifecycleModes", json!(["Persistent"]));
    for flag in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        default_if_absent(spec, flag, false);
    }
}

pub fn priority_class(class: &mut Object) {
    default_if_absent(class, "preemptionPolicy", "PreemptLowerPriority");
}

pub fn slice_port(port: &mut Object) {
    default_if_absent(port, "name", "");
    default_if_absent(port, "protocol", "TCP");
}

pub fn validating_webhook(webhook: &mut Object) {
    default_if_absent(webhook, "failurePolicy", "Fail");
    match_resources(webhook);
    default_if_absent(webhook, "timeoutSeconds", 10);
}

pub fn mutating_webhook(webhook: &mut Object) {
    validating_webhook(webhook);
    default_if_absent(webhook, "reinvocationPolicy", "Never");
}

pub fn match_resources(webhook: &mut Object) {
    default_if_absent(webhook, "matchPolicy", "Equivalent");
    default_if_absent(webhook, "namespaceSelector", Object::new());
    default_if_absent(webhook, "objectSelector", Object::new());
}

pub fn rule(rule: &mut Object) {
    default_if_absent(rule, "scope", "*");
}

pub fn service_reference(service: &mut Object) {
    default_if_absent(service, "port", 443);
}

pub fn admission_policy(spec: &mut Object) {
    default_if_absent(spec, "failurePolicy", "Fail");
}

pub fn custom_resource_definition(definition: &mut Object) {
    let Some(spec) = below(definition, "spec") else { return };
    let storage = spec.get("versions").and_then(Value::as_array).and_then(|versions| {
        versions
            .iter()
            .find(|version| version["storage"] == true)
            .and_then(|version| version.get("name").cloned())
    });
    if let Some(names) = below(spec, "names") {
        let kind = text(names, "kind").to_owned();
        default_if_empty(names, "singular", kind.to_lowercase());
        if !kind.is_empty() {
            default_if_empty(names, "listKind", format!("{kind}List"));
        }
    }
    default_if_absent(spec, "conversion", json!({"strategy": "None"}));
    if let Some(storage) = storage
        && let Some(status) = below(definition, "status")
    {
        default_if_empty(status, "storedVersions", json!([storage]));
    }
}

pub fn flow_schema(spec: &mut Object) {
    default_if_empty(spec, "matchingPrecedence", 1000);
}

pub fn exempt_level(level: &mut Object) {
    default_if_absent(level, "nominalConcurrencyShares", 0);
    default_if_absent(level, "lendablePercent", 0);
}

pub fn limited_level(level: &mut Object) {
    default_if_absent(level, "nominalConcurrencyShares", 30);
    default_if_absent(level, "lendablePercent", 0);
}

pub fn queuing(config: &mut Object) {
    for (key, value) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
        default_if_empty(config, key, value);
    }
}

pub fn device_request(request: &mut Object) {
    default_if_empty(request, "allocationMode", "ExactCount");
    if text(request, "allocationMode") == "ExactCount" {
        default_if_empty(request, "count", 1);
    }
}
