use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::amounts::Amounts;
use super::ledger::Ledger;

fn node(name: &str, cpu: &str, more: Value) -> Node {
    let mut node = json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": {},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10", "example.com/gpu": "1"}}});
    json_patch::merge(&mut node, &more);
    serde_json::from_value(node).unwrap()
}

fn pod(name: &str, cpu: &str, more: Value) -> Pod {
    let mut pod = json!({"metadata": {"name": name, "namespace": "n", "uid": format!("uid-{name}")},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}});
    json_patch::merge(&mut pod, &more);
    serde_json::from_value(pod).unwrap()
}

fn ledger(nodes: &[Node]) -> Ledger {
    let mut ledger = Ledger::default();
    for node in nodes {
        assert!(ledger.node(node));
    }
    ledger
}

const NONE: Value = Value::Null;

fn empty() -> Value {
    json!({})
}

#[test]
fn pods_spread_over_equal_nodes_and_stop_when_all_are_full() {
    let mut ledger = ledger(&[node("a", "2", empty()), node("b", "2", empty())]);
    let mut nodes: Vec<String> =
        (0..4).map(|i| ledger.promise(&pod(&i.to_string(), "1", empty())).unwrap()).collect();
    nodes.sort();
    assert_eq!(nodes, ["a", "a", "b", "b"]);
    let why = ledger.promise(&pod("one-too-many", "1", empty())).unwrap_err();
    assert_eq!(why, "0/2 nodes are available: 2 Insufficient cpu.");
    assert!(ledger.ended("uid-0"), "room became free");
    ledger.promise(&pod("one-too-many", "1", empty())).unwrap();
}

#[test]
fn the_same_pod_is_promised_once() {
    let mut ledger = ledger(&[node("a", "1", empty())]);
    let wanted = pod("x", "1", empty());
    ledger.promise(&wanted).unwrap();
    ledger.promise(&wanted).unwrap();
    assert!(!ledger.saw(&pod("x", "1", json!({"spec": {"nodeName": "a"}}))));
    ledger.promise(&pod("y", "1", empty())).unwrap_err();
    assert!(ledger.saw(&pod("x", "1", json!({"spec": {"nodeName": "a"}, "status": {"phase": "Succeeded"}}))));
    ledger.promise(&pod("y", "1", empty())).unwrap();
}

#[test]
fn every_reason_to_refuse_is_told_with_its_count() {
    let tainted = json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}});
    let cordoned = json!({"spec": {"unschedulable": true}});
    let zone = json!({"metadata": {"labels": {"zone": "1"}}});
    let mut ledger = ledger(&[
        node("a", "1", tainted),
        node("b", "1", cordoned),
        node("c", "1", empty()),
        node("d", "1", zone),
    ]);
    let picky = json!({"spec": {"nodeSelector": {"zone": "1"}, "containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}});
    assert_eq!(
        ledger.promise(&pod("x", "1", picky)).unwrap_err(),
        "0/4 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, \
         1 node(s) had untolerated taint {k: v}, 1 node(s) were unschedulable."
    );
    assert_eq!(
        Ledger::default().promise(&pod("x", "1", empty())).unwrap_err(),
        "no nodes available to schedule pods"
    );
}

#[test]
fn tolerations_and_affinity_decide_where_a_pod_may_go() {
    let tainted = || json!({"metadata": {"labels": {"size": "5"}}, "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}});
    let term = |key: &str, operator: &str, values: Value| {
        json!({"spec": {"tolerations": [{"operator": "Exists"}], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]}}}}})
    };
    let toleration = |one: Value| json!({"spec": {"tolerations": [one]}});
    for (more, fits) in [
        (empty(), false),
        (toleration(json!({"key": "k", "operator": "Equal", "value": "v"})), true),
        (toleration(json!({"key": "k", "value": "v", "effect": "NoSchedule"})), true),
        (toleration(json!({"key": "k", "value": "v", "effect": "NoExecute"})), false),
        (toleration(json!({"key": "k", "value": "w"})), false),
        (toleration(json!({"key": "k", "operator": "Exists"})), true),
        (toleration(json!({"operator": "Exists"})), true),
        (term("size", "In", json!(["4", "5"])), true),
        (term("size", "NotIn", json!(["5"])), false),
        (term("size", "Gt", json!(["4"])), true),
        (term("size", "Lt", json!(["4"])), false),
        (term("size", "Exists", NONE), true),
        (term("other", "DoesNotExist", NONE), true),
        (term("other", "Exists", NONE), false),
    ] {
        let mut ledger = ledger(&[node("a", "1", tainted())]);
        assert_eq!(ledger.promise(&pod("x", "1", more.clone())).is_ok(), fits, "{more}");
    }
}

#[test]
fn a_pod_needs_the_larger_of_its_containers_and_what_runs_before_them() {
    let requests = |cpu: &str| json!({"requests": {"cpu": cpu, "example.com/gpu": "1"}});
    let more = json!({"spec": {
        "initContainers": [
            {"name": "stays", "restartPolicy": "Always", "resources": requests("100m")},
            {"name": "big", "resources": requests("3")},
        ],
        "containers": [{"name": "a", "resources": requests("1")}, {"name": "b", "resources": requests("1")}],
    }});
    let amounts = Amounts::of_pod(&pod("x", "1", more));
    assert_eq!((amounts.cpu, amounts.pods), (3100, 1));
    assert_eq!(amounts.others["example.com/gpu"], 3);
}

#[test]
fn a_node_that_only_reports_that_it_lives_is_no_news() {
    let mut ledger = ledger(&[node("a", "1", empty())]);
    assert!(!ledger.node(&node(
        "a",
        "1",
        json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    )));
    assert!(ledger.node(&node("a", "2", empty())));
    ledger.node_gone("a");
    ledger.promise(&pod("x", "1", empty())).unwrap_err();
}
