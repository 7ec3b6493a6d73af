//! Checks that need more than the object: running versions, the parent, siblings.

use aro_arm::hcp::admission::{ControlPlaneVersions, NodePoolVersions, cluster, external_auth, node_pool};
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::openshift_version::Release;
use serde_json::json;

use crate::fixtures::*;

fn releases(texts: &[&str]) -> Vec<Release> {
    texts.iter().map(|text| Release::parse(text).unwrap()).collect()
}

fn plane(active: &[&str], channels: &[&str]) -> ControlPlaneVersions {
    let channels = channels.iter().map(|channel| (*channel).to_owned()).collect();
    ControlPlaneVersions { active: releases(active), channels }
}

fn pool_of(requested: &str, active: &[&str]) -> NodePoolVersions {
    NodePoolVersions { name: "np".into(), requested: Release::parse(requested), active: releases(active) }
}

fn cluster_at(version: &str) -> Cluster {
    let mut cluster = Cluster::made(NEWEST);
    cluster.properties.version.id = version.into();
    cluster
}

fn upgrade(from: &str, to: &str, plane: &ControlPlaneVersions, pools: &[NodePoolVersions]) -> Vec<String> {
    list(cluster::admit_update(&cluster_at(from), &cluster_at(to), plane, pools))
}

fn wrong(id: &str, why: &str) -> Vec<String> {
    vec![format!("properties.version.id: Invalid value: \"{id}\": {why}")]
}

#[test]
fn an_upgrade_is_one_step_from_all_that_runs() {
    let none: Vec<String> = vec![];
    assert_eq!(upgrade("4.21", "4.22", &plane(&["4.21.3"], &[]), &[]), none);
    assert_eq!(upgrade("4.21", "4.22", &plane(&[], &[]), &[]), none);
    assert_eq!(upgrade("4.22", "4.22", &plane(&["4.20.1"], &["fast-4.20"]), &[pool_of("4.10.0", &[])]), none);
    // Half-way through 4.20 → 4.21, asking for 4.22 would skip one for what is still at 4.20.
    assert_eq!(
        upgrade("4.21", "4.22", &plane(&["4.21.0", "4.20.9"], &[]), &[]),
        wrong("4.22", "may not be more than one minor version above 4.20, which is still running")
    );
    assert_eq!(upgrade("4.20", "4.21", &plane(&["4.20.9"], &[]), &[]), none);
    assert_eq!(
        upgrade("4.21", "4.22", &plane(&["4.23.0", "4.21.1"], &[]), &[]),
        wrong("4.22", "must be at least 4.23, which is running")
    );
}

#[test]
fn every_node_pool_must_be_served_by_the_new_version() {
    let running = plane(&["4.22.0"], &[]);
    assert!(upgrade("4.22", "4.23", &running, &[pool_of("4.21.0", &["4.21.0", "4.22.0"])]).is_empty());
    let cannot = |release: &str| format!("node pool \"np\" with version {release} cannot be served by 4.23");
    assert_eq!(
        upgrade("4.22", "4.23", &running, &[pool_of("4.20.9", &[])]),
        wrong("4.23", &cannot("4.20.9"))
    );
    assert_eq!(
        upgrade("4.22", "4.23", &running, &[pool_of("4.22.0", &["4.20.8", "4.22.0"])]),
        wrong("4.23", &cannot("4.20.8"))
    );
    assert!(upgrade("4.22", "5.0", &running, &[pool_of("4.21.0", &[])]).is_empty());
    assert_eq!(upgrade("4.22", "5.0", &running, &[pool_of("4.20.8", &[])]).len(), 1);
}

#[test]
fn a_version_must_be_offered_in_its_channel_once_channels_are_known() {
    let running = plane(&["4.22.0"], &["fast-4.22", "fast-4.23"]);
    assert!(upgrade("4.22", "4.23", &running, &[]).is_empty());
    let running = plane(&["4.22.0"], &["stable-4.23"]);
    assert_eq!(
        upgrade("4.22", "4.23", &running, &[]),
        wrong("4.23", "is not offered in channel \"fast-4.23\"")
    );
}

