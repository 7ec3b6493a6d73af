use std::collections::HashSet;

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::*;

fn pod(name: &str, uid: &str, version: u64) -> Pod {
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs-1", "controller": true}]);
    serde_json::from_value(json!({"metadata": {
        "name": name, "namespace": "n", "uid": uid, "resourceVersion": version.to_string(), "ownerReferences": owner,
        "managedFields": [{"manager": "m"}],
    }, "spec": {"containers": [], "nodeName": format!("node-{version}")}}))
    .unwrap()
}

fn node_of(pod: &Pod) -> Vec<String> {
    pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect()
}

fn cache() -> Cache<Pod> {
    Cache::with(&[Index { name: "node", of: node_of }])
}

#[test]
fn an_object_is_found_by_name_namespace_owner_and_index() {
    let cache = cache();
    cache.seen(pod("a", "u1", 1));
    assert!(cache.get(&ObjectKey::new("n", "a")).unwrap().metadata.managed_fields.is_none());
    assert_eq!(cache.in_namespace("n").len(), 1);
    assert_eq!(cache.controlled_by("rs-1").len(), 1);
    assert_eq!(cache.by("node", "node-1").len(), 1);
    cache.seen(pod("a", "u1", 2));
    assert!(cache.by("node", "node-1").is_empty(), "it moved");
    assert_eq!(cache.by("node", "node-2").len(), 1);
    assert!(cache.by("nobody-declared-this", "x").is_empty());
    cache.gone(pod("a", "u1", 3));
    assert!(cache.is_empty() && cache.in_namespace("n").is_empty() && cache.controlled_by("rs-1").is_empty());
}

#[test]
fn an_object_never_gets_older() {
    let cache = cache();
    cache.wrote(pod("a", "u1", 5));
    assert!(cache.seen(pod("a", "u1", 4)).is_none(), "the watch is late");
    assert_eq!(cache.get(&ObjectKey::new("n", "a")).unwrap().metadata.resource_version.as_deref(), Some("5"));
    let change = cache.seen(pod("a", "u1", 5)).expect("what was written is news when the watch says it");
    assert!(change.before().is_some());
    cache.wrote(pod("a", "u1", 3));
    assert_eq!(cache.get(&ObjectKey::new("n", "a")).unwrap().metadata.resource_version.as_deref(), Some("5"));
}

#[test]
fn the_end_of_an_old_object_does_not_remove_a_new_one_of_its_name() {
    let cache = cache();
    cache.wrote(pod("a", "u2", 9));
    cache.gone(pod("a", "u1", 8));
    cache.removed(&ObjectKey::new("n", "a"), "u1");
    assert_eq!(cache.len(), 1);
    cache.removed(&ObjectKey::new("n", "a"), "u2");
    assert!(cache.is_empty());
}

#[test]
fn a_new_list_drops_what_it_lacks_unless_that_was_written_meanwhile() {
    let cache = cache();
    cache.seen(pod("old", "u1", 1));
    cache.wrote(pod("written-and-deleted-by-others", "u4", 2));
    cache.seen(pod("stays", "u2", 2));
    cache.listing();
    cache.wrote(pod("just-written", "u3", 9));
    let listed = HashSet::from([ObjectKey::new("n", "stays")]);
    let gone = cache.keep_only(&listed);
    let mut gone: Vec<String> = gone.iter().map(|change| change.object().name_any()).collect();
    gone.sort();
    assert_eq!(gone, ["old", "written-and-deleted-by-others"]);
    assert_eq!(cache.len(), 2);
}

#[test]
fn an_answer_that_comes_after_the_end_of_its_object_does_not_bring_it_back() {
    let cache = cache();
    cache.seen(pod("a", "u1", 1));
    cache.gone(pod("a", "u1", 5));
    cache.wrote(pod("a", "u1", 4));
    assert!(cache.is_empty(), "the watch was faster than the answer to the deletion");
    cache.wrote(pod("b", "u2", 6));
    assert_eq!(cache.len(), 1, "what the watch has not come to is new");
}

#[test]
fn what_the_watch_has_told_of_a_version_is_not_replaced_by_what_a_writer_made_of_it() {
    let cache = cache();
    let mut told = pod("a", "u1", 5);
    told.metadata.deletion_grace_period_seconds = Some(1);
    cache.seen(told);
    let known = cache.wrote(pod("a", "u1", 5));
    assert_eq!(known.metadata.deletion_grace_period_seconds, Some(1));
    assert_eq!(cache.all()[0].metadata.deletion_grace_period_seconds, Some(1));
}
