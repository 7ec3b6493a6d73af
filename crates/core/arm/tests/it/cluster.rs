//! Every rule for a cluster, with its words.

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
fn members_that_are_missing_are_told_together() {
    let body = json!({"location": "uksouth"});
    let missing = |version| told(Cluster::create(version, &body, &World::cluster().cx()));
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
        told(Cluster::create(NEWEST, &cluster_body(NEWEST), &world.cx())),
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
fn networks_are_ipv4_canonical_and_apart() {
    check_table::<Cluster>(&[
        (
            "properties.network.podCidr",
            json!("10.128.0.1/14"),
            &[
                "properties.network.podCidr: Invalid value: \"10.128.0.1/14\": not IPv4 CIDR: must be \"10.128.0.0/14\"",
            ],
        ),
        (
            "properties.network.podCidr",
            json!("fd00::/8"),
            &["properties.network.podCidr: Invalid value: \"fd00::/8\": not IPv4 CIDR"],
        ),
        (
            "properties.network.serviceCidr",
            json!("172.30.0.0"),
            &["properties.network.serviceCidr: Invalid value: \"172.30.0.0\": not IPv4 CIDR"],
        ),
        (
            "properties.network.machineCidr",
            json!("10.132.0.0/16"),
            &[
                "properties.network: Invalid value: \"10.132.0.0/16\": machineCidr \"10.132.0.0/16\" and podCidr \"10.132.0.0/14\" overlap",
            ],
        ),
        (
            "properties.network.serviceCidr",
            json!("10.0.0.0/8"),
            &[
                "properties.network: Invalid value: \"10.0.0.0/8\": serviceCidr \"10.0.0.0/8\" and podCidr \"10.132.0.0/14\" overlap",
                "properties.network: Invalid value: \"10.1.0.0/16\": machineCidr \"10.1.0.0/16\" and serviceCidr \"10.0.0.0/8\" overlap",
            ],
        ),
    ]);
}

#[test]
fn the_api_is_open_to_ipv4_addresses_and_networks() {
    let many: Vec<String> = (0..501).map(|i| format!("10.0.{}.{}", i / 256, i % 256)).collect();
    let at = "properties.api.authorizedCidrs";
    check_table::<Cluster>(&[
        (at, json!(many[..500]), &[]),
        (at, json!(many), &["properties.api.authorizedCidrs: Too many: 501: must have at most 500 items"]),
        (at, json!([]), &["properties.api.authorizedCidrs: Invalid value: 0: must have at least 1 items"]),
        (
            at,
            json!([
                "1.2.3.4",
                " 1.2.3.4",
                "1.2.3.4/24",
                "::1",
                "fd00::/8",
                "x",
                "",
                "1.2.3.0/24",
                "01.2.3.4",
                "1.2.3.4/33"
            ]),
            &[
                "properties.api.authorizedCidrs[1]: Invalid value: \" 1.2.3.4\": must not contain extra whitespace",
                "properties.api.authorizedCidrs[2]: Invalid value: \"1.2.3.4/24\": not IPv4 CIDR: must be \"1.2.3.0/24\"",
                "properties.api.authorizedCidrs[3]: Invalid value: \"::1\": not IPv4",
                "properties.api.authorizedCidrs[4]: Invalid value: \"fd00::/8\": not IPv4 CIDR",
                "properties.api.authorizedCidrs[5]: Invalid value: \"x\": not an IP",
                "properties.api.authorizedCidrs[6]: Required value",
                "properties.api.authorizedCidrs[8]: Invalid value: \"01.2.3.4\": not an IP",
                "properties.api.authorizedCidrs[9]: Invalid value: \"1.2.3.4/33\": not IPv4 CIDR",
            ],
        ),
    ]);
}

#[test]
fn a_private_api_needs_an_integration_subnet() {
    assert!(creating::<Cluster>(NEWEST, "properties.api.visibility", json!("Private")).is_empty());
    assert_eq!(
        creating::<Cluster>(V2024_06_10Preview, "properties.api.visibility", json!("Private")),
        [
            "properties.api.visibility: Invalid value: \"Private\": needs vnetIntegrationSubnetId, which this api-version does not have"
        ]
    );
}

#[test]
fn azure_resources_are_of_their_type_in_the_subscription_and_not_in_the_managed_group() {
    let elsewhere = subnet("nodes").replace("0cd1e2f3", "ffffffff");
    let managed = subnet("nodes").replace("/rg/", "/MANAGED/");
    let other_network = subnet("integration").replace("/vnet/", "/other/");
    let wrong = arm("Microsoft.Network/virtualNetworks/vnet");
    let network = arm("Microsoft.Network/virtualNetworks/vnet");
    let nsg = "properties.platform.networkSecurityGroupId";
    let sub = "properties.platform.subnetId";
    let integration = "properties.platform.vnetIntegrationSubnetId";
    assert_eq!(
        creating::<Cluster>(NEWEST, nsg, json!(wrong)),
        [format!(
            "{nsg}: Invalid value: \"{wrong}\": resource ID must reference an instance of type \"Microsoft.Network/networkSecurityGroups\""
        )]
    );
    assert_eq!(
        creating::<Cluster>(NEWEST, nsg, json!("nsg")),
        [format!("{nsg}: Invalid value: \"nsg\": resource ID must start with '/'")]
    );
    assert_eq!(
        creating::<Cluster>(NEWEST, sub, json!(elsewhere)),
        [
            format!(
                "{sub}: Invalid value: \"{elsewhere}\": must be in the same Azure subscription: \"0cd1e2f3-0000-4000-8000-000000000001\""
            ),
            format!(
                "{integration}: Invalid value: \"{}\": must be in the same virtual network as subnetId: \"{}\"",
                subnet("integration"),
                network.replace("0cd1e2f3", "ffffffff")
            ),
        ]
    );
    assert_eq!(
        creating::<Cluster>(NEWEST, integration, json!(other_network)),
        [format!(
            "{integration}: Invalid value: \"{other_network}\": must be in the same virtual network as subnetId: \"{network}\""
        )]
    );
    let problems = creating::<Cluster>(NEWEST, sub, json!(managed));
    assert!(
        problems.contains(&format!(
            "{sub}: Invalid value: \"{managed}\": must not be the same resource group name: \"managed\""
        )),
        "{problems:?}"
    );
}

#[test]
fn the_managed_group_has_a_good_name_of_its_own() {
    let at = "properties.platform.managedResourceGroup";
    let long = "g".repeat(91);
    let why = "must be a resource group name: at most 90 letters, digits, '_', '-', '.', '(' or ')', not ending in '.'";
    assert!(creating::<Cluster>(NEWEST, at, json!("été_(1).x-y")).is_empty());
    for bad in ["a.", "a b", "a/b", &long] {
        assert_eq!(
            creating::<Cluster>(NEWEST, at, json!(bad)),
            [format!("{at}: Invalid value: \"{bad}\": {why}")]
        );
    }
    let problems = creating::<Cluster>(NEWEST, at, json!("RG"));
    assert!(
        problems.contains(&format!(
            "{at}: Invalid value: \"RG\": must not be the same resource group name: \"rg\""
        )),
        "{problems:?}"
    );
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
fn a_registry_identity_needs_a_new_enough_version() {
    assert_eq!(
        creating::<Cluster>(NEWEST, "properties.version.id", json!("4.21")),
        ["properties.platform.containerRegistry.managedIdentity: Forbidden: needs OpenShift 4.22 or later"]
    );
    let at = "properties.platform.containerRegistry.managedIdentity";
    let managed = mi("puller").replace("/rg/", "/managed/");
    assert_eq!(
        creating::<Cluster>(NEWEST, at, json!(managed)),
        [format!(
            "{at}: Invalid value: \"{managed}\": must not be the same resource group name: \"managed\""
        )]
    );
    let subnet = subnet("x");
    assert_eq!(
        creating::<Cluster>(NEWEST, at, json!(subnet)),
        [format!(
            "{at}: Invalid value: \"{subnet}\": resource ID must reference an instance of type \"Microsoft.ManagedIdentity/userAssignedIdentities\""
        )]
    );
}

#[test]
fn each_choice_of_encryption_needs_its_part() {
    for version in ApiVersion::ALL {
        let at = "properties.etcd.dataEncryption.customerManaged";
        let mut body = cluster_body(version);
        remove(&mut body, &format!("{at}.kms"));
        let problems = told(Cluster::create(version, &body, &World::cluster().cx()));
        assert_eq!(problems, [format!("{at}.kms: Required value")]);
        remove(&mut body, at);
        let problems = told(Cluster::create(version, &body, &World::cluster().cx()));
        assert_eq!(problems, [format!("{at}: Required value")]);
    }
    let mut body = cluster_body(V2025_12_23Preview);
    remove(&mut body, "properties.etcd.dataEncryption.customerManaged.kms.visibility");
    assert_eq!(
        told(Cluster::create(V2025_12_23Preview, &body, &World::cluster().cx())),
        ["properties.etcd.dataEncryption.customerManaged.kms.visibility: Required value"]
    );
}

#[test]
fn identities_are_used_once_each_and_only_where_they_belong() {
    let operators = "properties.platform.operatorsAuthentication.userAssignedIdentities";
    let many = "identity is used multiple times";
    let wrong = |at: String, id: &str, why: &str| format!("{at}: Invalid value: \"{id}\": {why}");
    let (cp, smi, dp, spare) = (mi("cp"), mi("smi"), mi("dp"), mi("spare"));
    let problems = |edit: &dyn Fn(&mut serde_json::Value)| {
        let mut body = cluster_body(NEWEST);
        edit(&mut body);
        Cluster::create(NEWEST, &body, &World::cluster().cx()).map_or_else(list, |_| vec![])
    };
    // (a) assigned, not used; used, not assigned
    assert_eq!(
        problems(&|body| body["identity"]["userAssignedIdentities"][&spare] = json!({})),
        [wrong(
            format!("identity.userAssignedIdentities[{spare}]"),
            &spare,
            "identity is assigned to this resource but not used"
        )]
    );
    assert_eq!(
        problems(&|body| set(body, &format!("{operators}.controlPlaneOperators.ingress"), json!(spare))),
        [wrong(
            format!("{operators}.controlPlaneOperators[ingress]"),
            &spare,
            "identity is not assigned to this resource"
        )]
    );
    assert_eq!(
        problems(&|body| remove(body, "identity")),
        [
            wrong(
                format!("{operators}.controlPlaneOperators[control-plane]"),
                &cp,
                "identity is not assigned to this resource"
            ),
            wrong(
                format!("{operators}.serviceManagedIdentity"),
                &smi,
                "identity is not assigned to this resource"
            ),
        ]
    );
    // (a) and (c) used twice, without regard to case
    let shouted = cp.to_uppercase().replace("/SUBSCRIPTIONS/", "/subscriptions/");
    let twice =
        problems(&|body| set(body, &format!("{operators}.controlPlaneOperators.ingress"), json!(shouted)));
    assert_eq!(twice.len(), 2, "{twice:?}");
    assert!(twice.iter().all(|problem| problem.ends_with(many)));
    // (b) data-plane identities are not assigned to the cluster, unless that is allowed
    let assigned = |body: &mut serde_json::Value| body["identity"]["userAssignedIdentities"][&dp] = json!({});
    assert_eq!(
        problems(&assigned),
        [wrong(
            format!("{operators}.dataPlaneOperators[disk-csi-driver]"),
            &dp,
            "identity of a data plane operator must not be assigned to this resource"
        )]
    );
    let mut world = World::cluster();
    world.allow_data_plane_identities = true;
    let mut body = cluster_body(NEWEST);
    assigned(&mut body);
    assert!(Cluster::create(NEWEST, &body, &world.cx()).is_ok());
    assert!(Cluster::create(NEWEST, &cluster_body(NEWEST), &world.cx()).is_ok());
    // (c) across planes
    assert_eq!(
        problems(&|body| set(body, &format!("{operators}.dataPlaneOperators.file-csi-driver"), json!(dp))),
        [wrong(format!("{operators}.dataPlaneOperators[file-csi-driver]"), &dp, many)]
    );
    // names, types, places
    assert_eq!(
        problems(&|body| set(body, &format!("{operators}.dataPlaneOperators"), json!({"": dp}))),
        [wrong(format!("{operators}.dataPlaneOperators[]"), "", "operator name must not be empty")]
    );
    let elsewhere = dp.replace("0cd1e2f3", "ffffffff");
    assert_eq!(
        problems(&|body| set(
            body,
            &format!("{operators}.dataPlaneOperators.disk-csi-driver"),
            json!(elsewhere)
        )),
        [wrong(
            format!("{operators}.dataPlaneOperators[disk-csi-driver]"),
            &elsewhere,
            "must be in the same Azure subscription: \"0cd1e2f3-0000-4000-8000-000000000001\""
        )]
    );
    assert_eq!(
        problems(&|body| body["identity"]["userAssignedIdentities"]["key4794"] = json!({})),
        [wrong(
            "identity.userAssignedIdentities[key4794]".into(),
            "key4794",
            "resource ID must start with '/'"
        )]
    );
    assert_eq!(problems(&|body| remove(body, "identity.type")), ["identity.type: Required value"]);
}

#[test]
fn image_mirrors_are_repositories() {
    let at = "properties.imageDigestMirrors";
    let wrong = |tail: &str, text: &str, why: &str| format!("{at}{tail}: Invalid value: \"{text}\": {why}");
    let source =
        |text: &str| creating::<Cluster>(NEWEST, at, json!([{"source": text, "mirrors": ["m.io/a"]}]));
    let mirror =
        |text: &str| creating::<Cluster>(NEWEST, at, json!([{"source": "s.io/a", "mirrors": [text]}]));
    for good in ["a.io", "a.io:5000/x/y", "10.0.0.1:5000", "10.0.0.1/x", "a-b.c/d_e/f__g/h.i-j"] {
        assert!(source(good).is_empty() && mirror(good).is_empty(), "{good}");
    }
    assert!(source("*.a.io").is_empty());
    let host = "host must be a DNS-1123 subdomain or an IP address";
    for (bad, why) in [
        ("A.io/x", "must be lower case"),
        ("https://a.io/x", "must not start with http:// or https://"),
        ("a.io/x y", "must not contain whitespace"),
        ("a.io:/x", "port must be a number"),
        ("a_b.io/x", host),
        ("/x", host),
    ] {
        assert_eq!(source(bad), [wrong("[0].source", bad, why)], "{bad}");
        assert_eq!(mirror(bad), [wrong("[0].mirrors[0]", bad, why)], "{bad}");
    }
    assert_eq!(mirror("*.a.io"), [wrong("[0].mirrors[0]", "*.a.io", host)]);
    assert_eq!(source("*.a.io/x"), [wrong("[0].source", "*.a.io/x", "must be host[:port][/path] or *.host")]);
    assert_eq!(mirror("a.io/x:tag"), [wrong("[0].mirrors[0]", "a.io/x:tag", "must be host[:port][/path]")]);
    let long = format!("{}.io", "a".repeat(253));
    let too_long = "Too long: may not be more than 255 bytes";
    assert_eq!(source(&long), [format!("{at}[0].source: {too_long}")]);
    assert_eq!(mirror(&long), [format!("{at}[0].mirrors[0]: {too_long}")]);
    assert_eq!(mirror(""), [format!("{at}[0].mirrors[0]: Required value")]);
    assert_eq!(
        creating::<Cluster>(NEWEST, at, json!([{"mirrors": []}, {"source": "a.io"}])),
        [
            format!("{at}[0].mirrors: Invalid value: 0: must have at least 1 items"),
            format!("{at}[0].source: Required value"),
            format!("{at}[1].mirrors: Required value"),
        ]
    );
    let entry = |count: usize| json!({"source": "a.io", "mirrors": vec!["b.io"; count]});
    assert_eq!(
        creating::<Cluster>(NEWEST, at, json!([entry(256)])),
        [format!("{at}[0].mirrors: Too many: 256: must have at most 255 items")]
    );
    assert_eq!(
        creating::<Cluster>(NEWEST, at, json!(vec![entry(1); 241])),
        [format!("{at}: Too many: 241: must have at most 240 items")]
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
