//! Merge patches.

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::version::ApiVersion::{self, *};
use serde_json::{Value, json};

use crate::fixtures::*;

fn patched(version: ApiVersion, patch: Value) -> Cluster {
    Cluster::made(version).patch(version, &patch, &World::cluster().cx()).unwrap()
}

#[test]
fn only_what_a_patch_names_changes() {
    for version in ApiVersion::ALL {
        let cluster = patched(version, json!({"properties": {"autoscaling": {"maxNodesTotal": 11}}}));
        let mut expected = Cluster::made(version);
        expected.properties.autoscaling.max_nodes_total = 11;
        assert_eq!(cluster, expected, "{version}");
    }
}

#[test]
fn tags_in_a_patch_replace_all_tags() {
    for version in ApiVersion::ALL {
        let tags = |patch| patched(version, patch).tags.into_iter().collect::<Vec<_>>();
        assert_eq!(tags(json!({"tags": {"a": "b"}})), [("a".into(), "b".into())]);
        assert_eq!(tags(json!({"tags": {"a": "b", "env": null}})), [("a".into(), "b".into())]);
        assert_eq!(tags(json!({"tags": {}})), []);
        assert_eq!(tags(json!({"tags": null})), []);
        assert_eq!(tags(json!({})), [("env".into(), "test".into())]);
    }
}

#[test]
fn a_patch_may_repeat_what_cannot_change() {
    let mut patch = cluster_body(NEWEST);
    set(&mut patch, "name", json!("my-cluster"));
    set(&mut patch, "location", json!("elsewhere"));
    set(&mut patch, "properties.provisioningState", json!("Failed"));
    assert_eq!(patched(NEWEST, patch), Cluster::made(NEWEST));
}

#[test]
fn null_removes_a_member() {
    let gone = patched(
        NEWEST,
        json!({"properties": {
            "nodeDrainTimeoutMinutes": null, "imageDigestMirrors": null, "autoscaling": null,
            "platform": {"containerRegistry": {"managedIdentity": null}}, "api": {"authorizedCidrs": null},
        }}),
    );
    assert_eq!(gone.properties.node_drain_timeout_minutes, 0);
    assert_eq!(gone.properties.autoscaling.pod_priority_threshold, -10);
    assert!(gone.properties.image_digest_mirrors.is_empty());
    assert!(gone.properties.platform.container_registry.is_empty());
    assert_eq!(gone.properties.api.authorized_cidrs, None);
    let world = World::node_pool();
    let patch = json!({"properties": {"autoScaling": null, "replicas": 4, "labels": null}});
    let pool = NodePool::made(NEWEST).patch(NEWEST, &patch, &world.cx()).unwrap();
    assert_eq!((pool.properties.auto_scaling, pool.properties.replicas), (None, 4));
}

#[test]
fn null_for_an_object_does_nothing_in_the_oldest_version() {
    let cluster = patched(
        V2024_06_10Preview,
        json!({"properties": {"autoscaling": null, "etcd": {"dataEncryption": null}}}),
    );
    assert_eq!(cluster, Cluster::made(V2024_06_10Preview));
    let cluster =
        patched(V2024_06_10Preview, json!({"properties": {"autoscaling": {"maxNodesTotal": null}}}));
    assert_eq!(cluster.properties.autoscaling.max_nodes_total, 0);
}

#[test]
fn null_is_refused_where_a_replace_refuses_it() {
    let patch =
        json!({"properties": {"network": {"hostPrefix": null}, "autoscaling": {"maxNodesTotal": null}}});
    for version in ApiVersion::ALL {
        let result = Cluster::made(version).patch(version, &patch, &World::cluster().cx());
        if version == V2024_06_10Preview {
            assert_eq!(problems_of(result), ["properties.network.hostPrefix: Forbidden: field is immutable"]);
        } else {
            assert_eq!(
                problems_of(result),
                [
                    "properties.autoscaling.maxNodesTotal: Invalid value: null: must not be null",
                    "properties.network.hostPrefix: Invalid value: null: must not be null",
                ]
            );
        }
    }
}

#[test]
fn identities_meet_in_a_merge_however_they_are_spelt() {
    let shouted = mi("cp").to_uppercase();
    let patch = json!({"identity": {"userAssignedIdentities": {shouted: {}}}});
    assert_eq!(patched(NEWEST, patch).render(NEWEST), Cluster::made(NEWEST).render(NEWEST));
    let gone = json!({"identity": {"userAssignedIdentities": {mi("cp").to_lowercase(): null}}});
    let problems = problems_of(Cluster::made(NEWEST).patch(NEWEST, &gone, &World::cluster().cx()));
    assert!(
        problems.len() == 1 && problems[0].ends_with("identity is not assigned to this resource"),
        "{problems:?}"
    );
}

#[test]
fn a_patch_in_an_old_version_keeps_what_only_newer_ones_know() {
    let cluster = Cluster::made(NEWEST);
    let patch = json!({"properties": {"nodeDrainTimeoutMinutes": 1}});
    for version in ApiVersion::ALL {
        let mut expected = cluster.clone();
        expected.properties.node_drain_timeout_minutes = 1;
        assert_eq!(cluster.patch(version, &patch, &World::cluster().cx()).unwrap(), expected, "{version}");
    }
}

#[test]
fn wrong_types_in_a_patch_are_reported() {
    let problems =
        problems_of(Cluster::made(NEWEST).patch(NEWEST, &json!({"properties": 5}), &World::cluster().cx()));
    assert_eq!(problems.len(), 1);
    assert!(problems[0].ends_with("properties: expected an object, got a number"), "{problems:?}");
}
