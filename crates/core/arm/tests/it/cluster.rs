//! Every rule for a cluster, with its words.

mod ground;

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::version::ApiVersion::{self, *};
use serde_json::json;

use crate::fixtures::*;

#[test]
fn names_follow_the_rule() {
    let long = "a".repeat(55);
    let syntax =
        "must start with a letter, end with a letter or digit, and hold only letters, digits and '-'";
    for (name, expected) in [
        ("a", vec![]),
        ("Ab-9", vec![]),
        (&long[..54], vec![]),
        (long.as_str(), vec!["name: Too long: may not be more than 54 bytes".to_owned()]),
        ("9a", vec![format!("name: Invalid value: \"9a\": {syntax}")]),
        ("a-", vec![format!("name: Invalid value: \"a-\": {syntax}")]),
        ("a_b", vec![format!("name: Invalid value: \"a_b\": {syntax}")]),
    ] {
        let world = World::of(&arm(&format!("Microsoft.RedHatOpenShift/hcpOpenShiftClusters/{name}")));
        let made = Cluster::create(NEWEST, &cluster_body(NEWEST), &world.cx());
        assert_eq!(made.map_or_else(list, |_| vec![]), expected, "{name}");
    }
}

#[test]
fn a_name_in_the_body_is_the_one_of_the_url() {
    assert!(creating::<Cluster>(NEWEST, "name", json!("my-Cluster")).is_empty());
    assert_eq!(
        creating::<Cluster>(NEWEST, "name", json!("other")),
        ["name: Invalid value: \"other\": must match the name in the URL: \"my-Cluster\""]
    );
}

#[test]
fn members_that_are_missing_are_reported_together() {
    let body = json!({"location": "uksouth"});
    let missing = |version| problems_of(Cluster::create(version, &body, &World::cluster().cx()));
    let mut expected = vec![
        "properties.etcd.dataEncryption.keyManagementMode: Required value",
        "properties.platform.networkSecurityGroupId: Required value",
        "properties.platform.operatorsAuthentication.userAssignedIdentities.controlPlaneOperators: Required value",
        "properties.platform.operatorsAuthentication.userAssignedIdentities.dataPlaneOperators: Required value",
        "properties.platform.subnetId: Required value",
        "properties.platform.vnetIntegrationSubnetId: Required value",
        "properties.version.id: Required value",
    ];
    assert_eq!(missing(NEWEST), expected);
    expected.remove(5);
    let hint = "properties.etcd.dataEncryption.keyManagementMode: Required value: \"CustomerManaged\" must be sent; \
                \"PlatformManaged\", the default of this api-version, is not supported";
    expected[0] = hint;
    assert_eq!(missing(V2024_06_10Preview), expected);
}

#[test]
fn an_identity_url_is_needed_unless_one_only_asks() {
    let mut world = World::cluster();
    world.identity_url = None;
    assert_eq!(
        problems_of(Cluster::create(NEWEST, &cluster_body(NEWEST), &world.cx())),
        ["identity: Required value: the X-Ms-Identity-Url header must be sent"]
    );
    world.preflight = true;
    assert!(Cluster::create(NEWEST, &cluster_body(NEWEST), &world.cx()).is_ok());
}

