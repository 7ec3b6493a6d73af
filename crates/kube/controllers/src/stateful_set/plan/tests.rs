use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T00:01:00Z";

fn set(replicas: i32, more: &Value) -> StatefulSet {
    let mut value = json!({"metadata": {"name": "web", "namespace": "n", "uid": "s", "generation": 3},
        "spec": {"replicas": replicas, "selector": {}, "template": {}}});
    for (key, value_) in more.as_object().unwrap() {
        value["spec"][key] = value_.clone();
    }
    serde_json::from_value(value).unwrap()
}

/// `ordinal`, revision, and a word: ready, pending, failed, going.
fn pod(ordinal: i32, revision: &str, state: &str) -> Arc<Pod> {
    let mut value = json!({
        "metadata": {"name": format!("web-{ordinal}"), "uid": format!("p{ordinal}"),
            "labels": {"controller-revision-hash": revision}},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:30Z"}]},
    });
    match state {
        "ready" => {}
        "going" => value["metadata"]["deletionTimestamp"] = json!(NOW),
        "blinking" => {
            value["status"]["conditions"] =
                json!([{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:54Z"}]);
        }
        "failed" => value["status"] = json!({"phase": "Failed"}),
        _ => value["status"] = json!({"phase": "Pending"}),
    }
    Arc::new(serde_json::from_value(value).unwrap())
}

fn acts(set: &StatefulSet, pods: &[Arc<Pod>]) -> Vec<String> {
    let seen = Seen { set, pods, current: "a", update: "b", now: NOW.parse().unwrap() };
    let words = plan(seen).acts.into_iter().filter_map(|act| match act {
        Act::Create { ordinal, revision } => Some(format!("+{ordinal}{revision:?}")),
        Act::Delete { ordinal, .. } => Some(format!("-{ordinal}")),
        Act::Tend { .. } => None,
    });
    words.collect()
}

fn parallel() -> Value {
    json!({"podManagementPolicy": "Parallel"})
}

#[test]
fn an_ordered_set_does_one_thing_at_a_time() {
    let three = set(3, &json!({}));
    for (pods, expected) in [
        (vec![], vec!["+0Update"]),
        (vec![pod(0, "b", "pending")], vec![]),
        (vec![pod(0, "b", "ready")], vec!["+1Update"]),
        (vec![pod(0, "b", "ready"), pod(2, "b", "ready")], vec!["+1Update"]),
        (vec![pod(0, "b", "failed"), pod(1, "b", "failed")], vec!["-0"]),
        (vec![pod(0, "b", "going"), pod(1, "b", "failed")], vec![]),
        (vec![pod(0, "b", "ready"), pod(1, "b", "ready"), pod(2, "b", "ready")], vec![]),
    ] {
        assert_eq!(acts(&three, &pods), expected, "{pods:?}");
    }
}

#[test]
fn surplus_members_go_from_the_top_one_after_the_other() {
    let one = set(1, &json!({}));
    let ready = |ordinal| pod(ordinal, "b", "ready");
    assert_eq!(acts(&one, &[ready(0), ready(1), ready(2)]), ["-2"]);
    assert_eq!(acts(&one, &[ready(0), ready(1), pod(2, "b", "going")]), Vec::<String>::new());
    assert_eq!(acts(&one, &[ready(0), ready(1), pod(2, "b", "pending")]), ["-2"], "the only sick one may go");
    assert_eq!(acts(&one, &[pod(0, "b", "pending"), ready(1)]), Vec::<String>::new());
    assert_eq!(acts(&set(1, &parallel()), &[ready(0), ready(1), ready(2)]), ["-2", "-1"]);
}

#[test]
fn a_parallel_set_does_everything_at_once() {
    assert_eq!(acts(&set(3, &parallel()), &[pod(1, "b", "pending")]), ["+0Update", "+2Update"]);
}

#[test]
fn ordinals_begin_where_the_set_says() {
    let two = set(2, &json!({"ordinals": {"start": 5}, "podManagementPolicy": "Parallel"}));
    assert_eq!(acts(&two, &[pod(0, "b", "ready")]), ["+5Update", "+6Update", "-0"]);
}

#[test]
fn an_update_goes_from_the_top_and_waits_for_each() {
    let three = set(3, &json!({}));
    let all = |words: [(&str, &str); 3]| {
        let pods: Vec<_> =
            (0..).zip(words).map(|(ordinal, (revision, state))| pod(ordinal, revision, state)).collect();
        acts(&three, &pods)
    };
    assert_eq!(all([("a", "ready"), ("a", "ready"), ("a", "ready")]), ["-2"]);
    assert_eq!(all([("a", "ready"), ("a", "ready"), ("b", "pending")]), Vec::<String>::new());
    assert_eq!(all([("a", "ready"), ("a", "ready"), ("b", "ready")]), ["-1"]);
    assert_eq!(all([("a", "ready"), ("a", "ready"), ("a", "going")]), Vec::<String>::new());
}

#[test]
fn a_mended_template_replaces_members_that_never_became_ready() {
    let three = set(3, &json!({}));
    let old = [pod(0, "a", "ready"), pod(1, "a", "ready"), pod(2, "broken", "pending")];
    assert_eq!(acts(&three, &old), ["-2"], "the broken update goes first");
    assert_eq!(acts(&three, &[pod(0, "a", "pending")]), ["-0"], "even if nothing ever was ready");
    let two = [pod(0, "a", "pending"), pod(1, "a", "pending"), pod(2, "b", "pending")];
    assert_eq!(acts(&three, &two), Vec::<String>::new(), "but not while a replacement still comes up");
    assert_eq!(acts(&set(3, &parallel()), &old), ["-2"]);
}

#[test]
fn a_member_that_only_just_lost_a_peer_is_given_time() {
    let three = set(3, &json!({}));
    let pods = [pod(0, "a", "ready"), pod(1, "a", "blinking")];
    assert_eq!(acts(&three, &pods), Vec::<String>::new());
    let seen = Seen { set: &three, pods: &pods, current: "a", update: "b", now: NOW.parse().unwrap() };
    assert_eq!(plan(seen).again, Some(Duration::from_secs(4)));
}

#[test]
fn the_partition_protects_lower_ordinals_from_updates() {
    let cut =
        set(3, &json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}));
    let a = |ordinal| pod(ordinal, "a", "ready");
    assert_eq!(acts(&cut, &[a(0), a(1), a(2)]), ["-2"]);
    assert_eq!(acts(&cut, &[a(0), a(1), pod(2, "b", "ready")]), Vec::<String>::new());
    assert_eq!(acts(&cut, &[a(0)]), ["+1Current"]);
    assert_eq!(acts(&cut, &[a(0), a(1)]), ["+2Update"]);
    assert_eq!(acts(&cut, &[pod(0, "a", "pending"), a(1)]), Vec::<String>::new());
}

#[test]
fn several_may_be_down_at_once_if_the_set_says_so() {
    let a = |ordinal| pod(ordinal, "a", "ready");
    for (max, expected) in [(json!(2), 2), (json!("50%"), 2), (json!("1%"), 1), (json!("x"), 1)] {
        let set = set(
            4,
            &json!({"podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": max}}}),
        );
        assert_eq!(acts(&set, &[a(0), a(1), a(2), a(3)]).len(), expected, "{max}");
    }
}

