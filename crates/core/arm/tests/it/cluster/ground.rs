//! What a cluster stands on: networks, groups, identities, registries.

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::version::ApiVersion::V2024_06_10Preview;
use serde_json::json;

use crate::fixtures::*;

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