#[test]
fn words_are_matched_to_the_letter() {
    check_table::<Cluster>(&[
        (
            "properties.network.networkType",
            json!("ovnkubernetes"),
            &[
                "properties.network.networkType: Unsupported value: \"ovnkubernetes\": supported values: \"OVNKubernetes\", \"Other\"",
            ],
        ),
        (
            "properties.api.visibility",
            json!("public"),
            &[
                "properties.api.visibility: Unsupported value: \"public\": supported values: \"Private\", \"Public\"",
            ],
        ),
        (
            "properties.ingress.type",
            json!("Disabled"),
            &[
                "properties.ingress.type: Unsupported value: \"Disabled\": supported values: \"Private\", \"Public\"",
            ],
        ),
        (
            "properties.platform.outboundType",
            json!("UserDefinedRouting"),
            &[
                "properties.platform.outboundType: Unsupported value: \"UserDefinedRouting\": supported values: \"LoadBalancer\"",
            ],
        ),
        (
            "properties.clusterImageRegistry.state",
            json!("On"),
            &[
                "properties.clusterImageRegistry.state: Unsupported value: \"On\": supported values: \"Disabled\", \"Enabled\"",
            ],
        ),
        (
            "properties.cryptoRestrictions",
            json!("fips"),
            &[
                "properties.cryptoRestrictions: Unsupported value: \"fips\": supported values: \"FIPS\", \"None\"",
            ],
        ),
        (
            "properties.etcd.dataEncryption.keyManagementMode",
            json!("PlatformManaged"),
            &[
                "properties.etcd.dataEncryption.keyManagementMode: Unsupported value: \"PlatformManaged\": supported values: \"CustomerManaged\"",
            ],
        ),
        (
            "properties.etcd.dataEncryption.customerManaged.encryptionType",
            json!("X"),
            &[
                "properties.etcd.dataEncryption.customerManaged.encryptionType: Unsupported value: \"X\": supported values: \"KMS\"",
            ],
        ),
        (
            "properties.etcd.dataEncryption.customerManaged.kms.visibility",
            json!("X"),
            &[
                "properties.etcd.dataEncryption.customerManaged.kms.visibility: Unsupported value: \"X\": supported values: \"Private\", \"Public\"",
            ],
        ),
        (
            "properties.etcd.dataEncryption.customerManaged.kms.keyVaultType",
            json!("HSM"),
            &[
                "properties.etcd.dataEncryption.customerManaged.kms.keyVaultType: Unsupported value: \"HSM\": supported values: \"KeyVault\", \"ManagedHSM\"",
            ],
        ),
        (
            "identity.type",
            json!("Nobody"),
            &[
                "identity.type: Unsupported value: \"Nobody\": supported values: \"None\", \"SystemAssigned\", \"SystemAssigned,UserAssigned\", \"UserAssigned\"",
            ],
        ),
        (
            "properties.version.channelGroup",
            json!("candidate"),
            &[
                "properties.version.channelGroup: Unsupported value: \"candidate\": supported values: \"fast\", \"stable\"",
            ],
        ),
    ]);
}

#[test]
fn numbers_have_their_ranges() {
    let too_small = |path: &str, value: i32, least: i32| {
        format!("{path}: Invalid value: {value}: must be greater than or equal to {least}")
    };
    let too_large = |path: &str, value: i32, most: i32| {
        format!("{path}: Invalid value: {value}: must be less than or equal to {most}")
    };
    for (path, least, most) in [
        ("properties.network.hostPrefix", 23, Some(26)),
        ("properties.autoscaling.maxNodesTotal", 0, Some(500)),
        ("properties.autoscaling.maxPodGracePeriodSeconds", 1, None),
        ("properties.autoscaling.maxNodeProvisionTimeSeconds", 1, None),
        ("properties.nodeDrainTimeoutMinutes", 0, Some(10080)),
    ] {
        assert!(creating::<Cluster>(NEWEST, path, json!(least)).is_empty(), "{path}");
        assert_eq!(creating::<Cluster>(NEWEST, path, json!(least - 1)), [too_small(path, least - 1, least)]);
        let Some(most) = most else { continue };
        assert!(creating::<Cluster>(NEWEST, path, json!(most)).is_empty(), "{path}");
        assert_eq!(creating::<Cluster>(NEWEST, path, json!(most + 1)), [too_large(path, most + 1, most)]);
    }
    let path = "properties.autoscaling.podPriorityThreshold";
    assert_eq!(creating::<Cluster>(NEWEST, path, json!(0)), [format!("{path}: Required value")]);
    assert!(creating::<Cluster>(NEWEST, path, json!(1)).is_empty());
}

#[test]
fn texts_have_their_lengths() {
    let long = "k".repeat(256);
    let kms = "properties.etcd.dataEncryption.customerManaged.kms";
    for member in ["vaultName", "activeKey.name", "activeKey.version"] {
        let path = format!("{kms}.{member}");
        assert!(creating::<Cluster>(NEWEST, &path, json!(&long[..255])).is_empty());
        assert_eq!(
            creating::<Cluster>(NEWEST, &path, json!(long)),
            [format!("{path}: Too long: may not be more than 255 bytes")]
        );
        assert_eq!(creating::<Cluster>(NEWEST, &path, json!("")), [format!("{path}: Required value")]);
    }
    check_table::<Cluster>(&[
        ("properties.dns.baseDomainPrefix", json!("abcdefghijklmno"), &[]),
        (
            "properties.dns.baseDomainPrefix",
            json!("abcdefghijklmnop"),
            &["properties.dns.baseDomainPrefix: Too long: may not be more than 15 bytes"],
        ),
        (
            "properties.dns.baseDomainPrefix",
            json!("9abc"),
            &[
                "properties.dns.baseDomainPrefix: Invalid value: \"9abc\": (must be a valid DNS RFC 1035 label)",
            ],
        ),
    ]);
}