#[test]
fn a_key_is_rotated_only_where_every_control_plane_can() {
    let (old, mut new) = (Cluster::made(NEWEST), Cluster::made(NEWEST));
    let key = new.properties.etcd.data_encryption.customer_managed.as_mut().unwrap().kms.as_mut().unwrap();
    key.active_key.version = "v2".into();
    let problems = |plane| list(cluster::admit_update(&old, &new, &plane, &[]));
    assert!(problems(plane(&["4.22.0", "4.23.0"], &[])).is_empty());
    let refused = [
        "properties.etcd.dataEncryption.customerManaged.kms.activeKey.version: Forbidden: can only be changed when every control plane version is at least 4.22",
    ];
    assert_eq!(problems(plane(&["4.21.9", "4.22.0"], &[])), refused);
    assert_eq!(problems(plane(&[], &[])), refused);
    let mut without = new.clone();
    without.properties.etcd.data_encryption.customer_managed = None;
    assert!(cluster::admit_update(&old, &without, &plane(&[], &[]), &[]).is_empty());
}

#[test]
fn a_registry_identity_is_set_only_where_every_control_plane_can() {
    let (mut old, new) = (Cluster::made(NEWEST), Cluster::made(NEWEST));
    assert!(cluster::admit_update(&old, &new, &plane(&["4.21.9"], &[]), &[]).is_empty());
    old.properties.platform.container_registry.managed_identity = None;
    assert_eq!(
        list(cluster::admit_update(&old, &new, &plane(&["4.21.9"], &[]), &[])),
        [
            "properties.platform.containerRegistry.managedIdentity: Forbidden: can only be set when every control plane version is at least 4.22"
        ]
    );
    assert!(cluster::admit_update(&old, &new, &plane(&["4.22.0"], &[]), &[]).is_empty());
    assert!(cluster::admit_update(&new, &old, &plane(&["4.21.9"], &[]), &[]).is_empty());
}

#[test]
fn a_cluster_that_is_being_deleted_is_not_changed() {
    let mut old = Cluster::made(NEWEST);
    old.service.deletion_timestamp = Some("2026-11-15T10:00:00Z".parse().unwrap());
    let problems = list(cluster::admit_update(&old, &old, &plane(&[], &[]), &[]));
    assert_eq!(problems, ["properties: Forbidden: the cluster is being deleted"]);
}

fn created(version: &str, plane: &ControlPlaneVersions) -> Vec<String> {
    let mut pool = NodePool::made(NEWEST);
    pool.properties.version.id = Some(version.into());
    list(node_pool::admit_create(&mut pool, &cluster_at("4.22"), plane))
}

#[test]
fn a_new_node_pool_takes_the_clusters_subnet_or_one_beside_it() {
    let cluster = Cluster::made(NEWEST);
    let mut body = node_pool_body(NEWEST);
    remove(&mut body, "properties.platform.subnetId");
    let mut pool = NodePool::create(NEWEST, &body, &World::node_pool().cx()).unwrap();
    assert_eq!(node_pool::admit_create(&mut pool, &cluster, &plane(&[], &[])), []);
    assert_eq!(pool.properties.platform.subnet_id, cluster.properties.platform.subnet_id);
    for (id, fits) in [
        (subnet("other"), true),
        (subnet("x").replace("/vnet/", "/VNET/"), true),
        (subnet("x").replace("/vnet/", "/v2/"), false),
    ] {
        set(&mut body, "properties.platform.subnetId", json!(id));
        let mut pool = NodePool::create(NEWEST, &body, &World::node_pool().cx()).unwrap();
        let problems = list(node_pool::admit_create(&mut pool, &cluster, &plane(&[], &[])));
        let network = arm("Microsoft.Network/virtualNetworks/vnet");
        let why = format!(
            "properties.platform.subnetId: Invalid value: \"{id}\": must be in the same virtual network as the cluster: \"{network}\""
        );
        assert_eq!(problems, if fits { vec![] } else { vec![why] });
    }
}

