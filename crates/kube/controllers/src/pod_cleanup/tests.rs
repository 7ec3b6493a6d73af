use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use serde_json::json;

use super::plan::{is_out_of_service, surplus};

fn pod(name: &str, phase: &str, minute: u32, reason: &str) -> Arc<Pod> {
    let made = format!("2026-01-01T00:{minute:02}:00Z");
    let pod = json!({"metadata": {"name": name, "creationTimestamp": made}, "status": {"phase": phase, "reason": reason}});
    Arc::new(serde_json::from_value(pod).unwrap())
}

#[test]
fn finished_pods_above_the_limit_go_evicted_ones_first_then_the_oldest() {
    let pods = vec![
        pod("new", "Succeeded", 9, ""),
        pod("old", "Failed", 1, ""),
        pod("runs", "Running", 0, ""),
        pod("evicted", "Failed", 5, "Evicted"),
        pod("older", "Succeeded", 0, ""),
    ];
    let names = |most: usize| -> Vec<String> {
        surplus(pods.clone(), most).iter().map(|pod| pod.name_any()).collect()
    };
    assert_eq!(names(4), Vec::<String>::new());
    assert_eq!(names(2), ["evicted", "older"]);
    assert_eq!(names(1), ["evicted", "older", "old"]);
}

#[test]
fn a_node_is_out_of_service_when_it_is_marked_and_not_ready() {
    let node = |ready: &str, key: &str| -> Node {
        serde_json::from_value(
            json!({"metadata": {"name": "n"}, "spec": {"taints": [{"key": key, "effect": "NoExecute"}]},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}}),
        )
        .unwrap()
    };
    assert!(is_out_of_service(&node("False", "node.kubernetes.io/out-of-service")));
    assert!(!is_out_of_service(&node("True", "node.kubernetes.io/out-of-service")));
    assert!(!is_out_of_service(&node("Unknown", "node.kubernetes.io/unreachable")));
}
