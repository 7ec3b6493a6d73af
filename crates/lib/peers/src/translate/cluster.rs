//! Clusters.

use std::collections::BTreeMap;

use aro_arm::ResourceId;
use aro_arm::hcp::cluster::{
    Cluster, ClusterProperties, CryptoRestrictions, ImageRegistryState, IngressType, Kms, NetworkType,
    Visibility,
};
use aro_arm::hcp::openshift_version::Release;
use serde_json::{Map, Value, json};

use super::{Canonical, at, go_seconds, list, minutes, version_id};

/// Properties that switch provisioning off for tests of Clusters Service. They are not ours to remove.
const NOOP: &str = "provisioner_noop_";

/// What a create needs beside the resource.
#[derive(Debug, Clone)]
pub struct Create<'a> {
    /// The id it shall have; `None` in a preflight.
    pub id: Option<&'a str>,
    /// The tenant of its subscription.
    pub tenant: &'a str,
    /// The release of its control plane.
    pub release: &'a Release,
}

/// The body that creates a cluster.
pub fn create_body(cluster: &Cluster, create: &Create<'_>) -> Value {
    let properties = &cluster.properties;
    let group = &properties.version.channel_group;
    let mut body = json!({
        "kind": "Cluster",
        "name": cluster.id.name().to_lowercase(),
        "region": {"kind": "CloudRegion", "id": cluster.location},
        "cloud_provider": {"kind": "CloudProvider", "id": "azure"},
        "product": {"kind": "Product", "id": "aro"},
        "hypershift": {"enabled": true},
        "ccs": {"kind": "CCS", "enabled": true},
        "fips": properties.crypto_restrictions == CryptoRestrictions::Fips,
        "version": {"kind": "Version", "id": version_id(create.release, group), "channel_group": group},
        "network": network(properties),
        "api": api(properties),
        "ingresses": {"items": [{"kind": "Ingress", "default": true, "listening": match properties.ingress.kind {
            IngressType::Public => "external",
            IngressType::Private => "internal",
        }}]},
        "image_registry": {"state": match properties.cluster_image_registry.state {
            ImageRegistryState::Enabled => "enabled",
            ImageRegistryState::Disabled => "disabled",
        }},
        "registry_config": {"image_digest_mirrors": mirrors(properties)},
        "node_drain_grace_period": drain(properties.node_drain_timeout_minutes),
        "autoscaler": autoscaler(properties),
        "properties": experimental(cluster),
        "azure": azure(cluster, create.tenant),
    });
    if let Some(id) = create.id {
        insert(&mut body, "id", id.into());
    }
    // An empty prefix is refused; an absent one is generated.
    if let Some(prefix) = properties.dns.base_domain_prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
        insert(&mut body, "domain_prefix", prefix.into());
    }
    body
}

/// The body that brings the members that can change to their desired state. `observed` is the object as it is: what
/// others set there and is none of ours is kept.
pub fn update_body(cluster: &Cluster, observed: &Value) -> Value {
    let properties = &cluster.properties;
    let mut experimental = experimental(cluster);
    for (name, value) in at(observed, "/properties").as_object().into_iter().flatten() {
        if name.starts_with(NOOP) {
            experimental.insert(name.clone(), value.as_str().unwrap_or_default().to_owned());
        }
    }
    let mut body = json!({
        "kind": "Cluster",
        "node_drain_grace_period": drain(properties.node_drain_timeout_minutes),
        "api": {"cidr_block_access": cidr_block_access(properties)},
        "registry_config": {"image_digest_mirrors": mirrors(properties)},
        "properties": experimental,
        "autoscaler": autoscaler(properties),
    });
    let mut azure = json!({});
    match registry_credentials(properties) {
        Some(credentials) => insert(&mut azure, "container_registry", json!({"credentials": credentials})),
        // An absent member stays as it is; a null one goes.
        None if !at(observed, "/azure/container_registry").is_null() => {
            insert(&mut azure, "container_registry", Value::Null);
        }
        None => {}
    }
    if let Some(kms) = kms(properties) {
        let key = json!({"active_key": {"key_version": kms.active_key.version}});
        let encryption = json!({"data_encryption": {"customer_managed": {"kms": key}}});
        insert(&mut azure, "etcd_encryption", encryption);
    }
    insert(&mut body, "azure", azure);
    body
}

