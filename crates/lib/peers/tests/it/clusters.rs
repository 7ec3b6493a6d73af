use aro_ocm::patch::{CLUSTER, merge};
use aro_ocm::wire::Described as _;
use aro_ocm::{Cluster as OcmCluster, shape};
use aro_peers::translate::cluster::{
    Create, belongs_to, canonical, create_body, search, target_of, update_body,
};
use aro_peers::translate::differences;
use serde_json::{Value, json};

use crate::support::{TENANT, cluster, names, release};

fn body(cluster: &aro_arm::hcp::cluster::Cluster) -> Value {
    create_body(
        cluster,
        &Create { id: Some("2qrppk0otds3rdmdcojqcqkqq8f0s591"), tenant: TENANT, release: &release() },
    )
}

/// What Clusters Service shows after a create: what was sent, read and written by its model.
fn stored(sent: &Value) -> Value {
    let read: OcmCluster = serde_json::from_value(sent.clone()).unwrap();
    serde_json::to_value(read).unwrap()
}

#[test]
fn the_body_of_a_create_is_what_clusters_service_reads() {
    let sent = body(&cluster(|_| {}));
    assert_eq!(shape::problems(OcmCluster::SHAPE, &sent), []);
    assert_eq!(stored(&sent), sent, "no member is unknown to the model");
    for (path, expected) in [
        ("/id", json!("2qrppk0otds3rdmdcojqcqkqq8f0s591")),
        ("/name", json!("blue")),
        ("/region/id", json!("uksouth")),
        ("/version", json!({"kind": "Version", "id": "openshift-v4.22.10", "channel_group": "stable"})),
        ("/network/pod_cidr", json!("10.128.0.0/14")),
        ("/network/host_prefix", json!(23)),
        ("/api", json!({"listening": "external", "cidr_block_access": {"allow": {"mode": "allow_all"}}})),
        ("/ingresses/items/0/listening", json!("external")),
        ("/image_registry/state", json!("enabled")),
        ("/fips", json!(false)),
        ("/autoscaler/max_node_provision_time", json!("15m")),
        ("/autoscaler/pod_priority_threshold", json!(-10)),
        ("/node_drain_grace_period", json!({"unit": "minutes", "value": 0})),
        ("/azure/tenant_id", json!(TENANT)),
        ("/azure/subscription_id", json!("aaaaaaaa-0000-0000-0000-000000000001")),
        ("/azure/resource_group_name", json!("rg-test")),
        ("/azure/resource_name", json!("blue")),
        ("/azure/managed_resource_group_name", json!("mrg-Blue")),
        (
            "/azure/etcd_encryption/data_encryption/customer_managed/kms/active_key/key_vault_name",
            json!("kv-Blue"),
        ),
    ] {
        assert_eq!(sent.pointer(path), Some(&expected), "{path}");
    }
    assert_eq!(sent.pointer("/domain_prefix"), None, "an empty prefix is refused");
    let identities = sent.pointer("/azure/operators_authentication/managed_identities").unwrap();
    assert_eq!(identities["control_plane_operators_managed_identities"].as_object().unwrap().len(), 9);
    assert_eq!(identities["data_plane_operators_managed_identities"].as_object().unwrap().len(), 3);
    assert_eq!(identities["managed_identities_data_plane_identity_url"], "https://identity.example.com/c");
}

#[test]
fn a_created_cluster_is_as_desired() {
    let cluster = cluster(|body| {
        body["properties"]["api"]["authorizedCidrs"] = json!(["203.0.113.0/24"]);
        body["properties"]["imageDigestMirrors"] =
            json!([{"source": "quay.io/a", "mirrors": ["x.azurecr.io/a"]}]);
        body["properties"]["autoscaling"] = json!({"maxNodesTotal": 10, "maxNodeProvisionTimeSeconds": 450});
        body["tags"] = json!({"aro-hcp.experimental.cluster.single-replica": "SingleReplica"});
    });
    let observed = stored(&body(&cluster));
    let desired = update_body(&cluster, &observed);
    assert_eq!(differences(&canonical(&desired), &canonical(&observed)), Vec::<&str>::new());
}