#[test]
fn on_delete_updates_only_deleted_pods() {
    let set = set(2, &json!({"updateStrategy": {"type": "OnDelete"}}));
    assert_eq!(acts(&set, &[pod(0, "a", "ready"), pod(1, "a", "ready")]), Vec::<String>::new());
    assert_eq!(acts(&set, &[pod(0, "a", "ready")]), ["+1Update"]);
}

#[test]
fn a_member_that_is_not_available_yet_is_looked_at_again() {
    let set = set(2, &json!({"minReadySeconds": 40}));
    let pods = [pod(0, "b", "ready")];
    let seen = Seen { set: &set, pods: &pods, current: "b", update: "b", now: NOW.parse().unwrap() };
    assert_eq!(plan(seen).again, Some(Duration::from_secs(10)));
    assert!(acts(&set, &pods).is_empty(), "the next waits for it");
    let status = status(seen, 0);
    assert_eq!((status.ready_replicas, status.available_replicas), (Some(1), Some(0)));
}

#[test]
fn the_update_becomes_the_current_revision_when_every_pod_has_it() {
    let set = set(2, &json!({}));
    let of = |pods: &[Arc<Pod>]| {
        let seen = Seen { set: &set, pods, current: "a", update: "b", now: NOW.parse().unwrap() };
        let status = status(seen, 0);
        (status.current_revision.unwrap(), status.current_replicas.unwrap(), status.updated_replicas.unwrap())
    };
    assert_eq!(of(&[pod(0, "a", "ready"), pod(1, "b", "ready")]), ("a".to_owned(), 1, 1));
    assert_eq!(of(&[pod(0, "b", "ready"), pod(1, "b", "pending")]), ("a".to_owned(), 0, 2));
    assert_eq!(of(&[pod(0, "b", "ready"), pod(1, "b", "ready")]), ("b".to_owned(), 2, 2));
}

proptest! {
    #[test]
    fn no_pod_is_created_twice_and_no_terminating_pod_is_deleted(
        wanted in 0..6,
        ordered in any::<bool>(),
        partition in 0..6,
        members in prop::collection::btree_map(0..8_i32, (0..2_usize, 0..4_usize), 0..8),
    ) {
        let policy = if ordered { "OrderedReady" } else { "Parallel" };
        let set = set(wanted, &json!({"podManagementPolicy": policy,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}}));
        let pods: Vec<_> = members
            .iter()
            .map(|(ordinal, (revision, state))| {
                pod(*ordinal, ["a", "b"][*revision], ["ready", "pending", "failed", "going"][*state])
            })
            .collect();
        let seen = Seen { set: &set, pods: &pods, current: "a", update: "b", now: NOW.parse().unwrap() };
        let mut touched = std::collections::HashSet::new();
        let (mut created, mut deleted) = (0, 0);
        for act in plan(seen).acts {
            match act {
                Act::Create { ordinal, .. } => {
                    prop_assert!(!members.contains_key(&ordinal) && ordinal < wanted);
                    prop_assert!(touched.insert(ordinal));
                    created += 1;
                }
                Act::Delete { pod, ordinal } => {
                    prop_assert!(!pods::is_terminating(&pod));
                    prop_assert!(touched.insert(ordinal));
                    deleted += 1;
                }
                Act::Tend { .. } => {}
            }
        }
        prop_assert!(!ordered || created <= 1 && created + deleted <= 2);
    }
}
