//! Versions of one resource: what is stored, and how another version shows it.
//!
//! Custom resources only change their `apiVersion`. Of the built-in ones, two have versions that differ: events, which
//! two groups show with different names for the same things, and autoscalers.

use serde_json::{Value, json};

use crate::types::Served;

/// Names of an event's members: in the core group (stored), in `events.k8s.io`.
const EVENT: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

fn rename(object: &mut Value, from: &str, to: &str) {
    if let Some(members) = object.as_object_mut()
        && let Some(value) = members.remove(from)
    {
        members.insert(to.to_owned(), value);
    }
}

/// Makes a stored object be of the version that is served.
pub fn from_stored(served: &Served, object: &mut Value) {
    if !served.converts() {
        return;
    }
    object["apiVersion"] = json!(served.resource.api_version());
    if served.custom.is_some() {
        return;
    }
    match served.resource.plural.as_str() {
        "events" => {
            for (stored, shown) in EVENT {
                rename(object, stored, shown);
            }
            // Shown when empty in the other group only.
            if let Some(members) = object.as_object_mut() {
                let kept = |name: &str, value: &Value| {
                    !matches!(name, "reportingController" | "reportingInstance") || value.as_str() != Some("")
                };
                members.retain(|name, value| kept(name, value));
            }
        }
        "horizontalpodautoscalers" => autoscaler::to_v1(object),
        _ => {}
    }
}

/// Makes an object of the version that is served be of the one that is stored.
pub fn to_stored(served: &Served, object: &mut Value) {
    if !served.converts() {
        return;
    }
    object["apiVersion"] = json!(served.stored_as);
    if served.custom.is_some() {
        return;
    }
    match served.resource.plural.as_str() {
        "events" => {
            for (stored, shown) in EVENT {
                rename(object, shown, stored);
            }
        }
        "horizontalpodautoscalers" => autoscaler::to_v2(object),
        _ => {}
    }
}

/// `autoscaling/v1` knows one metric, the average use of CPU, and keeps the others in an annotation.
mod autoscaler {
    use aro_kube_apimachinery::meta;
    use serde_json::{Value, json};

    const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

    fn is_cpu_utilization(metric: &Value) -> bool {
        let text = |path: &[&str]| meta::get(metric, path).and_then(Value::as_str);
        text(&["type"]) == Some("Resource")
            && text(&["resource", "name"]) == Some("cpu")
            && text(&["resource", "target", "type"]) == Some("Utilization")
    }

    pub fn to_v1(object: &mut Value) {
        let metrics = meta::remove(object, &["spec", "metrics"]);
        let mut others = Vec::new();
        for metric in metrics.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let percentage = meta::get(metric, &["resource", "target", "averageUtilization"]);
            match percentage {
                Some(percentage) if is_cpu_utilization(metric) => {
                    meta::set(object, &["spec", "targetCPUUtilizationPercentage"], percentage.clone());
                }
                _ => others.push(metric.clone()),
            }
        }
        if !others.is_empty() {
            meta::set(object, &["metadata", "annotations", METRICS], json!(Value::Array(others).to_string()));
        }
        if let Some(current) = meta::remove(object, &["status", "currentMetrics"]) {
            let cpu = current.as_array().into_iter().flatten().find_map(|metric| {
                meta::get(metric, &["resource", "current", "averageUtilization"]).cloned()
            });
            if let Some(cpu) = cpu {
                meta::set(object, &["status", "currentCPUUtilizationPercentage"], cpu);
            }
        }
        meta::remove(object, &["status", "conditions"]);
        meta::remove(object, &["spec", "behavior"]);
        // Always shown in this version.
        for name in ["currentReplicas", "desiredReplicas"] {
            if meta::get(object, &["status", name]).is_none() {
                meta::set(object, &["status", name], json!(0));
            }
        }
    }

    pub fn to_v2(object: &mut Value) {
        let mut metrics = Vec::new();
        if let Some(percentage) = meta::remove(object, &["spec", "targetCPUUtilizationPercentage"]) {
            metrics.push(json!({"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": percentage}}}));
        }
        if let Some(kept) = meta::remove(object, &["metadata", "annotations", METRICS]) {
            let kept = kept.as_str().and_then(|text| serde_json::from_str::<Vec<Value>>(text).ok());
            metrics.extend(kept.unwrap_or_default());
        }
        if !metrics.is_empty() {
            meta::set(object, &["spec", "metrics"], Value::Array(metrics));
        }
        meta::remove(object, &["status", "currentCPUUtilizationPercentage"]);
    }
}
