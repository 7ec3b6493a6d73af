//! A world to make requests in, and bodies that every rule is content with.

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::resource::Context;
pub use aro_arm::hcp::resource::Resource;
use aro_arm::hcp::version::ApiVersion::{self, *};
use aro_arm::{FieldError, ResourceId, SystemData};
use serde_json::{Value, json};

pub const NEWEST: ApiVersion = ApiVersion::NEWEST;
pub const GROUP: &str = "/subscriptions/0cd1e2f3-0000-4000-8000-000000000001/resourceGroups/rg";
pub const UID: &str = "11111111-2222-4333-8444-555555555555";

/// The path of a resource of the customer's group.
pub fn arm(tail: &str) -> String {
    format!("{GROUP}/providers/{tail}")
}

pub fn mi(name: &str) -> String {
    arm(&format!("Microsoft.ManagedIdentity/userAssignedIdentities/{name}"))
}

pub fn subnet(name: &str) -> String {
    arm(&format!("Microsoft.Network/virtualNetworks/vnet/subnets/{name}"))
}

/// Everything around a request; change it before asking for a context.
pub struct World {
    pub id: ResourceId,
    pub now: &'static str,
    pub identity_url: Option<&'static str>,
    pub experimental: bool,
    pub allow_data_plane_identities: bool,
    pub preflight: bool,
}

impl World {
    pub fn of(id: &str) -> Self {
        Self {
            id: ResourceId::parse(id).unwrap(),
            now: "2026-11-15T10:00:00Z",
            identity_url: Some("https://identity.example/cluster"),
            experimental: false,
            allow_data_plane_identities: false,
            preflight: false,
        }
    }

    pub fn cluster() -> Self {
        Self::of(&arm("Microsoft.RedHatOpenShift/hcpOpenShiftClusters/my-Cluster"))
    }

    pub fn node_pool() -> Self {
        Self::of(&arm("Microsoft.RedHatOpenShift/hcpOpenShiftClusters/my-Cluster/nodePools/workers"))
    }

    pub fn external_auth() -> Self {
        Self::of(&arm("Microsoft.RedHatOpenShift/hcpOpenShiftClusters/my-Cluster/externalAuths/entra"))
    }

    pub fn experimental(mut self) -> Self {
        self.experimental = true;
        self
    }

    pub fn cx(&self) -> Context<'_> {
        Context {
            id: &self.id,
            location: "uksouth",
            system_data: SystemData::default(),
            identity_url: self.identity_url,
            now: self.now.parse().unwrap(),
            new_uid: UID.parse().unwrap(),
            experimental: self.experimental,
            allow_data_plane_identities: self.allow_data_plane_identities,
            preflight: self.preflight,
        }
    }
}

/// A resource the tests can make in every version.
pub trait Sample: Resource + PartialEq + std::fmt::Debug {
    fn world() -> World;
    /// A valid body with everything set that the version knows.
    fn body(version: ApiVersion) -> Value;

    fn made(version: ApiVersion) -> Self {
        Self::create(version, &Self::body(version), &Self::world().cx()).unwrap()
    }
}

impl Sample for Cluster {
    fn world() -> World {
        World::cluster()
    }

    fn body(version: ApiVersion) -> Value {
        cluster_body(version)
    }
}

impl Sample for NodePool {
    fn world() -> World {
        World::node_pool()
    }

    fn body(version: ApiVersion) -> Value {
        node_pool_body(version)
    }
}

impl Sample for ExternalAuth {
    fn world() -> World {
        World::external_auth()
    }

    fn body(_: ApiVersion) -> Value {
        external_auth_body()
    }
}

