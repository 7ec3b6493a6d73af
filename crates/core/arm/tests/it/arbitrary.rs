//! Whatever is sent, nothing panics; and what is accepted can be stored, shown and written again.

use aro_arm::ArmError;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::version::ApiVersion;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

use crate::fixtures::*;

fn any_version() -> impl Strategy<Value = ApiVersion> {
    select(ApiVersion::ALL.to_vec())
}

/// Values a body could hold by mistake or malice.
fn any_leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-3..300_i32).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        select(vec![
            "",
            "Public",
            "Private",
            "KMS",
            "4.22",
            "4.23",
            "5.0.1",
            "10.0.0.0/8",
            "0.0.0.0/0",
            "::/0",
            "*.a",
            "/",
            "/subscriptions/s",
            "/subscriptions/s/resourceGroups/managed/providers/Microsoft.Network/virtualNetworks/v/subnets/s",
            "https://é",
            "-----BEGIN CERTIFICATE-----",
            "\u{0}",
            "aro-hcp.experimental.x",
        ])
        .prop_map(Value::from),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    any_leaf().prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(any_key(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec![
            "properties",
            "platform",
            "etcd",
            "dataEncryption",
            "customerManaged",
            "kms",
            "activeKey",
            "vaultName",
            "identity",
            "userAssignedIdentities",
            "tags",
            "name",
            "version",
            "id",
            "network",
            "claim",
            "mappings",
            "clients",
            "issuer",
            "autoScaling",
            "labels",
            "taints",
            "osDisk",
            "imageDigestMirrors",
            "type",
        ])
        .prop_map(ToOwned::to_owned),
        ".{0,6}",
    ]
}

/// Every place in a value, as a JSON pointer.
fn places(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                places(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), out);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{at}/{index}"), out);
            }
        }
        _ => {}
    }
}

/// Replaces or removes some places of a good body.
fn mutate(mut body: Value, edits: &[(Index, Option<Value>)]) -> Value {
    for (index, edit) in edits {
        let mut all = Vec::new();
        places(&body, "", &mut all);
        let place = index.get(&all).clone();
        let Some(value) = edit else {
            let (parent, key) = place.rsplit_once('/').unwrap_or(("", ""));
            if let Some(Value::Object(map)) = body.pointer_mut(parent) {
                map.remove(&key.replace("~1", "/").replace("~0", "~"));
            }
            continue;
        };
        *body.pointer_mut(&place).unwrap() = value.clone();
    }
    body
}

fn any_edits() -> impl Strategy<Value = Vec<(Index, Option<Value>)>> {
    proptest::collection::vec((any::<Index>(), proptest::option::of(any_json())), 1..4)
}

/// Runs a body through everything that can be done with it.
fn exercise<T: Sample>(version: ApiVersion, body: &Value, experimental: bool) {
    let mut world = T::world();
    world.experimental = experimental;
    let cx = world.cx();
    let stored = T::made(version);
    for result in
        [T::create(version, body, &cx), stored.replace(version, body, &cx), stored.patch(version, body, &cx)]
    {
        match result {
            Ok(object) => {
                let document = serde_json::to_vec(&object).unwrap();
                assert_eq!(serde_json::from_slice::<T>(&document).unwrap(), object);
                for other in ApiVersion::ALL {
                    let shown = object.render(other);
                    let again = object
                        .replace(other, &shown, &cx)
                        .unwrap_or_else(|e| panic!("{other}: {e:?} {shown}"));
                    assert_eq!(again.render(other), shown);
                }
            }
            Err(problems) => {
                assert!(!problems.is_empty());
                assert!(problems.iter().all(|problem| !problem.path.as_str().contains("customerProperties")));
                let mut once = list(problems.clone());
                once.dedup();
                assert_eq!(once.len(), problems.len());
                assert!(!ArmError::of_problems(problems).to_body().is_empty());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bodies_never_panic(version in any_version(), body in any_json(), experimental: bool) {
        exercise::<Cluster>(version, &body, experimental);
        exercise::<NodePool>(version, &body, experimental);
        exercise::<ExternalAuth>(version, &body, experimental);
    }

    #[test]
    fn damaged_bodies_never_panic(version in any_version(), edits in any_edits(), experimental: bool) {
        exercise::<Cluster>(version, &mutate(cluster_body(version), &edits), experimental);
        exercise::<NodePool>(version, &mutate(node_pool_body(version), &edits), experimental);
        exercise::<ExternalAuth>(version, &mutate(external_auth_body(), &edits), experimental);
    }

    #[test]
    fn random_merge_patches_never_panic(version in any_version(), edits in any_edits(), keep in any::<Index>()) {
        // A patch that holds one part of a body, damaged.
        let patch = mutate(cluster_body(version), &edits);
        let mut part = Map::new();
        if let Some(all) = patch.as_object().filter(|all| !all.is_empty()) {
            let (key, value) = all.iter().nth(keep.index(all.len())).unwrap();
            part.insert(key.clone(), value.clone());
        }
        let part = Value::Object(part);
        exercise::<Cluster>(version, &part, false);
        exercise::<NodePool>(version, &part, false);
    }

    #[test]
    fn values_only_newer_versions_know_survive_every_older_write(
        writers in proptest::collection::vec((any_version(), 0..10_i32), 1..6),
    ) {
        let mut cluster = Cluster::made(NEWEST);
        for (version, minutes) in writers {
            let mut body = cluster.render(version);
            set(&mut body, "properties.nodeDrainTimeoutMinutes", json!(minutes));
            let mut expected = cluster.clone();
            expected.properties.node_drain_timeout_minutes = minutes;
            cluster = cluster.replace(version, &body, &World::cluster().cx()).unwrap();
            prop_assert_eq!(&cluster, &expected);
        }
    }
}
