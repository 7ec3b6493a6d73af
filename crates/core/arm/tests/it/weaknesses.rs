//! Weaknesses of other implementations, one per test.

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::version::ApiVersion::{self, *};
use serde_json::json;

use crate::fixtures::*;

#[test]
fn a_kms_update_without_customer_managed_is_refused_and_never_panics() {
    for version in ApiVersion::ALL {
        for cut in ["customerManaged", "customerManaged.kms", "customerManaged.kms.activeKey"] {
            let cut = format!("properties.etcd.dataEncryption.{cut}");
            let mut body = cluster_body(version);
            remove(&mut body, &cut);
            let problems =
                problems_of(Cluster::made(version).replace(version, &body, &World::cluster().cx()));
            assert!(
                problems.iter().any(|problem| problem.contains("Required value")),
                "{version}: {problems:?}"
            );
        }
    }
}

#[test]
fn a_malformed_id_in_the_body_is_ignored() {
    for id in [json!("x"), json!(""), json!(7), json!(null), json!({}), json!("/subscriptions")] {
        assert!(creating::<Cluster>(NEWEST, "id", id.clone()).is_empty(), "{id}");
        assert!(replacing::<Cluster>(NEWEST, "id", id.clone()).is_empty(), "{id}");
    }
}

#[test]
fn a_cluster_made_before_integration_subnets_can_be_written_with_newer_versions() {
    let cluster = Cluster::made(V2024_06_10Preview);
    let at = "properties.platform.vnetIntegrationSubnetId";
    for version in ApiVersion::ALL {
        let mut body = cluster.render(version);
        assert_eq!(get(&body, at), None);
        assert!(cluster.replace(version, &body, &World::cluster().cx()).is_ok(), "{version}");
        let patch = json!({"properties": {"nodeDrainTimeoutMinutes": 3}});
        assert!(cluster.patch(version, &patch, &World::cluster().cx()).is_ok(), "{version}");
        // It is decided at creation: it stays absent.
        if version > V2024_06_10Preview {
            set(&mut body, at, json!(subnet("integration")));
            let problems = problems_of(cluster.replace(version, &body, &World::cluster().cx()));
            assert_eq!(problems, [format!("{at}: Forbidden: field is immutable")], "{version}");
        }
    }
    // A cluster that has one cannot lose it.
    let mut body = cluster_body(NEWEST);
    remove(&mut body, at);
    let problems = problems_of(Cluster::made(NEWEST).replace(NEWEST, &body, &World::cluster().cx()));
    assert_eq!(problems, [format!("{at}: Required value")]);
}

#[test]
fn losing_the_experimental_feature_does_not_wipe_stored_settings() {
    let with = World::cluster().experimental();
    let mut body = cluster_body(NEWEST);
    body["tags"]["aro-hcp.experimental.cluster.single-replica"] = json!("SingleReplica");
    set(&mut body, "properties.version", json!({"id": "4.22.7", "channelGroup": "candidate"}));
    let cluster = Cluster::create(NEWEST, &body, &with.cx()).unwrap();
    let patch = json!({"properties": {"nodeDrainTimeoutMinutes": 3}});
    let after = cluster.patch(NEWEST, &patch, &World::cluster().cx()).unwrap();
    assert_eq!(after.hosting.experimental_features, cluster.hosting.experimental_features);
    // New ones are not honoured.
    let patch = json!({"tags": {"aro-hcp.experimental.cluster.size-override": "Minimal"}});
    let after = cluster.patch(NEWEST, &patch, &World::cluster().cx()).unwrap();
    assert_eq!(after.hosting.experimental_features, cluster.hosting.experimental_features);
}

#[test]
fn a_name_in_the_body_may_differ_in_case_from_the_url() {
    assert!(creating::<Cluster>(NEWEST, "name", json!("MY-CLUSTER")).is_empty());
    assert!(replacing::<Cluster>(NEWEST, "name", json!("my-cluster")).is_empty());
}

#[test]
fn targets_are_the_paths_of_the_api_version_that_was_used() {
    let kms = "properties.etcd.dataEncryption.customerManaged.kms";
    for version in ApiVersion::ALL {
        let at = if version == V2024_06_10Preview {
            format!("{kms}.activeKey.vaultName")
        } else {
            format!("{kms}.vaultName")
        };
        let long = json!("v".repeat(256));
        assert_eq!(
            creating::<Cluster>(version, &at, long),
            [format!("{at}: Too long: may not be more than 255 bytes")]
        );
        assert_eq!(creating::<Cluster>(version, &at, json!("")), [format!("{at}: Required value")]);
        assert_eq!(
            replacing::<Cluster>(version, &at, json!("other")),
            [format!("{at}: Forbidden: field is immutable")]
        );
        let problems = creating::<Cluster>(version, &at, json!(1));
        assert_eq!(
            problems,
            [format!(
                "{at}: The request content was invalid and could not be deserialized: {at}: expected a string, got a number"
            )]
        );
        for (path, value) in [("identity.type", json!("x")), ("name", json!("x"))] {
            let problems = creating::<Cluster>(version, path, value);
            assert!(problems.len() == 1 && problems[0].starts_with(&format!("{path}: ")), "{problems:?}");
        }
    }
}

#[test]
fn the_default_managed_group_carries_the_name_and_a_replace_that_omits_it_keeps_it() {
    let long = "c".repeat(54);
    for (name, part) in [("my-Cluster", "my-Cluster"), (long.as_str(), &long[..45])] {
        let world = World::of(&arm(&format!("Microsoft.RedHatOpenShift/hcpOpenShiftClusters/{name}")));
        for version in ApiVersion::ALL {
            let body = small_cluster_body(version);
            let cluster = Cluster::create(version, &body, &world.cx()).unwrap();
            let group = cluster.properties.platform.managed_resource_group.clone();
            assert_eq!(group, format!("arohcp-{part}-{UID}"));
            assert!(group.len() <= 90);
            let mut cx = world.cx();
            cx.new_uid = "99999999-2222-4333-8444-555555555555".parse().unwrap();
            let again = cluster.replace(version, &body, &cx).unwrap();
            assert_eq!(again.properties.platform.managed_resource_group, group, "{version}");
        }
    }
}

#[test]
fn the_oldest_version_prints_zero_and_false_so_that_get_then_put_changes_nothing() {
    let version = V2024_06_10Preview;
    let mut body = cluster_body(version);
    set(&mut body, "properties.nodeDrainTimeoutMinutes", json!(0));
    let cluster = Cluster::create(version, &body, &World::cluster().cx()).unwrap();
    let answer = cluster.render(version);
    assert_eq!(answer["properties"]["nodeDrainTimeoutMinutes"], 0);
    assert_eq!(cluster.replace(version, &answer, &World::cluster().cx()).unwrap(), cluster);
}

#[test]
fn old_versions_say_that_customer_managed_must_be_sent() {
    for version in [V2024_06_10Preview, V2025_12_23Preview] {
        let at = "properties.etcd.dataEncryption.keyManagementMode";
        let mut body = cluster_body(version);
        remove(&mut body, at);
        assert_eq!(
            problems_of(Cluster::create(version, &body, &World::cluster().cx())),
            [format!(
                "{at}: Required value: \"CustomerManaged\" must be sent; \"PlatformManaged\", the default of this api-version, is not supported"
            )]
        );
        assert_eq!(
            creating::<Cluster>(version, at, json!("PlatformManaged")),
            [format!("{at}: Unsupported value: \"PlatformManaged\": supported values: \"CustomerManaged\"")]
        );
    }
}