/// What decides whether an update would change something, of an update body or of an object.
pub fn canonical(value: &Value) -> Canonical {
    let access = at(value, "/api/cidr_block_access/allow");
    let mode = at(access, "/mode").as_str().filter(|mode| !mode.is_empty()).unwrap_or("allow_all");
    let cidrs = if mode == "allow_all" { Vec::new() } else { list(access, "/values") };
    let mirrors = list(value, "/registry_config/image_digest_mirrors");
    let mirrors = mirrors.iter().map(|mirror| json!([at(mirror, "/source"), list(mirror, "/mirrors")]));
    let properties = at(value, "/properties").as_object().cloned().unwrap_or_default();
    let properties: Map<String, Value> =
        properties.into_iter().filter(|(name, _)| !name.starts_with(NOOP)).collect();
    let autoscaler = at(value, "/autoscaler");
    let number = |path| at(autoscaler, path).as_i64().unwrap_or_default();
    let key = "/azure/etcd_encryption/data_encryption/customer_managed/kms/active_key/key_version";
    let registry = "/azure/container_registry/credentials/managed_identity/resource_id";
    let drain = minutes(at(value, "/node_drain_grace_period"));
    Canonical::from([
        ("api.cidr_block_access", json!([mode, cidrs])),
        ("autoscaler.max_node_provision_time", go_seconds(at(autoscaler, "/max_node_provision_time"))),
        ("autoscaler.max_pod_grace_period", number("/max_pod_grace_period").into()),
        ("autoscaler.pod_priority_threshold", number("/pod_priority_threshold").into()),
        ("autoscaler.resource_limits.max_nodes_total", number("/resource_limits/max_nodes_total").into()),
        ("azure.container_registry", at(value, registry).clone()),
        ("azure.etcd_encryption.key_version", at(value, key).clone()),
        ("node_drain_grace_period", if drain.is_null() { json!(0.0) } else { drain }),
        ("properties", Value::Object(properties)),
        ("registry_config.image_digest_mirrors", mirrors.collect()),
    ])
}

/// The search that finds the Clusters Service cluster of a resource, whatever its id is.
pub fn search(cluster: &Cluster, tenant: &str) -> String {
    let id = &cluster.id;
    let terms = [
        ("subscription_id", id.subscription().unwrap_or_default().to_lowercase()),
        ("resource_group_name", id.resource_group().unwrap_or_default().to_lowercase()),
        ("resource_name", id.name().to_lowercase()),
        ("tenant_id", tenant.to_owned()),
        ("managed_resource_group_name", cluster.properties.platform.managed_resource_group.clone()),
    ];
    let terms: Vec<String> =
        terms.iter().map(|(name, value)| format!("azure.{name} = '{}'", value.replace('\'', "''"))).collect();
    terms.join(" and ")
}

/// Whether an object of Clusters Service belongs to this resource.
pub fn belongs_to(observed: &Value, id: &ResourceId) -> bool {
    let same = |path: &str, part: Option<&str>| {
        let (Some(theirs), Some(ours)) = (at(observed, path).as_str(), part) else { return false };
        theirs.to_lowercase() == ours.to_lowercase()
    };
    same("/azure/subscription_id", id.subscription())
        && same("/azure/resource_group_name", id.resource_group())
        && same("/azure/resource_name", Some(id.name()))
}

/// Members of Clusters Service, and what they are in ARM. The first match counts.
const TARGETS: [(&str, &str); 18] = [
    ("version", "properties.version.id"),
    ("domain_prefix", "properties.dns.baseDomainPrefix"),
    ("network", "properties.network"),
    ("api.cidr_block_access", "properties.api.authorizedCidrs"),
    ("api", "properties.api"),
    ("ingresses", "properties.ingress"),
    ("registry_config", "properties.imageDigestMirrors"),
    ("image_registry", "properties.clusterImageRegistry"),
    ("node_drain_grace_period", "properties.nodeDrainTimeoutMinutes"),
    ("autoscaler", "properties.autoscaling"),
    ("azure.subnet_resource_id", "properties.platform.subnetId"),
    ("azure.vnet_integration_subnet_resource_id", "properties.platform.vnetIntegrationSubnetId"),
    ("azure.network_security_group_resource_id", "properties.platform.networkSecurityGroupId"),
    ("azure.managed_resource_group_name", "properties.platform.managedResourceGroup"),
    ("azure.operators_authentication", "properties.platform.operatorsAuthentication"),
    ("azure.container_registry", "properties.platform.containerRegistry"),
    ("azure.etcd_encryption", "properties.etcd.dataEncryption"),
    ("azure", "properties.platform"),
];

/// The member of the resource that a member of a cluster was made from.
pub fn target_of(field: &str) -> Option<&'static str> {
    let within = |name: &str| {
        field.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    TARGETS.iter().find(|(name, _)| within(name)).map(|(_, target)| *target)
}

fn insert(body: &mut Value, name: &str, value: Value) {
    if let Some(body) = body.as_object_mut() {
        body.insert(name.to_owned(), value);
    }
}

fn network(properties: &ClusterProperties) -> Value {
    let network = &properties.network;
    json!({
        "type": match network.network_type {
            NetworkType::OvnKubernetes => "OVNKubernetes",
            NetworkType::Other => "Other",
        },
        "pod_cidr": network.pod_cidr,
        "service_cidr": network.service_cidr,
        "machine_cidr": network.machine_cidr,
        "host_prefix": network.host_prefix,
    })
}

fn api(properties: &ClusterProperties) -> Value {
    let listening = match properties.api.visibility {
        Visibility::Public => "external",
        Visibility::Private => "internal",
    };
    json!({"listening": listening, "cidr_block_access": cidr_block_access(properties)})
}