pub fn cluster_body(version: ApiVersion) -> Value {
    let mut body = json!({
        "location": "uksouth",
        "tags": {"env": "test"},
        "identity": {"type": "UserAssigned", "userAssignedIdentities": {mi("cp"): {}, mi("smi"): {}}},
        "properties": {
            "version": {"id": "4.22", "channelGroup": "fast"},
            "dns": {"baseDomainPrefix": "prefix1"},
            "network": {"networkType": "Other", "podCidr": "10.132.0.0/14", "serviceCidr": "172.31.0.0/16",
                        "machineCidr": "10.1.0.0/16", "hostPrefix": 24},
            "api": {"visibility": "Public", "authorizedCidrs": ["192.168.1.0/24", "10.0.0.1"]},
            "ingress": {"type": "Private"},
            "platform": {
                "managedResourceGroup": "managed",
                "subnetId": subnet("nodes"),
                "vnetIntegrationSubnetId": subnet("integration"),
                "outboundType": "LoadBalancer",
                "networkSecurityGroupId": arm("Microsoft.Network/networkSecurityGroups/nsg"),
                "operatorsAuthentication": {"userAssignedIdentities": {
                    "controlPlaneOperators": {"control-plane": mi("cp")},
                    "dataPlaneOperators": {"disk-csi-driver": mi("dp")},
                    "serviceManagedIdentity": mi("smi"),
                }},
                "containerRegistry": {"managedIdentity": mi("puller")},
            },
            "autoscaling": {"maxNodesTotal": 7, "maxPodGracePeriodSeconds": 601,
                            "maxNodeProvisionTimeSeconds": 901, "podPriorityThreshold": -9},
            "etcd": {"dataEncryption": {
                "keyManagementMode": "CustomerManaged",
                "customerManaged": {"encryptionType": "KMS", "kms": {
                    "vaultName": "vault", "visibility": "Private", "keyVaultType": "ManagedHSM",
                    "activeKey": {"name": "key", "version": "v1"},
                }},
            }},
            "imageDigestMirrors": [{"source": "registry.example.com/a", "mirrors": ["mirror.example.com:5000/a"]}],
            "nodeDrainTimeoutMinutes": 20,
            "clusterImageRegistry": {"state": "Disabled"},
            "cryptoRestrictions": "FIPS",
        },
    });
    if version < V2026_10_01 {
        remove(&mut body, "properties.etcd.dataEncryption.customerManaged.kms.keyVaultType");
        remove(&mut body, "properties.platform.containerRegistry");
    }
    if version < V2026_06_30Preview {
        remove(&mut body, "properties.ingress");
        remove(&mut body, "properties.cryptoRestrictions");
    }
    if version < V2025_12_23Preview {
        for gone in ["imageDigestMirrors", "platform.vnetIntegrationSubnetId"] {
            remove(&mut body, &format!("properties.{gone}"));
        }
        remove(&mut body, "properties.etcd.dataEncryption.customerManaged.kms.visibility");
        remove(&mut body, "properties.etcd.dataEncryption.customerManaged.kms.vaultName");
        set(
            &mut body,
            "properties.etcd.dataEncryption.customerManaged.kms.activeKey.vaultName",
            json!("vault"),
        );
    }
    body
}

/// The least a version asks for.
pub fn small_cluster_body(version: ApiVersion) -> Value {
    let full = cluster_body(version);
    let mut body = json!({"location": "uksouth", "identity": full["identity"]});
    for kept in [
        "version.id",
        "platform.subnetId",
        "platform.vnetIntegrationSubnetId",
        "platform.networkSecurityGroupId",
        "platform.operatorsAuthentication",
        "etcd.dataEncryption.keyManagementMode",
        "etcd.dataEncryption.customerManaged.kms",
    ] {
        let path = format!("properties.{kept}");
        if let Some(value) = full.pointer(&format!("/{}", path.replace('.', "/"))) {
            set(&mut body, &path, value.clone());
        }
    }
    remove(&mut body, "properties.etcd.dataEncryption.customerManaged.kms.keyVaultType");
    body
}

