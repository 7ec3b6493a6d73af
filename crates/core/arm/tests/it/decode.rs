//! What cannot be decoded is reported at once and exactly; what callers cannot set is ignored.

use aro_arm::ArmError;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::version::ApiVersion::{self, *};
use serde_json::{Value, json};

use crate::fixtures::*;

const PREFIX: &str = "The request content was invalid and could not be deserialized: ";

#[test]
fn every_wrong_type_is_reported_with_its_path() {
    let rows: &[(&str, Value, &str)] = &[
        ("properties", json!([]), "expected an object, got an array"),
        ("properties.nodeDrainTimeoutMinutes", json!("5"), "expected an integer, got a string"),
        ("properties.nodeDrainTimeoutMinutes", json!(1.5), "expected a 32-bit integer, got 1.5"),
        (
            "properties.nodeDrainTimeoutMinutes",
            json!(99_999_999_999_i64),
            "expected a 32-bit integer, got 99999999999",
        ),
        ("properties.version.id", json!(4.22), "expected a string, got a number"),
        ("properties.api.authorizedCidrs", json!("10.0.0.0/8"), "expected an array, got a string"),
        ("properties.api.authorizedCidrs.1", json!(null), "expected a string, got null"),
        ("properties.imageDigestMirrors.0", json!("x"), "expected an object, got a string"),
        ("properties.platform.subnetId", json!({}), "expected a string, got an object"),
        ("properties.cryptoRestrictions", json!(true), "expected a string, got a boolean"),
        ("tags", json!(["a"]), "expected an object, got an array"),
        ("location", json!(1), "expected a string, got a number"),
        ("name", json!({}), "expected a string, got an object"),
        ("identity", json!("UserAssigned"), "expected an object, got a string"),
    ];
    for (path, value, why) in rows {
        let at = path.replace("Cidrs.1", "Cidrs[1]").replace("Mirrors.0", "Mirrors[0]");
        let expected = format!("{at}: {PREFIX}{at}: {why}");
        assert_eq!(creating::<Cluster>(NEWEST, path, value.clone()), [expected], "{path}");
    }
    assert_eq!(
        creating::<NodePool>(NEWEST, "properties.autoRepair", json!("yes")),
        [format!("properties.autoRepair: {PREFIX}properties.autoRepair: expected a boolean, got a string")]
    );
    let mut body = cluster_body(NEWEST);
    body["tags"]["n"] = json!(1);
    let problems = problems_of(Cluster::create(NEWEST, &body, &World::cluster().cx()));
    assert_eq!(problems, [format!("tags[n]: {PREFIX}tags[n]: expected a string, got a number")]);
}

#[test]
fn a_body_that_is_no_object_has_no_target() {
    for body in [json!(null), json!([]), json!("x"), json!(1), json!(true)] {
        let problems = Cluster::create(NEWEST, &body, &World::cluster().cx()).unwrap_err();
        let error = ArmError::of_problems(problems);
        assert!(error.message.starts_with(&format!("{PREFIX}expected an object, got ")), "{}", error.message);
        assert_eq!(error.target, None);
        assert!(Cluster::made(NEWEST).patch(NEWEST, &body, &World::cluster().cx()).is_err());
    }
}

#[test]
fn all_wrong_types_are_reported_together_and_before_anything_else() {
    let mut body = external_auth_body();
    set(&mut body, "properties.issuer.url", json!(1));
    set(&mut body, "properties.clients.0.type", json!(2));
    set(&mut body, "properties.clients.1.type", json!("Nonsense"));
    let problems = problems_of(ExternalAuth::create(NEWEST, &body, &World::external_auth().cx()));
    assert_eq!(
        problems,
        [
            format!(
                "properties.clients[0].type: {PREFIX}properties.clients[0].type: expected a string, got a number"
            ),
            format!("properties.issuer.url: {PREFIX}properties.issuer.url: expected a string, got a number"),
        ]
    );
}

#[test]
fn unknown_members_and_members_of_newer_versions_are_ignored() {
    for version in ApiVersion::ALL {
        let mut body = cluster_body(version);
        set(&mut body, "properties.nonsense", json!({"deep": [1]}));
        set(&mut body, "nonsense", json!(1));
        for (path, since) in [
            ("properties.ingress", V2026_06_30Preview),
            ("properties.cryptoRestrictions", V2026_06_30Preview),
            ("properties.imageDigestMirrors", V2025_12_23Preview),
            ("properties.platform.containerRegistry", V2026_10_01),
        ] {
            if version < since {
                set(&mut body, path, json!(17));
            }
        }
        let cluster = Cluster::create(version, &body, &World::cluster().cx()).unwrap();
        assert_eq!(cluster, Cluster::made(version), "{version}");
    }
}

