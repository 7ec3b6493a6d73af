//! Pods: the first status, and the subresources that change one part of the spec.

use aro_kube_apimachinery::meta::Object;
use serde_json::{Value, json};

use super::{member, put_back};
use crate::quantity::Quantity;

/// Pending, with the class of service that follows from the resources.
pub fn initial_status(pod: &Object) -> Value {
    let mut status = json!({"phase": "Pending", "qosClass": qos_class(pod)});
    let gates = member(pod, "spec").and_then(|spec| spec.get("schedulingGates")).and_then(Value::as_array);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": null,
        }]);
    }
    status
}

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub fn qos_class(pod: &Object) -> &'static str {
    let Some(spec) = member(pod, "spec") else { return "BestEffort" };
    let list = |key: &str| spec.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut holders: Vec<&Value> = list("containers").iter().chain(list("initContainers")).collect();
    // Resources of the whole Pod, when it has some, are all that count.
    let whole = Value::Object(spec.clone());
    let has_own = ["requests", "limits"]
        .iter()
        .any(|kind| amount(&whole, kind, "cpu").is_some() || amount(&whole, kind, "memory").is_some());
    if has_own {
        holders = vec![&whole];
    }
    let (mut any, mut guaranteed) = (false, true);
    for holder in holders {
        for name in ["cpu", "memory"] {
            let (request, limit) = (amount(holder, "requests", name), amount(holder, "limits", name));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && request.or(limit) == limit;
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// In 10⁻⁹; zero counts as absent.
fn amount(holder: &Value, kind: &str, name: &str) -> Option<i128> {
    let text = holder.get("resources")?.get(kind)?.get(name)?.as_str()?;
    Quantity::parse(text).map(|quantity| quantity.nano()).filter(|nano| *nano > 0)
}

/// Everything but the ephemeral containers is as it was.
pub fn only_ephemeral_containers(new: &mut Object, old: &Object) {
    let list = member(new, "spec").and_then(|spec| spec.get("ephemeralContainers")).cloned();
    put_back(new, old, "spec");
    put_back(new, old, "status");
    keep_metadata(new, old);
    if let (Some(list), Some(Value::Object(spec))) = (list, new.get_mut("spec")) {
        spec.insert("ephemeralContainers".to_owned(), list);
    }
}

/// Everything but the containers' resources and resize policies is as it was.
pub fn only_resources(new: &mut Object, old: &Object) {
    let Some(asked) = member(new, "spec").cloned() else { return };
    put_back(new, old, "spec");
    put_back(new, old, "status");
    keep_metadata(new, old);
    let Some(Value::Object(spec)) = new.get_mut("spec") else { return };
    for list in ["containers", "initContainers"] {
        let asked = asked.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let Some(Value::Array(own)) = spec.get_mut(list) else { continue };
        for container in own.iter_mut().filter_map(Value::as_object_mut) {
            let Some(same) = asked.iter().find(|of| of.get("name") == container.get("name")) else {
                continue;
            };
            for key in ["resources", "resizePolicy"] {
                match same.get(key) {
                    Some(value) => container.insert(key.to_owned(), value.clone()),
                    None => container.remove(key),
                };
            }
        }
    }
    if let Some(resources) = asked.get("resources") {
        spec.insert("resources".to_owned(), resources.clone());
    }
}

fn keep_metadata(new: &mut Object, old: &Object) {
    let version = member(new, "metadata").and_then(|of| of.get("resourceVersion")).cloned();
    let managed = member(new, "metadata").and_then(|of| of.get("managedFields")).cloned();
    put_back(new, old, "metadata");
    let Some(Value::Object(metadata)) = new.get_mut("metadata") else { return };
    for (key, value) in [("resourceVersion", version), ("managedFields", managed)] {
        if let Some(value) = value {
            metadata.insert(key.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_service_follows_from_the_resources() {
        let class = |resources: Value| {
            let pod = json!({"spec": {"containers": [{"resources": resources}]}});
            qos_class(pod.as_object().unwrap())
        };
        assert_eq!(class(json!({})), "BestEffort");
        assert_eq!(class(json!({"requests": {"cpu": "1"}})), "Burstable");
        let both = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(class(json!({"requests": both, "limits": both})), "Guaranteed");
        assert_eq!(class(json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}})), "Burstable");
        assert_eq!(class(json!({"limits": {"foo.com/gpu": "1"}})), "BestEffort");
    }
}