pub fn node_pool_body(version: ApiVersion) -> Value {
    let mut body = json!({
        "location": "uksouth",
        "tags": {"env": "test"},
        "properties": {
            "version": {"id": "4.22.3", "channelGroup": "fast"},
            "platform": {
                "subnetId": subnet("nodes"), "vmSize": "Standard_D8s_v3", "availabilityZone": "1",
                "enableEncryptionAtHost": true,
                "osDisk": {"sizeGiB": 128, "diskStorageAccountType": "Standard_LRS", "diskType": "Ephemeral",
                           "encryptionSetId": arm("Microsoft.Compute/diskEncryptionSets/des")},
            },
            "autoRepair": true,
            "autoScaling": {"min": 1, "max": 3},
            "labels": [{"key": "example.com/a", "value": "b"}, {"key": "bare"}],
            "taints": [{"key": "t", "value": "v", "effect": "NoExecute"}],
            "nodeDrainTimeoutMinutes": 15,
        },
    });
    if version < V2025_12_23Preview {
        remove(&mut body, "properties.platform.osDisk.diskType");
    }
    body
}

pub fn external_auth_body() -> Value {
    json!({"properties": {
        "issuer": {"url": "https://login.example.com/tenant", "audiences": ["aud", "other"], "ca": CA},
        "clients": [
            {"clientId": "aud", "component": {"name": "console", "authClientNamespace": "openshift-console"},
             "type": "Confidential", "extraScopes": ["email"]},
            {"clientId": "other", "component": {"name": "cli", "authClientNamespace": "openshift-console"},
             "type": "Public"},
        ],
        "claim": {
            "mappings": {"username": {"claim": "email", "prefix": "x:", "prefixPolicy": "Prefix"},
                         "groups": {"claim": "groups", "prefix": "g:"}},
            "validationRules": [{"type": "RequiredClaim", "requiredClaim": {"claim": "hd", "requiredValue": "a.com"}}],
        },
    }})
}

/// A self-signed certificate.
pub const CA: &str = include_str!("ca.pem");

/// Sets a member, making the objects on the way; a number in the path is an index.
pub fn set(body: &mut Value, path: &str, value: Value) {
    let mut at = body;
    for name in path.split('.') {
        at = match name.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => at.as_object_mut().unwrap().entry(name).or_insert_with(|| json!({})),
        };
    }
    *at = value;
}

pub fn remove(body: &mut Value, path: &str) {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let pointer = if parent.is_empty() { String::new() } else { format!("/{}", parent.replace('.', "/")) };
    if let Some(parent) = body.pointer_mut(&pointer).and_then(Value::as_object_mut) {
        parent.remove(name);
    }
}

pub fn get<'a>(body: &'a Value, path: &str) -> Option<&'a Value> {
    body.pointer(&format!("/{}", path.replace('.', "/")))
}

/// Problems as `path: message`.
pub fn problems_of<T: std::fmt::Debug>(result: Result<T, Vec<FieldError>>) -> Vec<String> {
    list(result.unwrap_err())
}

pub fn list(problems: Vec<FieldError>) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// The problems of creating a sample with one member changed; none when it is accepted.
pub fn creating<T: Sample>(version: ApiVersion, path: &str, value: Value) -> Vec<String> {
    let mut body = T::body(version);
    set(&mut body, path, value);
    T::create(version, &body, &T::world().cx()).map_or_else(list, |_| Vec::new())
}

/// The problems of replacing a sample by itself with one member changed.
pub fn replacing<T: Sample>(version: ApiVersion, path: &str, value: Value) -> Vec<String> {
    let mut body = T::body(version);
    set(&mut body, path, value);
    T::made(version).replace(version, &body, &T::world().cx()).map_or_else(list, |_| Vec::new())
}

/// Checks a table of (member, value, problems) against creation in the newest version.
pub fn check_table<T: Sample>(rows: &[(&str, Value, &[&str])]) {
    for (path, value, expected) in rows {
        assert_eq!(creating::<T>(NEWEST, path, value.clone()), *expected, "{path} = {value}");
    }
}
