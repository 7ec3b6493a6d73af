use std::sync::Arc;
use std::time::Duration;

use aro_base::Timestamp;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::plan::{Scale, Trouble, scale, status};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn set(replicas: i32) -> ReplicaSet {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "n", "uid": "s", "generation": 3},
        "spec": {"replicas": replicas, "minReadySeconds": 10, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web", "tier": "front"}}, "spec": {"containers": []}}},
    }))
    .unwrap()
}

/// A pod that is ready since second 0, changed by what is given.
fn pod(name: &str, change: Value) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": {"name": name, "uid": name, "labels": {"app": "web", "tier": "front"}, "creationTimestamp": at(0).to_string()},
        "spec": {"nodeName": "node", "containers": []},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at(0).to_string()}]},
    });
    merge(&mut pod, change);
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn merge(into: &mut Value, change: Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (name, value) in change {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change,
    }
}

fn victims(set: &ReplicaSet, pods: &[Arc<Pod>]) -> Vec<String> {
    match scale(set, pods, None, 500) {
        Scale::Remove { now, .. } => now.iter().map(|pod| pod.name_any()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_pods_missed_least_go_first() {
    let ready = |second: i64| json!([{"type": "Ready", "status": "True", "lastTransitionTime": at(second).to_string()}]);
    let cases = [
        ("not bound", json!({"spec": {"nodeName": null}})),
        ("pending", json!({"status": {"phase": "Pending"}})),
        ("not ready", json!({"status": {"conditions": []}})),
        ("cheap", json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}})),
        ("ready lately", json!({"status": {"conditions": ready(50)}})),
        (
            "restarted",
            json!({"status": {"containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": true, "restartCount": 4}]}}),
        ),
        ("new", json!({"metadata": {"creationTimestamp": at(60).to_string()}})),
    ];
    for (name, change) in &cases {
        let pods = [pod("a", json!({})), pod(name, change.clone()), pod("z", json!({}))];
        assert_eq!(victims(&set(2), &pods), [*name], "one that is {name}");
    }
    // And in this order among each other.
    let all: Vec<Arc<Pod>> = cases
        .iter()
        .rev()
        .map(|(name, change)| pod(name, change.clone()))
        .chain([pod("plain", json!({}))])
        .collect();
    let order: Vec<String> = cases.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(victims(&set(1), &all), order);
}

#[test]
fn crowded_nodes_lose_pods_first() {
    let on = |name: &str, node: &str| pod(name, json!({"spec": {"nodeName": node}}));
    let pods = [on("a", "x"), on("b", "y"), on("c", "y")];
    let gone = victims(&set(2), &pods);
    assert!(gone == ["b"] || gone == ["c"], "{gone:?}");
}

#[test]
fn finished_and_leaving_pods_do_not_count() {
    let pods = [
        pod("a", json!({})),
        pod("b", json!({"status": {"phase": "Failed"}})),
        pod("c", json!({"metadata": {"deletionTimestamp": at(1).to_string()}})),
    ];
    assert!(matches!(scale(&set(3), &pods, None, 500), Scale::Make { now: 2, later: 0 }));
    assert!(matches!(scale(&set(1), &pods, None, 500), Scale::Right));
    assert!(matches!(scale(&set(900), &pods, None, 500), Scale::Make { now: 500, later: 399 }));
    let mut leaving = set(3);
    leaving.metadata.deletion_timestamp = Some(super::time(at(0)));
    assert!(matches!(scale(&leaving, &pods, None, 500), Scale::Right));
}

#[test]
fn the_status_counts_what_is_there() {
    let pods = [
        pod("a", json!({})),
        pod("b", json!({"metadata": {"labels": {"tier": "back"}}})),
        pod("c", json!({"status": {"conditions": []}})),
        pod("d", json!({"metadata": {"deletionTimestamp": at(1).to_string()}})),
    ];
    let (counted, next) = status(&set(3), &pods, None, at(4));
    let shown = serde_json::to_value(&counted).unwrap();
    let wanted = json!({"replicas": 3, "fullyLabeledReplicas": 2, "readyReplicas": 2, "terminatingReplicas": 1,
        "observedGeneration": 3});
    assert_eq!(shown, wanted);
    assert_eq!(next, Some(Duration::from_secs(6)), "then two of them are available");
    let (counted, next) = status(&set(3), &pods, None, at(10));
    assert_eq!((counted.available_replicas, next), (Some(2), None));
}

#[test]
fn a_failure_is_told_until_it_is_over() {
    let trouble = |message: &str| Trouble { reason: "FailedCreate", message: message.to_owned() };
    let mut failing = set(3);
    let (first, _) = status(&failing, &[], Some(&trouble("quota")), at(0));
    let condition = &first.conditions.as_ref().unwrap()[0];
    assert_eq!(
        (condition.type_.as_str(), condition.reason.as_deref()),
        ("ReplicaFailure", Some("FailedCreate"))
    );
    failing.status = Some(first.clone());
    let (second, _) = status(&failing, &[], Some(&trouble("something else")), at(9));
    assert_eq!(first, second, "it is recorded once");
    assert_eq!(status(&failing, &[], None, at(9)).0.conditions, None);
}