#[test]
fn read_only_input_is_ignored_however_odd() {
    let mut body = cluster_body(NEWEST);
    for (path, value) in [
        ("id", json!("no id at all")),
        ("type", json!(7)),
        ("systemData", json!("me")),
        ("properties.provisioningState", json!("Succeeded")),
        ("properties.console", json!({"url": "https://evil"})),
        ("properties.api.url", json!("https://evil")),
        ("properties.dns.baseDomain", json!("evil")),
        ("properties.platform.issuerUrl", json!(["evil"])),
        ("properties.status", json!({"conditions": 3})),
        ("identity.principalId", json!("evil")),
        ("identity.tenantId", json!("evil")),
    ] {
        set(&mut body, path, value);
    }
    body["identity"]["userAssignedIdentities"][mi("cp")] = json!({"clientId": "evil", "principalId": "evil"});
    let cluster = Cluster::create(NEWEST, &body, &World::cluster().cx()).unwrap();
    assert_eq!(cluster, Cluster::made(NEWEST));
    let again = cluster.replace(NEWEST, &body, &World::cluster().cx()).unwrap();
    assert_eq!(again, cluster);
}

#[test]
fn the_url_and_the_server_win_over_the_body() {
    let mut body = cluster_body(NEWEST);
    set(&mut body, "id", json!("/subscriptions/other/resourceGroups/x/providers/P/t/n"));
    set(&mut body, "location", json!("moon"));
    let answer = Cluster::create(NEWEST, &body, &World::cluster().cx()).unwrap().render(NEWEST);
    assert_eq!(answer["id"], json!(World::cluster().id.as_str()));
    assert_eq!(answer["location"], "uksouth");
}

#[test]
fn null_is_like_nothing_unless_a_version_refuses_it() {
    for version in ApiVersion::ALL {
        let mut body = small_cluster_body(version);
        let expected = Cluster::create(version, &body, &World::cluster().cx()).unwrap();
        for path in [
            "tags",
            "properties.nodeDrainTimeoutMinutes",
            "properties.network",
            "properties.network.podCidr",
            "properties.api.visibility",
            "properties.api.authorizedCidrs",
            "properties.dns",
        ] {
            set(&mut body, path, json!(null));
            let cluster = Cluster::create(version, &body, &World::cluster().cx()).unwrap();
            assert_eq!(cluster, expected, "{path} in {version}");
            remove(&mut body, path);
        }
    }
    for path in [
        "properties.network.hostPrefix",
        "properties.autoscaling.maxNodesTotal",
        "properties.autoscaling.maxPodGracePeriodSeconds",
        "properties.autoscaling.maxNodeProvisionTimeSeconds",
        "properties.autoscaling.podPriorityThreshold",
        "properties.etcd.dataEncryption.customerManaged.kms.visibility",
        "properties.platform.vnetIntegrationSubnetId",
    ] {
        for version in ApiVersion::ALL {
            let problems = creating::<Cluster>(version, path, json!(null));
            let refused = format!("{path}: Invalid value: null: must not be null");
            let expected = if version == V2024_06_10Preview { vec![] } else { vec![refused] };
            assert_eq!(problems, expected, "{path} in {version}");
        }
    }
    assert_eq!(
        creating::<NodePool>(V2025_12_23Preview, "properties.autoRepair", json!(null)),
        ["properties.autoRepair: Invalid value: null: must not be null"]
    );
    assert!(creating::<NodePool>(V2024_06_10Preview, "properties.autoRepair", json!(null)).is_empty());
}

#[test]
fn an_empty_text_is_like_none() {
    let mut body = small_cluster_body(NEWEST);
    let expected = Cluster::create(NEWEST, &body, &World::cluster().cx()).unwrap();
    for path in [
        "properties.dns.baseDomainPrefix",
        "properties.platform.managedResourceGroup",
        "properties.api.visibility",
    ] {
        set(&mut body, path, json!(""));
    }
    assert_eq!(Cluster::create(NEWEST, &body, &World::cluster().cx()).unwrap(), expected);
    set(&mut body, "properties.platform.subnetId", json!(""));
    assert_eq!(
        problems_of(Cluster::create(NEWEST, &body, &World::cluster().cx())),
        ["properties.platform.subnetId: Required value"]
    );
}

#[test]
fn identities_are_spelt_one_way_and_count_once() {
    let mut body = cluster_body(NEWEST);
    let odd = mi("cp")
        .replace("/subscriptions/", "/SUBSCRIPTIONS/")
        .replace("/resourceGroups/", "/resourcegroups/");
    body["identity"]["userAssignedIdentities"] =
        json!({&odd: null, mi("cp"): {"clientId": "x"}, mi("smi").to_uppercase(): null});
    let cluster = Cluster::create(NEWEST, &body, &World::cluster().cx()).unwrap();
    let answer = cluster.render(NEWEST);
    let shown = answer["identity"]["userAssignedIdentities"].as_object().unwrap();
    assert_eq!(shown.len(), 2);
    assert_eq!(shown.get(&mi("cp")), Some(&json!({})));
    assert!(shown.keys().all(|id| id.starts_with("/subscriptions/")));
}
