//! Every rule for a node pool, with its words.

use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::version::ApiVersion::{self, *};
use serde_json::json;

use crate::fixtures::*;

#[test]
fn names_have_at_most_15_characters() {
    for (name, count) in [("a23456789012345", 0), ("a234567890123456", 1), ("-a", 1)] {
        let world =
            World::of(&arm(&format!("Microsoft.RedHatOpenShift/hcpOpenShiftClusters/c/nodePools/{name}")));
        let made = NodePool::create(NEWEST, &node_pool_body(NEWEST), &world.cx());
        assert_eq!(made.map_or_else(list, |_| vec![]).len(), count, "{name}");
    }
}

#[test]
fn what_is_missing_is_reported_together() {
    let missing = |version| problems_of(NodePool::create(version, &json!({}), &World::node_pool().cx()));
    assert_eq!(
        missing(NEWEST),
        ["properties.platform.vmSize: Required value", "properties.version.id: Required value"]
    );
    assert_eq!(missing(V2024_06_10Preview), ["properties.platform.vmSize: Required value"]);
}

#[test]
fn versions_are_releases_that_are_offered() {
    let at = "properties.version.id";
    for (id, why) in [
        ("4.22", "must be specified as MAJOR.MINOR.PATCH"),
        ("4.22.1+build", "must be specified as MAJOR.MINOR.PATCH"),
        ("v4.22.1", "must be specified as MAJOR.MINOR.PATCH"),
        ("4.20.7", "must be at least 4.20.8"),
        ("4.20.8-rc.1", "must be at least 4.20.8"),
    ] {
        assert_eq!(
            creating::<NodePool>(NEWEST, at, json!(id)),
            [format!("{at}: Invalid value: \"{id}\": {why}")]
        );
    }
    for good in ["4.20.8", "4.21.0-rc.1", "4.22.11"] {
        assert!(creating::<NodePool>(NEWEST, at, json!(good)).is_empty(), "{good}");
    }
    let mut body = node_pool_body(NEWEST);
    set(&mut body, at, json!("4.19.1"));
    set(&mut body, "properties.version.channelGroup", json!("nightly"));
    assert!(NodePool::create(NEWEST, &body, &World::node_pool().experimental().cx()).is_ok());
    assert_eq!(
        creating::<NodePool>(NEWEST, "properties.version.channelGroup", json!("nightly")),
        [
            "properties.version.channelGroup: Unsupported value: \"nightly\": supported values: \"fast\", \"stable\""
        ]
    );
}

#[test]
fn platforms_are_what_azure_has() {
    let at = "properties.platform";
    let problems = creating::<NodePool>(NEWEST, &format!("{at}.vmSize"), json!("Standard_D2s_v3"));
    let start = format!(
        "{at}.vmSize: Unsupported value: \"Standard_D2s_v3\": supported values: \"Standard_D128s_v6\""
    );
    assert!(problems.len() == 1 && problems[0].starts_with(&start), "{problems:?}");
    let set_at = "properties.platform.osDisk.encryptionSetId";
    let odd = arm("Microsoft.Compute/diskEncryptionSets/a.b");
    let long = arm(&format!("Microsoft.Compute/diskEncryptionSets/{}", "a".repeat(81)));
    let disk = arm("Microsoft.Compute/disks/d");
    check_table::<NodePool>(&[
        (
            "properties.platform.osDisk.diskStorageAccountType",
            json!("Ultra"),
            &[
                "properties.platform.osDisk.diskStorageAccountType: Unsupported value: \"Ultra\": supported values: \"Premium_LRS\", \"StandardSSD_LRS\", \"Standard_LRS\"",
            ],
        ),
        (
            "properties.platform.osDisk.diskType",
            json!("Shared"),
            &[
                "properties.platform.osDisk.diskType: Unsupported value: \"Shared\": supported values: \"Ephemeral\", \"Managed\"",
            ],
        ),
        (
            "properties.platform.osDisk.sizeGiB",
            json!(63),
            &["properties.platform.osDisk.sizeGiB: Invalid value: 63: must be greater than or equal to 64"],
        ),
        ("properties.platform.osDisk.sizeGiB", json!(2040), &[]),
        (
            "properties.platform.osDisk.sizeGiB",
            json!(2041),
            &["properties.platform.osDisk.sizeGiB: Invalid value: 2041: must be less than or equal to 2040"],
        ),
        ("properties.platform.osDisk", json!({"diskType": "Managed", "sizeGiB": 4095}), &[]),
        (
            "properties.platform.osDisk",
            json!({"sizeGiB": 4096}),
            &["properties.platform.osDisk.sizeGiB: Invalid value: 4096: must be less than or equal to 4095"],
        ),
        (
            set_at,
            json!(odd),
            &[&format!(
                "{set_at}: Invalid value: \"{odd}\": the name of a disk encryption set may hold only letters, digits, '_' and '-'"
            )],
        ),
        (set_at, json!(long), &[&format!("{set_at}: Too long: may not be more than 80 bytes")]),
        (
            set_at,
            json!(disk),
            &[&format!(
                "{set_at}: Invalid value: \"{disk}\": resource ID must reference an instance of type \"Microsoft.Compute/diskEncryptionSets\""
            )],
        ),
        (
            "properties.autoRepair",
            json!(false),
            &[
                "properties.autoRepair: Invalid value: false: must be true when platform.osDisk.diskType is \"Ephemeral\"",
            ],
        ),
    ]);
}