#[test]
fn versions_are_lines_that_are_offered() {
    let at = "properties.version.id";
    for (version, why) in [
        ("4.22.1", "must be specified as MAJOR.MINOR; the patch release is managed by the service"),
        ("latest", "must be specified as MAJOR.MINOR; the patch release is managed by the service"),
        ("4.19", "must be at least 4.20"),
        ("5.0", "major version 5 is not offered"),
    ] {
        let problems = creating::<Cluster>(V2026_09_01Preview, at, json!(version));
        assert_eq!(problems, [format!("{at}: Invalid value: \"{version}\": {why}")]);
    }
    for version in ["4.20", "4.21", "4.22", "4.99"] {
        assert!(creating::<Cluster>(V2026_09_01Preview, at, json!(version)).is_empty(), "{version}");
    }
    for group in ["stable", "fast"] {
        assert!(creating::<Cluster>(NEWEST, "properties.version.channelGroup", json!(group)).is_empty());
    }
}

#[test]
fn each_choice_of_encryption_needs_its_part() {
    for version in ApiVersion::ALL {
        let at = "properties.etcd.dataEncryption.customerManaged";
        let mut body = cluster_body(version);
        remove(&mut body, &format!("{at}.kms"));
        let problems = problems_of(Cluster::create(version, &body, &World::cluster().cx()));
        assert_eq!(problems, [format!("{at}.kms: Required value")]);
        remove(&mut body, at);
        let problems = problems_of(Cluster::create(version, &body, &World::cluster().cx()));
        assert_eq!(problems, [format!("{at}: Required value")]);
    }
    let mut body = cluster_body(V2025_12_23Preview);
    remove(&mut body, "properties.etcd.dataEncryption.customerManaged.kms.visibility");
    assert_eq!(
        problems_of(Cluster::create(V2025_12_23Preview, &body, &World::cluster().cx())),
        ["properties.etcd.dataEncryption.customerManaged.kms.visibility: Required value"]
    );
}

#[test]
fn defaults_are_the_documented_ones_in_every_version() {
    for version in ApiVersion::ALL {
        let cluster = Cluster::create(version, &small_cluster_body(version), &World::cluster().cx()).unwrap();
        let answer = cluster.render(NEWEST);
        for (path, value) in [
            ("network.networkType", json!("OVNKubernetes")),
            ("network.podCidr", json!("10.128.0.0/14")),
            ("network.serviceCidr", json!("172.30.0.0/16")),
            ("network.machineCidr", json!("10.0.0.0/16")),
            ("network.hostPrefix", json!(23)),
            ("api.visibility", json!("Public")),
            ("ingress.type", json!("Public")),
            ("platform.outboundType", json!("LoadBalancer")),
            ("autoscaling.maxPodGracePeriodSeconds", json!(600)),
            ("autoscaling.maxNodeProvisionTimeSeconds", json!(900)),
            ("autoscaling.podPriorityThreshold", json!(-10)),
            ("nodeDrainTimeoutMinutes", json!(0)),
            ("etcd.dataEncryption.customerManaged.encryptionType", json!("KMS")),
            ("clusterImageRegistry.state", json!("Enabled")),
            ("cryptoRestrictions", json!("None")),
            ("version.channelGroup", json!("stable")),
        ] {
            assert_eq!(get(&answer, &format!("properties.{path}")), Some(&value), "{path} in {version}");
        }
        for absent in ["autoscaling.maxNodesTotal", "api.authorizedCidrs", "imageDigestMirrors", "dns"] {
            assert_eq!(get(&answer, &format!("properties.{absent}")), None, "{absent} in {version}");
        }
        assert_eq!(cluster.hosting.cluster_uid.to_string(), UID);
        assert_eq!(
            cluster.service.create_operation_completion_deadline.unwrap().to_string(),
            "2026-11-15T11:00:00Z"
        );
    }
}
