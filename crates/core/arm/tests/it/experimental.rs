//! Settings for subscriptions that have the experimental feature.

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::node_pool::NodePool;
use serde_json::json;

use crate::fixtures::*;

const PREFIX: &str = "aro-hcp.experimental.cluster.";

fn tagged(tags: &[(&str, &str)], world: &World) -> Result<Cluster, Vec<aro_arm::FieldError>> {
    let mut body = cluster_body(NEWEST);
    body["tags"] = tags.iter().map(|(name, value)| (format!("{PREFIX}{name}"), json!(value))).collect();
    Cluster::create(NEWEST, &body, &world.cx())
}

#[test]
fn tags_switch_settings_on() {
    let world = World::cluster().experimental();
    let cluster = tagged(
        &[
            ("Single-Replica", "SingleReplica"),
            ("size-override", "Minimal"),
            ("control-plane-operator-image-override", "quay.io/x@sha256:1"),
            ("control-plane-exact-version", "4.22.5"),
            ("max-creation-duration", "30m"),
            ("max-deletion-duration", "1h30m"),
        ],
        &world,
    )
    .unwrap();
    let features = &cluster.hosting.experimental_features;
    assert!(features.single_replica && features.minimal_size);
    assert_eq!(features.control_plane_operator_image.as_deref(), Some("quay.io/x@sha256:1"));
    assert_eq!(features.control_plane_exact_version.as_deref(), Some("4.22.5"));
    assert_eq!(
        cluster.service.create_operation_completion_deadline.unwrap().to_string(),
        "2026-11-15T10:30:00Z"
    );
    assert_eq!(cluster.service.delete_timeout_seconds(), 5400);
    assert_eq!(Cluster::made(NEWEST).service.delete_timeout_seconds(), 12 * 3600);
}

#[test]
fn tags_mean_nothing_without_the_feature() {
    let cluster =
        tagged(&[("single-replica", "SingleReplica"), ("no-such", "x")], &World::cluster()).unwrap();
    assert!(cluster.hosting.experimental_features.is_empty());
    assert_eq!(cluster.tags.len(), 2);
}

#[test]
fn wrong_tags_are_reported() {
    let world = World::cluster().experimental();
    for (name, value, why) in [
        ("single-replica", "yes", "Unsupported value: \"yes\": supported values: \"SingleReplica\""),
        ("size-override", "Small", "Unsupported value: \"Small\": supported values: \"Minimal\""),
        ("control-plane-operator-image-override", " ", "Invalid value: \" \": must be an image pull spec"),
        ("control-plane-exact-version", "4.22", "Invalid value: \"4.22\": must be a version like \"4.22.3\""),
        (
            "control-plane-exact-version",
            "4.21.1",
            "Invalid value: \"4.21.1\": must be a release of the requested version, see properties.version.id",
        ),
        (
            "max-creation-duration",
            "soon",
            "Invalid value: \"soon\": must be a duration like \"30m\" or \"1h30m\"",
        ),
        ("max-deletion-duration", "59s", "Invalid value: \"59s\": must be at least 1m"),
    ] {
        assert_eq!(problems_of(tagged(&[(name, value)], &world)), [format!("tags[{PREFIX}{name}]: {why}")]);
    }
    assert_eq!(
        problems_of(tagged(&[("singel", "x")], &world)),
        [format!("tags[{PREFIX}singel]: Invalid value: \"{PREFIX}singel\": unrecognized experimental tag")]
    );
}

#[test]
fn a_full_version_pins_the_release_and_asks_for_its_line() {
    let world = World::cluster().experimental();
    let mut body = cluster_body(NEWEST);
    set(&mut body, "properties.version", json!({"id": "4.22.7", "channelGroup": "nightly"}));
    let cluster = Cluster::create(NEWEST, &body, &world.cx()).unwrap();
    assert_eq!(cluster.properties.version.id, "4.22");
    assert_eq!(cluster.hosting.experimental_features.control_plane_exact_version.as_deref(), Some("4.22.7"));
    set(&mut body, "tags", json!({format!("{PREFIX}control-plane-exact-version"): "4.22.9"}));
    let tagged = cluster.replace(NEWEST, &body, &world.cx()).unwrap();
    assert_eq!(tagged.hosting.experimental_features.control_plane_exact_version.as_deref(), Some("4.22.9"));
    set(&mut body, "tags", json!({}));
    set(&mut body, "properties.version.id", json!("4.22"));
    let unpinned = tagged.replace(NEWEST, &body, &world.cx()).unwrap();
    assert_eq!(unpinned.hosting.experimental_features.control_plane_exact_version, None);
}

#[test]
fn the_next_major_version_is_open() {
    let mut body = cluster_body(NEWEST);
    set(&mut body, "properties.version.id", json!("5.0"));
    assert!(Cluster::create(NEWEST, &body, &World::cluster().experimental().cx()).is_ok());
    set(&mut body, "properties.version.id", json!("five"));
    assert_eq!(
        problems_of(Cluster::create(NEWEST, &body, &World::cluster().experimental().cx())),
        [
            "properties.version.id: Invalid value: \"five\": must be specified as MAJOR.MINOR or as a full version"
        ]
    );
}

#[test]
fn a_node_pool_can_be_given_less_time() {
    let mut body = node_pool_body(NEWEST);
    set(&mut body, "tags", json!({}));
    body["tags"]["aro-hcp.experimental.nodepool.max-creation-duration"] = json!("10m");
    let deadline = |world: World| {
        let pool = NodePool::create(NEWEST, &body, &world.cx()).unwrap();
        pool.service.create_operation_completion_deadline.unwrap().to_string()
    };
    assert_eq!(deadline(World::node_pool().experimental()), "2026-11-15T10:10:00Z");
    assert_eq!(deadline(World::node_pool()), "2026-11-15T11:00:00Z");
}
