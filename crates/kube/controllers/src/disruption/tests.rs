use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::plan::{Owner, Plan, Seen, plan};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn pod(name: &str, owner: Option<&str>, ready: bool) -> Arc<Pod> {
    let owners: Vec<Value> = owner
        .iter()
        .map(|uid| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": uid, "uid": uid, "controller": true}))
        .collect();
    let ready = if ready { "True" } else { "False" };
    let pod = json!({"metadata": {"name": name, "ownerReferences": owners},
        "status": {"conditions": [{"type": "Ready", "status": ready}]}});
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn look(spec: Value, status: Value, pods: Vec<Arc<Pod>>, sizes: &[(&str, Option<i32>)]) -> Plan {
    let budget =
        json!({"metadata": {"name": "b", "namespace": "n", "generation": 4}, "spec": spec, "status": status});
    let owner = |(uid, size): &(&str, Option<i32>)| {
        ((*uid).to_owned(), size.map(|size| Owner { uid: (*uid).to_owned(), size }))
    };
    let owners: BTreeMap<String, Option<Owner>> = sizes.iter().map(owner).collect();
    plan(&Seen { budget: Arc::new(serde_json::from_value(budget).unwrap()), pods, owners, now: at(0) })
}

/// Expected, desired, healthy, allowed, and the reason.
fn shown(plan: &Plan) -> (i32, i32, i32, i32, String) {
    let status = &plan.status;
    let count = |count: Option<i32>| count.unwrap_or(-1);
    let reason = status.conditions.as_ref().unwrap()[0].reason.clone();
    let (expected, desired) = (count(status.expected_pods), count(status.desired_healthy));
    (expected, desired, count(status.current_healthy), count(status.disruptions_allowed), reason)
}

fn five() -> Vec<Arc<Pod>> {
    (0..5).map(|number| pod(&format!("p{number}"), Some("rs"), number > 0)).collect()
}

#[test]
fn numbers_and_shares_are_counted_as_upstream_does() {
    let cases = [
        (json!({"minAvailable": 3}), (5, 3, 4, 1, "SufficientPods")),
        (json!({"minAvailable": 4}), (5, 4, 4, 0, "InsufficientPods")),
        (json!({"minAvailable": "50%"}), (10, 5, 4, 0, "InsufficientPods")),
        (json!({"maxUnavailable": 7}), (10, 3, 4, 1, "SufficientPods")),
        (json!({"maxUnavailable": "75%"}), (10, 2, 4, 2, "SufficientPods")),
        (json!({"maxUnavailable": 20}), (10, 0, 4, 4, "SufficientPods")),
        (json!({}), (0, 0, 4, 0, "InsufficientPods")),
    ];
    for (spec, (expected, desired, healthy, allowed, reason)) in cases {
        let plan = look(spec.clone(), json!({}), five(), &[("rs", Some(10))]);
        assert_eq!(shown(&plan), (expected, desired, healthy, allowed, reason.to_owned()), "{spec}");
        assert_eq!(plan.status.observed_generation, Some(4));
    }
}

#[test]
fn several_owners_add_up_and_strays_do_not_count() {
    let pods = vec![pod("a", Some("one"), true), pod("b", Some("two"), true), pod("c", None, true)];
    let plan =
        look(json!({"maxUnavailable": 1}), json!({}), pods.clone(), &[("one", Some(2)), ("two", Some(3))]);
    assert_eq!(shown(&plan).0, 5);
    let unknown = look(
        json!({"maxUnavailable": 1}),
        json!({"disruptionsAllowed": 2}),
        pods,
        &[("one", Some(2)), ("two", None)],
    );
    assert_eq!((shown(&unknown).3, shown(&unknown).4.as_str()), (0, "SyncFailed"));
}

#[test]
fn an_evicted_pod_counts_as_gone_until_it_is_overdue() {
    let noted = |second: i64| json!({"disruptedPods": {"p1": at(second).to_string(), "gone": at(second).to_string()}});
    let plan = look(json!({"minAvailable": 1}), noted(-30), five(), &[]);
    assert_eq!((shown(&plan).2, plan.next), (3, Some(Duration::from_secs(90))));
    assert_eq!(plan.status.disrupted_pods.unwrap().into_keys().collect::<Vec<_>>(), ["p1"]);
    let late = look(json!({"minAvailable": 1}), noted(-120), five(), &[]);
    assert_eq!((shown(&late).2, late.next, late.overdue.len()), (4, None, 1));
    assert_eq!(late.status.disrupted_pods, None);
}
