//! Node pools.

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::node_pool::{DiskStorageAccountType, DiskType, Effect, NodePool, NodePoolProperties};
use aro_arm::hcp::openshift_version::Release;
use serde_json::{Map, Value, json};

use super::cluster::drain;
use super::{Canonical, at, list, minutes, text, version_id};

/// The id of a node pool in Clusters Service.
pub fn id_of(pool: &NodePool) -> String {
    pool.id.name().to_lowercase()
}

/// The body that creates a node pool. `release` stands in where the resource names none.
pub fn create_body(pool: &NodePool, cluster: &Cluster, release: &Release) -> Value {
    let (properties, platform) = (&pool.properties, &pool.properties.platform);
    let requested = properties.version.id.as_deref().and_then(Release::parse);
    let release = requested.as_ref().unwrap_or(release);
    let group = &properties.version.channel_group;
    let mut disk = json!({
        "size_gibibytes": platform.os_disk.size_gib,
        "storage_account_type": storage_account_type(platform.os_disk.disk_storage_account_type),
        "persistence": match platform.os_disk.disk_type {
            DiskType::Managed => "persistent",
            DiskType::Ephemeral => "ephemeral",
        },
    });
    if let (Some(set), Some(disk)) = (&platform.os_disk.encryption_set_id, disk.as_object_mut()) {
        disk.insert("sse_encryption_set_resource_id".to_owned(), set.as_str().into());
    }
    let encryption = if platform.enable_encryption_at_host { "enabled" } else { "disabled" };
    let subnet = platform.subnet_id.as_ref().or(cluster.properties.platform.subnet_id.as_ref());
    let mut body = json!({
        "kind": "NodePool",
        "id": id_of(pool),
        "version": {"kind": "Version", "id": version_id(release, group), "channel_group": group},
        "subnet": subnet.map(aro_arm::ResourceId::as_str).unwrap_or_default(),
        "availability_zone": platform.availability_zone.as_deref().unwrap_or_default(),
        "auto_repair": properties.auto_repair,
        "azure_node_pool": {
            "resource_name": id_of(pool),
            "vm_size": platform.vm_size,
            "encryption_at_host": {"state": encryption},
            "os_disk": disk,
        },
    });
    if let (Some(body), Value::Object(changing)) = (body.as_object_mut(), update_body(pool, cluster)) {
        body.extend(changing);
    }
    body
}

/// The body that brings the members that can change to their desired state. A pool without a drain time of its own takes the
/// cluster's, whatever it is now.
pub fn update_body(pool: &NodePool, cluster: &Cluster) -> Value {
    let properties = &pool.properties;
    let minutes = properties.node_drain_timeout_minutes;
    let labels: Map<String, Value> = properties
        .labels
        .iter()
        .map(|label| (label.key.clone(), label.value.as_deref().unwrap_or_default().into()))
        .collect();
    let mut body = json!({
        "kind": "NodePool",
        "labels": labels,
        "taints": taints(properties),
        "node_drain_grace_period": drain(minutes.unwrap_or(cluster.properties.node_drain_timeout_minutes)),
    });
    let (name, size) = match properties.auto_scaling {
        Some(range) => (
            "autoscaling",
            json!({"kind": "NodePoolAutoscaling", "min_replica": range.min, "max_replica": range.max}),
        ),
        None => ("replicas", properties.replicas.into()),
    };
    if let Some(body) = body.as_object_mut() {
        body.insert(name.to_owned(), size);
    }
    body
}

/// What decides whether an update would change something, of an update body or of an object.
pub fn canonical(value: &Value) -> Canonical {
    let scaling = at(value, "/autoscaling");
    let number = |value: &Value, path| at(value, path).as_i64().unwrap_or_default();
    let size = match scaling.is_object() {
        true => json!([number(scaling, "/min_replica"), number(scaling, "/max_replica")]),
        false => number(value, "/replicas").into(),
    };
    let taints = list(value, "/taints");
    let taints = taints
        .iter()
        .map(|taint| json!([text(taint, "/key"), text(taint, "/value"), text(taint, "/effect")]));
    let labels = at(value, "/labels").as_object().cloned().unwrap_or_default();
    Canonical::from([
        ("labels", Value::Object(labels)),
        ("node_drain_grace_period", minutes(at(value, "/node_drain_grace_period"))),
        ("replicas", size),
        ("taints", taints.collect()),
    ])
}

fn taints(properties: &NodePoolProperties) -> Vec<Value> {
    let taint = |taint: &aro_arm::hcp::node_pool::Taint| {
        let effect = match taint.effect {
            Effect::NoSchedule => "NoSchedule",
            Effect::PreferNoSchedule => "PreferNoSchedule",
            Effect::NoExecute => "NoExecute",
        };
        json!({"key": taint.key, "value": taint.value.as_deref().unwrap_or_default(), "effect": effect})
    };
    properties.taints.iter().map(taint).collect()
}

fn storage_account_type(kind: DiskStorageAccountType) -> &'static str {
    match kind {
        DiskStorageAccountType::PremiumLrs => "Premium_LRS",
        DiskStorageAccountType::StandardSsdLrs => "StandardSSD_LRS",
        DiskStorageAccountType::StandardLrs => "Standard_LRS",
    }
}