#[test]
fn sizes_are_bounded_where_there_is_no_zone() {
    let zoneless = |replicas: i32, scaling: Option<(i32, i32)>| {
        let mut body = node_pool_body(NEWEST);
        remove(&mut body, "properties.platform.availabilityZone");
        remove(&mut body, "properties.autoScaling");
        set(&mut body, "properties.replicas", json!(replicas));
        if let Some((min, max)) = scaling {
            set(&mut body, "properties.autoScaling", json!({"min": min, "max": max}));
        }
        NodePool::create(NEWEST, &body, &World::node_pool().cx()).map_or_else(list, |_| vec![])
    };
    assert!(zoneless(200, None).is_empty());
    assert!(zoneless(0, Some((0, 200))).is_empty());
    assert_eq!(
        zoneless(201, None),
        ["properties.replicas: Invalid value: 201: must be less than or equal to 200"]
    );
    assert_eq!(
        zoneless(-1, None),
        ["properties.replicas: Invalid value: -1: must be greater than or equal to 0"]
    );
    assert_eq!(
        zoneless(0, Some((201, 202))),
        [
            "properties.autoScaling.max: Invalid value: 202: must be less than or equal to 200",
            "properties.autoScaling.min: Invalid value: 201: must be less than or equal to 200",
        ]
    );
    assert_eq!(
        zoneless(2, Some((3, 1))),
        [
            "properties.autoScaling.max: Invalid value: 1: must be greater than or equal to 3",
            "properties.replicas: Invalid value: 2: must be 0 when autoScaling is set",
        ]
    );
    check_table::<NodePool>(&[
        ("properties.autoScaling", json!({"min": 300, "max": 400}), &[]),
        (
            "properties.autoScaling.min",
            json!(-1),
            &["properties.autoScaling.min: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            "properties.nodeDrainTimeoutMinutes",
            json!(10081),
            &[
                "properties.nodeDrainTimeoutMinutes: Invalid value: 10081: must be less than or equal to 10080",
            ],
        ),
    ]);
}

#[test]
fn labels_and_taints_are_kubernetes_ones() {
    let name = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    let labels = |value| creating::<NodePool>(NEWEST, "properties.labels", value);
    let taints = |value| creating::<NodePool>(NEWEST, "properties.taints", value);
    assert_eq!(
        labels(json!([{"key": "a b"}, {"value": "x"}, {"key": "a", "value": "x y"}])),
        [
            format!("properties.labels[0].key: Invalid value: \"a b\": {name}"),
            "properties.labels[1].key: Required value".to_owned(),
            format!(
                "properties.labels[2].value: Invalid value: \"x y\": a valid label must be empty or consist of{}",
                &name["name part must consist of".len()..]
            ),
        ]
    );
    for reserved in ["node-role.kubernetes.io/master", "node-role.kubernetes.io/worker"] {
        assert_eq!(
            labels(json!([{"key": reserved}])),
            [format!("properties.labels[0].key: Invalid value: \"{reserved}\": is reserved for the service")]
        );
    }
    for kind in ["role", "type"] {
        let key = format!("machine.openshift.io/cluster-api-machine-{kind}");
        for reserved in ["master", "infra"] {
            assert_eq!(
                labels(json!([{"key": key, "value": reserved}])),
                [format!(
                    "properties.labels[0].value: Invalid value: \"{reserved}\": is reserved for the service"
                )]
            );
        }
        assert!(labels(json!([{"key": key, "value": "worker"}])).is_empty());
    }
    assert_eq!(
        taints(json!([{"key": "k"}, {"effect": "NoExecute"}, {"key": "k", "effect": "Never"},
                      {"key": "a".repeat(317), "value": "v".repeat(64), "effect": "NoSchedule"},
                      {"key": "-", "value": "-", "effect": "PreferNoSchedule"}])),
        [
            "properties.taints[0].effect: Required value".to_owned(),
            "properties.taints[1].key: Required value".to_owned(),
            "properties.taints[2].effect: Unsupported value: \"Never\": supported values: \"NoExecute\", \"NoSchedule\", \"PreferNoSchedule\"".to_owned(),
            "properties.taints[3].key: Too long: may not be more than 316 bytes".to_owned(),
            "properties.taints[3].value: Too long: may not be more than 63 bytes".to_owned(),
            format!("properties.taints[4].key: Invalid value: \"-\": {name}"),
            format!("properties.taints[4].value: Invalid value: \"-\": a valid label must be empty or consist of{}", &name["name part must consist of".len()..]),
        ]
    );
}

#[test]
fn defaults_are_the_documented_ones_in_every_version() {
    let body =
        json!({"properties": {"platform": {"vmSize": "Standard_D8s_v3"}, "version": {"id": "4.22.3"}}});
    for version in ApiVersion::ALL {
        let pool = NodePool::create(version, &body, &World::node_pool().cx()).unwrap();
        let answer = pool.render(NEWEST);
        for (path, value) in [
            ("version.channelGroup", json!("stable")),
            (
                "platform.osDisk",
                json!({"diskStorageAccountType": "Premium_LRS", "diskType": "Managed", "sizeGiB": 64}),
            ),
            ("platform.enableEncryptionAtHost", json!(false)),
            ("replicas", json!(0)),
            ("autoRepair", json!(true)),
        ] {
            assert_eq!(get(&answer, &format!("properties.{path}")), Some(&value), "{path} in {version}");
        }
    }
}
