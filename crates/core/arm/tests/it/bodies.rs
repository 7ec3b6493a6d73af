//! Answers, member by member and byte by byte.

use aro_arm::hcp::admission::{ControlPlaneVersions, node_pool};
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::resource::{ActiveVersion, Condition, ConditionStatus};
use aro_arm::hcp::version::ApiVersion::{self, *};
use aro_arm::operation::ProvisioningState;
use aro_arm::{SystemData, json as body};
use serde_json::{Value, json};

use crate::fixtures::*;

fn condition(kind: &str, at: &str) -> Condition {
    Condition {
        kind: kind.into(),
        status: ConditionStatus::True,
        reason: "Valid".into(),
        message: String::new(),
        last_transition_time: at.parse().unwrap(),
    }
}

/// A cluster in full operation.
fn ready() -> Cluster {
    let mut cluster = Cluster::made(NEWEST);
    cluster.set_provisioning_state(ProvisioningState::Succeeded);
    cluster.hosting.api_url = Some("https://api.prefix1.uuok.uksouth.aroapp-hcp.io:443".into());
    cluster.hosting.console_url = Some("https://console".into());
    cluster.hosting.base_domain = Some("uuok.uksouth.aroapp-hcp.io".into());
    cluster.hosting.issuer_url = Some("https://issuer".into());
    cluster.status.conditions = vec![condition("RequirementsValid", "2026-09-04T23:30:07.25Z")];
    cluster.status.active_versions = vec![ActiveVersion { version: "4.22".into() }];
    for known in cluster.identity.as_mut().unwrap().user_assigned_identities.values_mut() {
        known.client_id = Some("c".into());
        known.principal_id = Some("p".into());
    }
    cluster
}

fn sorted(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.keys().is_sorted() && map.values().all(sorted),
        Value::Array(items) => items.iter().all(sorted),
        _ => true,
    }
}

#[test]
fn every_answer_has_its_keys_in_alphabetical_order() {
    for version in ApiVersion::ALL {
        assert!(sorted(&ready().render(version)));
        assert!(sorted(&NodePool::made(version).render(version)));
        assert!(sorted(&ExternalAuth::made(version).render(version)));
    }
}

#[test]
fn a_new_cluster_shows_what_the_live_service_shows_and_nothing_else() {
    let cluster =
        Cluster::create(V2026_09_01Preview, &small_cluster_body(V2026_09_01Preview), &World::cluster().cx());
    let answer = cluster.unwrap().render(V2026_09_01Preview);
    let keys = |at: &Value| at.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&answer), ["id", "identity", "location", "name", "properties", "systemData", "type"]);
    assert_eq!(
        keys(&answer["properties"]),
        [
            "api",
            "autoscaling",
            "clusterImageRegistry",
            "cryptoRestrictions",
            "etcd",
            "ingress",
            "network",
            "nodeDrainTimeoutMinutes",
            "platform",
            "provisioningState",
            "version"
        ]
    );
    let properties = &answer["properties"];
    assert_eq!(properties["api"], json!({"visibility": "Public"}));
    assert_eq!(
        properties["autoscaling"],
        json!({"maxNodeProvisionTimeSeconds": 900, "maxPodGracePeriodSeconds": 600, "podPriorityThreshold": -10})
    );
    assert_eq!(properties["nodeDrainTimeoutMinutes"], 0);
    assert_eq!(properties["provisioningState"], "Accepted");
    assert_eq!(properties["version"], json!({"channelGroup": "stable", "id": "4.22"}));
    assert_eq!(answer["identity"]["userAssignedIdentities"][mi("cp")], json!({}));
    assert_eq!(answer["systemData"]["createdAt"], answer["systemData"]["lastModifiedAt"]);
    assert_eq!(answer["name"], "my-Cluster");
    assert_eq!(answer["type"], "Microsoft.RedHatOpenShift/hcpOpenShiftClusters");
}

#[test]
fn a_ready_cluster_adds_what_the_service_made() {
    let answer = ready().render(NEWEST);
    let properties = &answer["properties"];
    assert_eq!(properties["api"]["url"], "https://api.prefix1.uuok.uksouth.aroapp-hcp.io:443");
    assert_eq!(properties["console"], json!({"url": "https://console"}));
    assert_eq!(properties["dns"]["baseDomain"], "uuok.uksouth.aroapp-hcp.io");
    assert_eq!(properties["platform"]["issuerUrl"], "https://issuer");
    assert_eq!(
        answer["identity"]["userAssignedIdentities"][mi("cp")],
        json!({"clientId": "c", "principalId": "p"})
    );
    assert_eq!(
        properties["status"],
        json!({
            "activeVersions": [{"version": "4.22"}],
            "conditions": [{"lastTransitionTime": "2026-09-04T23:30:07Z", "message": "", "reason": "Valid",
                            "status": "True", "type": "RequirementsValid"}],
        })
    );
}

#[test]
fn each_version_shows_only_what_it_knows() {
    for (path, since) in [
        ("properties.imageDigestMirrors", V2025_12_23Preview),
        ("properties.platform.vnetIntegrationSubnetId", V2025_12_23Preview),
        ("properties.etcd.dataEncryption.customerManaged.kms.vaultName", V2025_12_23Preview),
        ("properties.etcd.dataEncryption.customerManaged.kms.visibility", V2025_12_23Preview),
        ("properties.ingress", V2026_06_30Preview),
        ("properties.cryptoRestrictions", V2026_06_30Preview),
        ("properties.status", V2026_06_30Preview),
        ("properties.status.activeVersions", V2026_10_01),
        ("properties.platform.containerRegistry", V2026_10_01),
        ("properties.etcd.dataEncryption.customerManaged.kms.keyVaultType", V2026_10_01),
    ] {
        for version in ApiVersion::ALL {
            let shown = get(&ready().render(version), path).is_some();
            assert_eq!(shown, version >= since, "{path} in {version}");
        }
    }
    let oldest = ready().render(V2024_06_10Preview);
    let key = get(&oldest, "properties.etcd.dataEncryption.customerManaged.kms.activeKey").unwrap();
    assert_eq!(*key, json!({"name": "key", "vaultName": "vault", "version": "v1"}));
}

