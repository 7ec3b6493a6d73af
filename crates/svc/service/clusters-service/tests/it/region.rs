//! The role on a port of its own, without cloud and Maestro: clusters with the noop properties become ready.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aro_base::SharedClock;
use aro_clusters_service::{ClustersService, ClustersServiceConfig, ClustersServicePorts};
use aro_net::SystemResolve;
use aro_runtime::{Listener, Metrics, Readiness, Role as _, Scope, Section as _, SystemClock};
use aro_store::SharedStore;
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub const ARO: &str = "/api/aro_hcp/v1alpha1";

pub struct Region {
    pub address: SocketAddr,
    scope: Scope,
    _dir: tempfile::TempDir,
}

impl Region {
    pub async fn start(config: ClustersServiceConfig) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let clock: SharedClock = SystemClock::shared();
        let store: SharedStore =
            SqliteStore::open(SqliteOptions::new(dir.path()), clock.clone()).expect("the store");
        let http = Listener::bind(([127, 0, 0, 1], 0).into(), "test").await.expect("a port");
        let address = http.local_addr();
        let scope = Scope::root("test");
        let ports = ClustersServicePorts {
            http,
            store,
            resolve: Arc::new(SystemResolve),
            cloud: None,
            clock,
            metrics: Metrics::new(),
            readiness: Readiness::default(),
        };
        let role = scope.role(ClustersService::NAME);
        aro_runtime::launch::<ClustersService>(&role, config.check().expect("a good configuration"), ports)
            .expect("the role starts");
        Self { address, scope, _dir: dir }
    }

    /// With an active shard, and nothing behind it.
    pub async fn noop() -> Self {
        let config = ClustersServiceConfig {
            // Nothing listens there: what needs Maestro would not become ready.
            maestro_grpc: "127.0.0.1:1".to_owned(),
            shard_capacity: 12_000,
            ..ClustersServiceConfig::default()
        };
        let region = Self::start(config).await;
        let (status, shard) = region.send("POST", &format!("{ARO}/provision_shards"), &shard()).await;
        assert_eq!(status, 201, "{shard}");
        let href = shard["href"].as_str().expect("an address");
        let (status, _) = region.send("PATCH", href, &json!({"status": "active"})).await;
        assert_eq!(status, 200);
        region
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// One request on a connection of its own.
    pub async fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        stream.write_all(format!("{head}{body}").as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    pub async fn stop(self) {
        self.scope.close(Duration::from_secs(10)).await.expect("nothing is late");
    }
}

fn shard() -> Value {
    let provider = |group: &str, kind: &str| {
        format!("/subscriptions/1d3378d3-5a3f-4712-85a1-2485495dfc4b/resourceGroups/{group}/providers/{kind}")
    };
    json!({
        "kind": "ProvisionShard", "region": {"kind": "CloudRegion", "id": "westus3"},
        "cloud_provider": {"kind": "CloudProvider", "id": "azure"}, "topology": "shared",
        "azure_shard": {
            "aks_management_cluster_resource_id":
                provider("mgmt", "Microsoft.ContainerService/managedClusters/dev-westus3-mgmt-1"),
            "public_dns_zone_resource_id": provider("regional", "Microsoft.Network/dnszones/westus3.hcp.example.com"),
            "cx_secrets_key_vault_url": "https://cx-dev-1.vault.azure.net/",
            "cx_managed_identities_key_vault_url": "https://mi-dev-1.vault.azure.net/",
            "cx_secrets_key_vault_managed_identity_client_id": "c2bde1aa-d904-48cd-a728-9de33e3ddca9"},
        "maestro_config": {"consumer_name": "hcp-underlay-westus3-mgmt-1",
            "rest_api_config": {"url": "http://maestro:8000"}, "grpc_api_config": {"url": "maestro-grpc:8090"}},
    })
}

/// A cluster for which nothing is made.
pub fn cluster(name: &str, group: &str) -> Value {
    let subscription = "6b690bec-0c16-4ecb-8f67-781caf40bba7";
    let provider =
        |kind: &str| format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/{kind}");
    let identity = |operator: &str| json!({"resource_id": provider(&format!("Microsoft.ManagedIdentity/userAssignedIdentities/{name}-{operator}"))});
    json!({
        "kind": "Cluster", "name": name,
        "region": {"kind": "CloudRegion", "id": "westus3"}, "cloud_provider": {"kind": "CloudProvider", "id": "azure"},
        "product": {"kind": "Product", "id": "aro"}, "hypershift": {"enabled": true},
        "ccs": {"kind": "CCS", "enabled": true}, "fips": false,
        "version": {"kind": "Version", "id": "openshift-v4.20.8", "channel_group": "stable"},
        "network": {"type": "OVNKubernetes", "pod_cidr": "10.128.0.0/14", "service_cidr": "172.30.0.0/16",
                    "machine_cidr": "10.0.0.0/16", "host_prefix": 23},
        "api": {"listening": "external", "cidr_block_access": {
            "allow": {"mode": "allow_list", "values": ["203.0.113.0/24", "198.51.100.0/24"]}}},
        "ingresses": {"items": [{"kind": "Ingress", "default": true, "listening": "external"}]},
        "image_registry": {"state": "enabled"},
        "registry_config": {"image_digest_mirrors": [
            {"kind": "ImageMirror", "source": "quay.io/a", "mirrors": ["x.azurecr.io/a"]}]},
        "node_drain_grace_period": {"unit": "minutes", "value": 7.5},
        "autoscaler": {"kind": "ClusterAutoscaler", "max_node_provision_time": "7.5m", "max_pod_grace_period": 600,
                       "pod_priority_threshold": -10, "resource_limits": {"max_nodes_total": 0}},
        "properties": {"provisioner_noop_provision": "true", "provisioner_noop_deprovision": "true"},
        "azure": {
            "tenant_id": "64dc69e4-d083-49fc-9569-ebece1dd1408", "subscription_id": subscription,
            "resource_group_name": group, "resource_name": name, "managed_resource_group_name": format!("arohcp-{name}"),
            "subnet_resource_id": provider(&format!("Microsoft.Network/virtualNetworks/vnet/subnets/{name}")),
            "network_security_group_resource_id": provider(&format!("Microsoft.Network/networkSecurityGroups/{name}")),
            "nodes_outbound_connectivity": {"outbound_type": "load_balancer"},
            "operators_authentication": {"managed_identities": {
                "managed_identities_data_plane_identity_url": "https://identities.example.com/x",
                "control_plane_operators_managed_identities": {"ingress": identity("ingress")},
                "data_plane_operators_managed_identities": {"disk-csi-driver": identity("disk")},
                "service_managed_identity": identity("service")}},
        },
    })
}
