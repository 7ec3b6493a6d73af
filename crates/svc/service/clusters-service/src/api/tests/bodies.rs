//! Bodies as the resource provider sends them.

use serde_json::{Value, json};

pub(super) const SUBSCRIPTION: &str = "6b690bec-0c16-4ecb-8f67-781caf40bba7";

/// A complete cluster. Its resources are its own.
pub(super) fn cluster(name: &str) -> Value {
    let group = |kind: &str| format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/{kind}");
    let network = group(&format!("Microsoft.Network/virtualNetworks/vnet/subnets/{name}"));
    let identity = |operator: &str| {
        let id = group(&format!("Microsoft.ManagedIdentity/userAssignedIdentities/{name}-{operator}"));
        json!({"resource_id": id})
    };
    let control: serde_json::Map<String, Value> = [
        "cluster-api-azure",
        "control-plane",
        "cloud-controller-manager",
        "ingress",
        "disk-csi-driver",
        "file-csi-driver",
        "image-registry",
        "cloud-network-config",
        "kms",
    ]
    .into_iter()
    .map(|operator| (operator.to_owned(), identity(operator)))
    .collect();
    let data: serde_json::Map<String, Value> = ["disk-csi-driver", "file-csi-driver", "image-registry"]
        .into_iter()
        .map(|operator| (operator.to_owned(), identity(&format!("dp-{operator}"))))
        .collect();
    json!({
        "kind": "Cluster", "name": name,
        "region": {"kind": "CloudRegion", "id": "westus3"},
        "cloud_provider": {"kind": "CloudProvider", "id": "azure"},
        "product": {"kind": "Product", "id": "aro"},
        "hypershift": {"enabled": true}, "ccs": {"kind": "CCS", "enabled": true}, "fips": false,
        "version": {"kind": "Version", "id": "openshift-v4.20.8", "channel_group": "stable"},
        "network": {"type": "OVNKubernetes", "pod_cidr": "10.128.0.0/14", "service_cidr": "172.30.0.0/16",
                    "machine_cidr": "10.0.0.0/16", "host_prefix": 23},
        "api": {"listening": "external",
                "cidr_block_access": {"allow": {"mode": "allow_list", "values": ["203.0.113.0/24", "198.51.100.0/24"]}}},
        "ingresses": {"items": [{"kind": "Ingress", "default": true, "listening": "external"}]},
        "image_registry": {"state": "enabled"},
        "registry_config": {"image_digest_mirrors": [
            {"kind": "ImageMirror", "source": "quay.io/a", "mirrors": ["x.azurecr.io/a"]}]},
        "node_drain_grace_period": {"unit": "minutes", "value": 7},
        "autoscaler": {"kind": "ClusterAutoscaler", "max_node_provision_time": "15m", "max_pod_grace_period": 600,
                       "pod_priority_threshold": -10, "resource_limits": {"max_nodes_total": 0}},
        "properties": {"hosted_cluster_single_replica": "true"},
        "azure": {
            "tenant_id": "64dc69e4-d083-49fc-9569-ebece1dd1408", "subscription_id": SUBSCRIPTION,
            "resource_group_name": "rg", "resource_name": name, "managed_resource_group_name": format!("arohcp-{name}"),
            "subnet_resource_id": network,
            "network_security_group_resource_id": group(&format!("Microsoft.Network/networkSecurityGroups/{name}")),
            "nodes_outbound_connectivity": {"outbound_type": "load_balancer"},
            "operators_authentication": {"managed_identities": {
                "managed_identities_data_plane_identity_url": "https://identities.example.com/x",
                "control_plane_operators_managed_identities": control,
                "data_plane_operators_managed_identities": data,
                "service_managed_identity": identity("service")}},
            "etcd_encryption": {"data_encryption": {"key_management_mode": "customer_managed", "customer_managed": {
                "encryption_type": "kms", "kms": {"visibility": "public",
                    "active_key": {"key_vault_name": "kv", "key_name": "k", "key_version": "v1"}}}}},
        },
    })
}

pub(super) fn node_pool(id: &str) -> Value {
    json!({
        "kind": "NodePool", "id": id, "version": {"kind": "Version", "id": "openshift-v4.20.8", "channel_group": "stable"},
        "subnet": "", "availability_zone": "", "auto_repair": true, "labels": {"a": "b"},
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}], "replicas": 2,
        "azure_node_pool": {"resource_name": id, "vm_size": "Standard_D8s_v3", "encryption_at_host": {"state": "disabled"},
            "os_disk": {"size_gibibytes": 64, "storage_account_type": "Premium_LRS", "persistence": "persistent"}},
    })
}

pub(super) fn external_auth(id: &str) -> Value {
    json!({
        "kind": "ExternalAuth", "id": id,
        "issuer": {"url": "https://login.example.com/t/v2.0", "ca": "", "audiences": ["a1"]},
        "clients": [{"id": "a1", "component": {"name": "console", "namespace": "openshift-console"},
                     "extra_scopes": [], "type": "confidential"}],
        "claim": {"mappings": {"username": {"claim": "sub", "prefix": "p-", "prefix_policy": "Prefix"},
                               "groups": {"claim": "groups", "prefix": ""}},
                  "validation_rules": [{"claim": "c", "required_value": "v"}]},
    })
}

pub(super) fn shard(number: u32) -> Value {
    let subscription = "1d3378d3-5a3f-4712-85a1-2485495dfc4b";
    json!({
        "kind": "ProvisionShard", "cloud_provider": {"kind": "CloudProvider", "id": "azure"},
        "region": {"kind": "CloudRegion", "id": "westus3"}, "topology": "shared",
        "azure_shard": {
            "aks_management_cluster_resource_id": format!(
                "/subscriptions/{subscription}/resourceGroups/mgmt/providers/Microsoft.ContainerService/managedClusters/dev-westus3-mgmt-{number}"),
            "public_dns_zone_resource_id": format!(
                "/subscriptions/{subscription}/resourceGroups/regional/providers/Microsoft.Network/dnszones/westus3.hcp.example.com"),
            "cx_secrets_key_vault_url": format!("https://cx-dev-{number}.vault.azure.net/"),
            "cx_managed_identities_key_vault_url": format!("https://mi-dev-{number}.vault.azure.net/"),
            "cx_secrets_key_vault_managed_identity_client_id": "c2bde1aa-d904-48cd-a728-9de33e3ddca9"},
        "maestro_config": {"consumer_name": format!("hcp-underlay-westus3-mgmt-{number}"),
            "rest_api_config": {"url": "http://maestro.maestro.svc.cluster.local:8000"},
            "grpc_api_config": {"url": "maestro-grpc.maestro.svc.cluster.local:8090"}},
    })
}
