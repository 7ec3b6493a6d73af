//! Bodies of real clients are read and written again without loss, and without what their client refuses.

use aro_ocm::wire::Described;
use aro_ocm::{
    Cluster, ClusterAutoscaler, ErrorBody, ExternalAuth, HypershiftConfig, List, NodePool, Problem,
    ProvisionShard, Root, UpgradePolicy, shape,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads a body as the server does, and returns what it would write.
fn round_trip<T: Described + DeserializeOwned + Serialize>(body: &Value) -> Value {
    let problems = shape::problems(T::SHAPE, body);
    assert!(problems.is_empty(), "{problems:?}");
    let read: T = serde_json::from_value(shape::without_nulls(body)).expect("fits its type");
    let written = serde_json::to_value(&read).expect("JSON");
    assert_eq!(without_null(&written), None, "{written:#}");
    written
}

/// The place of a null, if there is one.
fn without_null(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("here".to_owned()),
        Value::Array(items) => items.iter().find_map(without_null),
        Value::Object(members) => {
            members.iter().find_map(|(name, inner)| without_null(inner).map(|_| name.clone()))
        }
        _ => None,
    }
}

fn sample(name: &str) -> Option<Value> {
    let file = aro_prerequisites::specs("ocm")?.join(format!("sample-{name}.json"));
    Some(serde_json::from_str(&std::fs::read_to_string(file).expect("the sample")).expect("JSON"))
}

#[test]
fn recorded_objects_survive_a_round_trip() {
    let check = |name: &str, again: fn(&Value) -> Value| {
        let Some(body) = sample(name) else { return };
        assert_eq!(again(&body), body, "{name}");
    };
    check("cluster", round_trip::<Cluster>);
    check("cluster-autoscaler", round_trip::<ClusterAutoscaler>);
    check("external-auth", round_trip::<ExternalAuth>);
    check("hypershift-config", round_trip::<HypershiftConfig>);
    check("node-pool", round_trip::<NodePool>);
    check("provision-shard", round_trip::<ProvisionShard>);
}

#[test]
fn a_full_creation_body_survives_a_round_trip() {
    let body = json!({
        "kind": "Cluster", "id": "2qrppk0otds3rdmdcojqcqkqq8f0s591", "name": "one", "domain_prefix": "one",
        "region": {"kind": "CloudRegion", "id": "westus3"},
        "cloud_provider": {"kind": "CloudProvider", "id": "azure"},
        "product": {"kind": "Product", "id": "aro"},
        "hypershift": {"enabled": true}, "ccs": {"kind": "CCS", "enabled": true}, "fips": false,
        "version": {"kind": "Version", "id": "openshift-v4.20.8", "channel_group": "stable"},
        "network": {"type": "OVNKubernetes", "pod_cidr": "10.128.0.0/14", "service_cidr": "172.30.0.0/16",
                    "machine_cidr": "10.0.0.0/16", "host_prefix": 23},
        "api": {"listening": "external",
                "cidr_block_access": {"allow": {"mode": "allow_list", "values": ["203.0.113.0/24"]}}},
        "ingresses": {"items": [{"kind": "Ingress", "default": true, "listening": "external"}]},
        "image_registry": {"state": "enabled"},
        "registry_config": {"image_digest_mirrors": [
            {"kind": "ImageMirror", "source": "quay.io/a", "mirrors": ["x.azurecr.io/a"]}]},
        "node_drain_grace_period": {"unit": "minutes", "value": 7.5},
        "autoscaler": {"kind": "ClusterAutoscaler", "max_node_provision_time": "15m", "max_pod_grace_period": 600,
                       "pod_priority_threshold": -10, "resource_limits": {"max_nodes_total": 0}},
        "properties": {"hosted_cluster_single_replica": "true"},
        "azure": {
            "tenant_id": "t", "subscription_id": "s", "resource_group_name": "g", "resource_name": "one",
            "managed_resource_group_name": "arohcp-one", "subnet_resource_id": "/subscriptions/s",
            "nodes_outbound_connectivity": {"outbound_type": "load_balancer"},
            "operators_authentication": {"managed_identities": {
                "managed_identities_data_plane_identity_url": "https://x",
                "control_plane_operators_managed_identities": {"ingress": {"resource_id": "/i"}},
                "data_plane_operators_managed_identities": {"disk-csi-driver": {"resource_id": "/d"}},
                "service_managed_identity": {"resource_id": "/s"}}},
            "etcd_encryption": {"data_encryption": {"key_management_mode": "customer_managed", "customer_managed": {
                "encryption_type": "kms",
                "kms": {"visibility": "public",
                        "active_key": {"key_vault_name": "kv", "key_name": "k", "key_version": "v"}}}}},
        },
    });
    assert_eq!(round_trip::<Cluster>(&body), body);
}

#[test]
fn nulls_of_a_client_are_read_as_absent_and_never_written() {
    let body = json!({"name": null, "fips": null, "network": {"host_prefix": null}, "properties": null,
                      "creation_timestamp": null, "ingresses": null, "status": {"state": null}});
    assert_eq!(round_trip::<Cluster>(&body), json!({"network": {}, "status": {}}));
}

#[test]
fn links_and_nested_lists_keep_their_form() {
    let links = json!({
        "node_pools": {"kind": "NodePoolListLink", "href": "/api/aro_hcp/v1alpha1/clusters/c/node_pools"},
        "autoscaler": {"kind": "ClusterAutoscalerLink", "id": "c", "href": "/x"},
        "external_auth_config": {"state": "enabled", "external_auths": {"items": []}},
    });
    assert_eq!(round_trip::<Cluster>(&links), links);
}

#[test]
fn policies_and_pools_survive_a_round_trip() {
    let pool = json!({
        "kind": "NodePool", "id": "np1", "version": {"kind": "Version", "id": "openshift-v4.20.8"}, "subnet": "",
        "availability_zone": "", "auto_repair": true, "labels": {"a": "b"},
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}], "replicas": 2,
        "node_drain_grace_period": {"unit": "minutes", "value": 10},
        "azure_node_pool": {"resource_name": "np1", "vm_size": "Standard_D8s_v3",
            "encryption_at_host": {"state": "disabled"},
            "os_disk": {"size_gibibytes": 64, "storage_account_type": "Premium_LRS", "persistence": "persistent"}},
    });
    assert_eq!(round_trip::<NodePool>(&pool), pool);
    let policy =
        json!({"kind": "ControlPlaneUpgradePolicy", "version": "4.20.9", "state": {"value": "pending"}});
    assert_eq!(round_trip::<UpgradePolicy>(&policy), policy);
}

#[test]
fn error_ids_are_strings_and_lists_always_have_items() {
    let problem = Problem::new(aro_ocm::Code::Required, "name", "'name' is required");
    let body = ErrorBody::new(Root::ClustersMgmt, 404, "Cluster 'x' not found")
        .with_problems(std::slice::from_ref(&problem));
    let written = serde_json::to_value(&body).unwrap();
    assert_eq!(written["id"], "404");
    assert_eq!(written["code"], "CLUSTERS-MGMT-404");
    assert_eq!(written["href"], "/api/clusters_mgmt/v1/errors/404");
    assert_eq!(serde_json::from_value::<ErrorBody>(written).unwrap().problems(), [problem]);
    let empty = List::<Cluster>::new("Cluster", 1, 0, Vec::new());
    let expected = json!({"kind": "ClusterList", "page": 0, "size": 0, "total": 0, "items": []});
    assert_eq!(serde_json::to_value(&empty).unwrap(), expected);
}