#[test]
fn a_new_node_pool_fits_the_control_plane_or_before_it_runs_the_requested_version() {
    let before = plane(&[], &[]);
    assert!(created("4.22.9", &before).is_empty());
    assert!(created("4.20.8", &before).is_empty());
    assert_eq!(
        created("4.23.0", &before),
        wrong("4.23.0", "may not be above the version of the control plane, 4.22")
    );
    let upgrading = plane(&["4.22.0", "4.23.0"], &[]);
    assert!(created("4.21.0", &upgrading).is_empty());
    assert_eq!(
        created("4.23.0", &upgrading),
        wrong("4.23.0", "may not be above the version of the control plane, 4.22")
    );
    assert_eq!(
        created("4.20.8", &upgrading),
        wrong("4.20.8", "may not be more than 2 minor versions below the control plane, 4.23")
    );
    let mut unversioned = NodePool::made(NEWEST);
    unversioned.properties.version.id = None;
    assert!(node_pool::admit_create(&mut unversioned, &cluster_at("4.22"), &before).is_empty());
}

#[test]
fn a_node_pool_moves_within_reach_of_the_control_plane_and_of_what_it_runs() {
    let moved = |from: &str, to: &str, plane: &ControlPlaneVersions, active: &[&str], experimental: bool| {
        let (mut old, mut new) = (NodePool::made(NEWEST), NodePool::made(NEWEST));
        old.properties.version.id = Some(from.into());
        new.properties.version.id = Some(to.into());
        let running = pool_of(from, active);
        list(node_pool::admit_update(&old, &new, &cluster_at("4.22"), plane, &running, experimental))
    };
    let none: Vec<String> = vec![];
    let p422 = plane(&["4.22.5"], &[]);
    assert_eq!(moved("4.20.8", "4.22.1", &p422, &["4.20.8"], false), none);
    assert_eq!(moved("4.22.1", "4.20.8", &p422, &["4.22.1"], false), none, "a downgrade is allowed");
    assert_eq!(moved("4.22.1", "4.22.1", &plane(&[], &[]), &[], false), none, "no change");
    assert_eq!(moved("4.22.1", "4.21.9", &plane(&[], &[]), &["4.21.9"], false), none, "back to what runs");
    assert_eq!(
        moved("4.22.1", "4.22.2", &plane(&[], &[]), &[], false),
        wrong("4.22.2", "the version of the control plane is not known yet")
    );
    assert_eq!(
        moved("4.22.1", "4.23.0", &p422, &[], false),
        wrong("4.23.0", "may not be above the version of the control plane, 4.22")
    );
    assert_eq!(
        moved("4.21.1", "4.21.2", &plane(&["4.22.0", "4.24.0"], &[]), &[], false),
        wrong("4.21.2", "may not be more than 2 minor versions below the control plane, 4.24")
    );
    assert_eq!(
        moved("4.20.8", "4.23.0", &plane(&["4.23.0"], &[]), &["4.20.8"], false),
        wrong("4.23.0", "may not be more than 2 minor versions above 4.20, which is running")
    );
    let p5 = plane(&["5.0.1"], &[]);
    assert_eq!(
        moved("4.22.1", "5.0.0", &p5, &["4.22.1"], false),
        wrong("5.0.0", "may not move from 4.22 to another major version")
    );
    assert_eq!(moved("4.22.1", "5.0.0", &p5, &["4.22.1"], true), none);
    assert_eq!(moved("4.20.8", "5.0.0", &p5, &["4.20.8"], true).len(), 1);
}

#[test]
fn a_node_pool_of_a_dying_cluster_is_not_changed() {
    let pool = NodePool::made(NEWEST);
    let mut parent = cluster_at("4.22");
    parent.service.deletion_timestamp = Some("2026-11-15T10:00:00Z".parse().unwrap());
    let problems =
        node_pool::admit_update(&pool, &pool, &parent, &plane(&[], &[]), &pool_of("4.22.3", &[]), false);
    assert_eq!(list(problems), ["properties: Forbidden: the node pool or its cluster is being deleted"]);
}

#[test]
fn the_last_node_pool_stays_and_the_second_external_auth_does_not_come() {
    assert!(node_pool::admit_delete(1).is_empty());
    assert_eq!(
        list(node_pool::admit_delete(0)),
        ["name: Forbidden: The last node pool can not be deleted from a cluster."]
    );
    assert!(external_auth::admit_create(0).is_empty());
    assert_eq!(
        list(external_auth::admit_create(1)),
        ["name: Forbidden: a cluster can have only one external auth"]
    );
}