fn cidr_block_access(properties: &ClusterProperties) -> Value {
    match &properties.api.authorized_cidrs {
        None => json!({"allow": {"mode": "allow_all"}}),
        Some(values) => json!({"allow": {"mode": "allow_list", "values": values}}),
    }
}

fn mirrors(properties: &ClusterProperties) -> Vec<Value> {
    let mirror = |mirror: &aro_arm::hcp::cluster::ImageDigestMirror| json!({"kind": "ImageMirror", "source": mirror.source, "mirrors": mirror.mirrors});
    properties.image_digest_mirrors.iter().map(mirror).collect()
}

pub(super) fn drain(minutes: i32) -> Value {
    json!({"unit": "minutes", "value": minutes})
}

fn autoscaler(properties: &ClusterProperties) -> Value {
    let autoscaling = &properties.autoscaling;
    let seconds = autoscaling.max_node_provision_time_seconds;
    let time = if seconds % 60 == 0 { format!("{}m", seconds / 60) } else { format!("{seconds}s") };
    json!({
        "kind": "ClusterAutoscaler",
        "max_node_provision_time": time,
        "max_pod_grace_period": autoscaling.max_pod_grace_period_seconds,
        "pod_priority_threshold": autoscaling.pod_priority_threshold,
        "resource_limits": {"max_nodes_total": autoscaling.max_nodes_total},
    })
}

fn experimental(cluster: &Cluster) -> BTreeMap<String, String> {
    let features = &cluster.hosting.experimental_features;
    let mut properties = BTreeMap::new();
    if features.single_replica {
        properties.insert("hosted_cluster_single_replica".to_owned(), "true".to_owned());
    }
    if features.minimal_size {
        properties.insert("hosted_cluster_size_override".to_owned(), "e2e_minimal".to_owned());
    }
    if let Some(image) = &features.control_plane_operator_image {
        properties.insert("control_plane_operator_image".to_owned(), image.clone());
    }
    properties
}

fn kms(properties: &ClusterProperties) -> Option<&Kms> {
    properties.etcd.data_encryption.customer_managed.as_ref()?.kms.as_ref()
}

fn azure(cluster: &Cluster, tenant: &str) -> Value {
    let (id, platform) = (&cluster.id, &cluster.properties.platform);
    let lower = |part: Option<&str>| part.unwrap_or_default().to_lowercase();
    let mut azure = json!({
        "tenant_id": tenant,
        "subscription_id": lower(id.subscription()),
        "resource_group_name": lower(id.resource_group()),
        "resource_name": id.name().to_lowercase(),
        "managed_resource_group_name": platform.managed_resource_group,
        "nodes_outbound_connectivity": {"outbound_type": "load_balancer"},
        "operators_authentication": {"managed_identities": identities(cluster)},
    });
    // Empty strings are refused; absent members are not.
    let ids = [
        ("subnet_resource_id", &platform.subnet_id),
        ("network_security_group_resource_id", &platform.network_security_group_id),
        ("vnet_integration_subnet_resource_id", &platform.vnet_integration_subnet_id),
    ];
    for (name, value) in ids {
        if let Some(value) = value {
            insert(&mut azure, name, value.as_str().into());
        }
    }
    if let Some(credentials) = registry_credentials(&cluster.properties) {
        insert(&mut azure, "container_registry", json!({"credentials": credentials}));
    }
    if let Some(kms) = kms(&cluster.properties) {
        insert(&mut azure, "etcd_encryption", encryption(kms));
    }
    azure
}

fn registry_credentials(properties: &ClusterProperties) -> Option<Value> {
    let identity = properties.platform.container_registry.managed_identity.as_ref()?;
    Some(json!({"type": "ManagedIdentity", "managed_identity": {"resource_id": identity.as_str()}}))
}

fn identities(cluster: &Cluster) -> Value {
    let operators = &cluster.properties.platform.operators_authentication.user_assigned_identities;
    let map = |operators: &BTreeMap<String, ResourceId>| -> Map<String, Value> {
        operators.iter().map(|(name, id)| (name.clone(), json!({"resource_id": id.as_str()}))).collect()
    };
    let mut identities = json!({
        "control_plane_operators_managed_identities": map(&operators.control_plane_operators),
        "data_plane_operators_managed_identities": map(&operators.data_plane_operators),
    });
    if let Some(url) = &cluster.hosting.identity_url {
        insert(&mut identities, "managed_identities_data_plane_identity_url", url.as_str().into());
    }
    if let Some(service) = &operators.service_managed_identity {
        insert(&mut identities, "service_managed_identity", json!({"resource_id": service.as_str()}));
    }
    identities
}

fn encryption(kms: &Kms) -> Value {
    let key = json!({
        "key_vault_name": kms.vault_name,
        "key_name": kms.active_key.name,
        "key_version": kms.active_key.version,
    });
    let visibility = match kms.visibility {
        Visibility::Public => "public",
        Visibility::Private => "private",
    };
    let managed = json!({"encryption_type": "kms", "kms": {"visibility": visibility, "active_key": key}});
    json!({"data_encryption": {"key_management_mode": "customer_managed", "customer_managed": managed}})
}