#[test]
fn a_status_is_absent_when_a_version_would_show_an_empty_one() {
    let mut cluster = ready();
    cluster.status.conditions.clear();
    assert!(get(&cluster.render(V2026_09_01Preview), "properties.status").is_none());
    assert!(get(&cluster.render(V2026_10_01), "properties.status.activeVersions").is_some());
    assert!(get(&cluster.render(V2026_10_01), "properties.status.conditions").is_none());
}

#[test]
fn an_external_auth_shows_one_condition_in_old_versions_and_all_in_new_ones() {
    let mut auth = ExternalAuth::made(NEWEST);
    for version in ApiVersion::ALL {
        assert!(get(&auth.render(version), "properties.condition").is_none());
        assert!(get(&auth.render(version), "properties.status").is_none());
    }
    auth.status.conditions = vec![
        condition("Available", "2026-09-04T23:30:07Z"),
        condition("Progressing", "2026-09-05T00:00:00Z"),
    ];
    for version in ApiVersion::ALL {
        let answer = auth.render(version);
        let old = version <= V2025_12_23Preview;
        assert_eq!(
            get(&answer, "properties.condition.type"),
            old.then_some(&json!("Available")),
            "{version}"
        );
        assert_eq!(get(&answer, "properties.status.conditions.1").is_some(), !old, "{version}");
    }
    auth.status.conditions.remove(0);
    let answer = auth.render(V2024_06_10Preview);
    assert_eq!(get(&answer, "properties.condition.type"), Some(&json!("Progressing")));
}

#[test]
fn a_proxy_resource_has_no_place_tags_or_identity() {
    let answer = ExternalAuth::made(NEWEST).render(NEWEST);
    let keys: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "name", "properties", "systemData", "type"]);
}

/// The live service answered the creation of such a node pool with these bytes, names apart.
#[test]
fn a_new_node_pool_is_written_as_the_live_service_writes_it() {
    let mut world = World::node_pool();
    world.now = "2026-09-04T23:42:41.57Z";
    let mut cx = world.cx();
    cx.system_data = SystemData::parse(
        r#"{"createdBy":"u","createdByType":"User","createdAt":"2026-09-04T23:42:41.5711111Z",
            "lastModifiedBy":"u","lastModifiedByType":"User","lastModifiedAt":"2026-09-04T23:42:41.5711111Z"}"#,
    )
    .unwrap();
    let sent = json!({"location": "uksouth", "properties": {
        "autoRepair": true,
        "platform": {"enableEncryptionAtHost": false,
                     "osDisk": {"diskStorageAccountType": "Premium_LRS", "diskType": "Managed", "sizeGiB": 64},
                     "vmSize": "Standard_D8s_v3"},
        "replicas": 1, "version": {"channelGroup": "stable", "id": "4.22.11"}}});
    let mut pool = NodePool::create(V2026_09_01Preview, &sent, &cx).unwrap();
    let parent = Cluster::made(V2026_09_01Preview);
    assert_eq!(node_pool::admit_create(&mut pool, &parent, &ControlPlaneVersions::default()), []);
    let text = String::from_utf8(body::to_body(&pool.render(V2026_09_01Preview))).unwrap();
    let expected = format!(
        r#"{{
    "id": "{GROUP}/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/my-Cluster/nodePools/workers",
    "location": "uksouth",
    "name": "workers",
    "properties": {{
        "autoRepair": true,
        "platform": {{
            "enableEncryptionAtHost": false,
            "osDisk": {{
                "diskStorageAccountType": "Premium_LRS",
                "diskType": "Managed",
                "sizeGiB": 64
            }},
            "subnetId": "{GROUP}/providers/Microsoft.Network/virtualNetworks/vnet/subnets/nodes",
            "vmSize": "Standard_D8s_v3"
        }},
        "provisioningState": "Accepted",
        "replicas": 1,
        "version": {{
            "channelGroup": "stable",
            "id": "4.22.11"
        }}
    }},
    "systemData": {{
        "createdAt": "2026-09-04T23:42:41.5711111Z",
        "createdBy": "u",
        "createdByType": "User",
        "lastModifiedAt": "2026-09-04T23:42:41.5711111Z",
        "lastModifiedBy": "u",
        "lastModifiedByType": "User"
    }},
    "type": "Microsoft.RedHatOpenShift/hcpOpenShiftClusters/nodePools"
}}"#
    );
    assert_eq!(text, expected);
}

#[test]
fn a_node_pool_prints_false_and_zero_and_leaves_out_what_is_unset() {
    let sent =
        json!({"properties": {"platform": {"vmSize": "Standard_D8s_v3"}, "version": {"id": "4.22.11"}}});
    for version in ApiVersion::ALL {
        let pool = NodePool::create(version, &sent, &World::node_pool().cx()).unwrap();
        let properties = &pool.render(version)["properties"];
        assert_eq!(properties["replicas"], 0);
        assert_eq!(properties["autoRepair"], true);
        assert_eq!(properties["platform"]["enableEncryptionAtHost"], false);
        for unset in ["autoScaling", "labels", "taints", "nodeDrainTimeoutMinutes", "status"] {
            assert_eq!(properties.get(unset), None, "{unset}");
        }
        for unset in ["availabilityZone", "subnetId"] {
            assert_eq!(properties["platform"].get(unset), None, "{unset}");
        }
    }
}
