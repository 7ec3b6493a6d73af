//! A node's own object: it says what it is, but not what may run on it. Pure.

use std::collections::BTreeSet;

use aro_kube_apimachinery::meta;
use serde_json::{Value, json};

/// Why a node may not write this; `old` is what it was.
pub(super) fn check(node: &str, name: &str, new: &Value, old: Option<&Value>) -> Result<(), String> {
    if name != node {
        return Err(format!("node {node:?} is not allowed to modify node {name:?}"));
    }
    let part = |object: Option<&Value>, path: &[&str]| {
        object
            .and_then(|object| meta::get(object, path))
            .filter(|value| !value.is_null() && **value != json!([]))
            .cloned()
    };
    let source = part(Some(new), &["spec", "configSource"]);
    let forbidden = forbidden_labels(new, old);
    if old.is_none() {
        if source.is_some() {
            return Err(format!("node {node:?} is not allowed to create pods with a non-nil configSource"));
        }
        if !forbidden.is_empty() {
            return Err(format!(
                "node {node:?} is not allowed to set the following labels: {}",
                forbidden.join(", ")
            ));
        }
        return Ok(());
    }
    if source.is_some() && source != part(old, &["spec", "configSource"]) {
        return Err(format!(
            "node {node:?} is not allowed to update configSource to a new non-nil configSource"
        ));
    }
    if part(Some(new), &["spec", "taints"]) != part(old, &["spec", "taints"]) {
        return Err(format!("node {node:?} is not allowed to modify taints"));
    }
    if part(Some(new), &["metadata", "ownerReferences"]) != part(old, &["metadata", "ownerReferences"]) {
        return Err(format!("node {node:?} is not allowed to modify ownerReferences"));
    }
    if !forbidden.is_empty() {
        return Err(format!("is not allowed to modify labels: {}", forbidden.join(", ")));
    }
    Ok(())
}

/// Labels of Kubernetes that nodes may set on themselves.
const OWN_LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];

fn is_forbidden(label: &str) -> bool {
    let namespace = label.split_once('/').map_or("", |(namespace, _)| namespace);
    let within = |domain: &str| {
        namespace == domain || namespace.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
    };
    let own = OWN_LABELS.contains(&label) || within("kubelet.kubernetes.io") || within("node.kubernetes.io");
    within("node-restriction.kubernetes.io") || ((within("kubernetes.io") || within("k8s.io")) && !own)
}

/// Labels that differ and are not the node's to change, in order.
fn forbidden_labels(new: &Value, old: Option<&Value>) -> Vec<String> {
    let new = meta::labels(new);
    let old = old.and_then(meta::labels);
    let names: BTreeSet<&String> = new.into_iter().chain(old).flat_map(|labels| labels.keys()).collect();
    let changed = |name: &&&String| {
        new.and_then(|labels| labels.get(name.as_str())) != old.and_then(|labels| labels.get(name.as_str()))
    };
    names.iter().filter(changed).filter(|name| is_forbidden(name)).map(|name| (*name).clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_steer_workloads_are_not_the_nodes_to_set() {
        for (label, forbidden) in [
            ("kubernetes.io/hostname", false),
            ("topology.kubernetes.io/zone", false),
            ("node.kubernetes.io/anything", false),
            ("sub.kubelet.kubernetes.io/x", false),
            ("example.com/x", false),
            ("plain", false),
            ("node-restriction.kubernetes.io/x", true),
            ("team.node-restriction.kubernetes.io/x", true),
            ("node-role.kubernetes.io/control-plane", true),
            ("kubernetes.io/x", true),
            ("x.k8s.io/y", true),
            ("notkubernetes.io/x", false),
        ] {
            assert_eq!(is_forbidden(label), forbidden, "{label}");
        }
    }

    #[test]
    fn a_node_may_change_only_what_is_its_own() {
        let node = |labels: Value, taints: Value| json!({"metadata": {"labels": labels}, "spec": {"taints": taints}});
        let plain = node(json!({}), json!([]));
        let labelled = node(json!({"kubernetes.io/x": "y"}), json!([]));
        let tainted = node(json!({}), json!([{"key": "a"}]));
        for (name, new, old, expected) in [
            ("n", &plain, None, Ok(())),
            ("n", &tainted, None, Ok(())),
            ("m", &plain, None, Err("node \"n\" is not allowed to modify node \"m\"")),
            (
                "n",
                &labelled,
                None,
                Err("node \"n\" is not allowed to set the following labels: kubernetes.io/x"),
            ),
            ("n", &plain, Some(&plain), Ok(())),
            ("n", &tainted, Some(&plain), Err("node \"n\" is not allowed to modify taints")),
            ("n", &plain, Some(&labelled), Err("is not allowed to modify labels: kubernetes.io/x")),
            ("n", &labelled, Some(&labelled), Ok(())),
        ] {
            let decided = check("n", name, new, old);
            assert_eq!(decided.as_ref().map_err(String::as_str).copied(), expected);
        }
    }
}