#[test]
fn each_change_is_named_and_its_update_converges() {
    let before = stored(&body(&cluster(|body| {
        body["properties"]["api"]["authorizedCidrs"] = json!(["203.0.113.0/24", "198.51.100.0/24"]);
        body["properties"]["imageDigestMirrors"] =
            json!([{"source": "quay.io/a", "mirrors": ["x.azurecr.io/a"]}]);
        body["tags"] = json!({"aro-hcp.experimental.cluster.single-replica": "SingleReplica"});
    })));
    type Change = fn(&mut Value);
    let unchanged: Change = |body| {
        body["properties"]["api"]["authorizedCidrs"] = json!(["203.0.113.0/24", "198.51.100.0/24"]);
        body["properties"]["imageDigestMirrors"] =
            json!([{"source": "quay.io/a", "mirrors": ["x.azurecr.io/a"]}]);
        body["tags"] = json!({"aro-hcp.experimental.cluster.single-replica": "SingleReplica"});
    };
    let cases: [(&str, Change); 8] = [
        ("api.cidr_block_access", |body| {
            body["properties"]["api"]["authorizedCidrs"] = json!(["203.0.113.0/24"]);
        }),
        ("api.cidr_block_access", |body| {
            body["properties"]["api"].as_object_mut().unwrap().remove("authorizedCidrs");
        }),
        ("registry_config.image_digest_mirrors", |body| body["properties"]["imageDigestMirrors"] = json!([])),
        ("node_drain_grace_period", |body| body["properties"]["nodeDrainTimeoutMinutes"] = json!(30)),
        ("autoscaler.max_node_provision_time", |body| {
            body["properties"]["autoscaling"] = json!({"maxNodeProvisionTimeSeconds": 100});
        }),
        ("autoscaler.resource_limits.max_nodes_total", |body| {
            body["properties"]["autoscaling"] = json!({"maxNodesTotal": 5});
        }),
        ("properties", |body| body["tags"] = json!({})),
        ("azure.etcd_encryption.key_version", |body| {
            body["properties"]["etcd"]["dataEncryption"]["customerManaged"]["kms"]["activeKey"]["version"] =
                json!("v2");
        }),
    ];
    for (name, change) in cases {
        let wanted = cluster(|body| {
            unchanged(body);
            change(body);
        });
        let update = update_body(&wanted, &before);
        assert_eq!(differences(&canonical(&update), &canonical(&before)), [name]);
        let after =
            merge(CLUSTER, &before, &update).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
        let after = stored(&after);
        assert_eq!(differences(&canonical(&update), &canonical(&after)), Vec::<&str>::new(), "{name}");
        let key = "/azure/etcd_encryption/data_encryption/customer_managed/kms/active_key/key_vault_name";
        assert_eq!(after.pointer(key), before.pointer(key), "an update keeps what it does not name");
    }
}

#[test]
fn properties_that_switch_provisioning_off_are_kept_and_not_compared() {
    let cluster = cluster(|_| {});
    let mut observed = stored(&body(&cluster));
    observed["properties"] = json!({"provisioner_noop_provision": "true", "left_over": "x"});
    let update = update_body(&cluster, &observed);
    assert_eq!(update["properties"], json!({"provisioner_noop_provision": "true"}));
    assert_eq!(differences(&canonical(&update), &canonical(&observed)), ["properties"]);
}

#[test]
fn a_cluster_is_searched_and_recognised_by_its_resource() {
    let cluster = cluster(|_| {});
    assert_eq!(
        search(&cluster, "it's"),
        "azure.subscription_id = 'aaaaaaaa-0000-0000-0000-000000000001' and azure.resource_group_name = 'rg-test' and \
         azure.resource_name = 'blue' and azure.tenant_id = 'it''s' and azure.managed_resource_group_name = 'mrg-Blue'"
    );
    let observed = body(&cluster);
    assert!(belongs_to(&observed, &cluster.id));
    let other = aro_arm::ResourceId::parse(&names().cluster("other")).unwrap();
    assert!(!belongs_to(&observed, &other));
}

#[test]
fn members_of_a_cluster_are_named_as_the_caller_knows_them() {
    for (field, target) in [
        ("azure.subnet_resource_id", Some("properties.platform.subnetId")),
        ("azure.etcd_encryption.data_encryption", Some("properties.etcd.dataEncryption")),
        ("azure.unheard_of", Some("properties.platform")),
        ("network.pod_cidr", Some("properties.network")),
        ("api.cidr_block_access.allow.values[0]", Some("properties.api.authorizedCidrs")),
        ("networking", None),
        ("", None),
    ] {
        assert_eq!(target_of(field), target, "{field}");
    }
}

#[test]
fn the_identity_of_nodes_at_their_registry_is_set_and_taken_back() {
    let identity = format!(
        "/subscriptions/{}/resourceGroups/infra/providers/Microsoft.ManagedIdentity/userAssignedIdentities/pull",
        names().subscription
    );
    let plain = cluster(|_| {});
    let before = stored(&body(&plain));
    let mut with = plain.clone();
    with.properties.platform.container_registry.managed_identity =
        Some(aro_arm::ResourceId::parse(&identity).unwrap());
    let update = update_body(&with, &before);
    assert_eq!(differences(&canonical(&update), &canonical(&before)), ["azure.container_registry"]);
    let after = merge(CLUSTER, &before, &update).unwrap();
    assert_eq!(differences(&canonical(&update), &canonical(&after)), Vec::<&str>::new());

    let back = update_body(&plain, &after);
    assert_eq!(differences(&canonical(&back), &canonical(&after)), ["azure.container_registry"]);
    let cleared = merge(CLUSTER, &after, &back).unwrap();
    assert_eq!(differences(&canonical(&back), &canonical(&stored(&cleared))), Vec::<&str>::new());
}
