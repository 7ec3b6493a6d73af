//! A NodePool.

use aro_ocm::{DiskPersistence, NodePool, Switch, Value as Amount, names};
use serde_json::{Value, json};

use super::work::{Part, work_bundle};
use super::{Bundle, PoolInput, RELEASE_VERSION, feedback, version_number};

pub(super) fn bundle(input: &PoolInput<'_>) -> Bundle {
    let cx = &input.cx;
    let part = Part::reported("nodepools", manifest(input), &feedback::of_node_pool());
    work_bundle(cx, names::node_pool_work(cx.id, input.pool_id), input.generation, vec![part], None)
}

fn manifest(input: &PoolInput<'_>) -> Value {
    let cx = &input.cx;
    let mut annotations = cx.annotations(input.generation);
    annotations.insert(RELEASE_VERSION.to_owned(), version_number(input.pool.version.as_ref()));
    annotations
        .insert("azure.microsoft.com/hcp-nodepool-azure-resource-id".to_owned(), input.arm_id.to_owned());
    json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "NodePool",
        "metadata": {
            "name": names::node_pool_name(cx.domain_prefix, input.pool_id),
            "namespace": cx.namespace(),
            "labels": cx.labels(),
            "annotations": annotations,
        },
        "spec": spec(input),
    })
}

fn spec(input: &PoolInput<'_>) -> Value {
    let pool = input.pool;
    let mut spec = json!({
        "clusterName": input.cx.domain_prefix,
        "release": { "image": input.release_image },
        "management": {
            "autoRepair": pool.auto_repair.unwrap_or_default(),
            "upgradeType": "Replace",
            "replace": {
                "strategy": "RollingUpdate",
                "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 },
            },
        },
        "platform": { "type": "Azure", "azure": platform(input) },
    });
    match &pool.autoscaling {
        Some(bounds) => {
            spec["autoScaling"] = json!({
                "min": bounds.min_replica.unwrap_or_default(),
                "max": bounds.max_replica.unwrap_or_default(),
            });
        }
        None => spec["replicas"] = json!(pool.replicas.unwrap_or_default()),
    }
    if let Some(timeout) = drain_timeout(pool, input.cluster_drain_minutes) {
        spec["nodeDrainTimeout"] = json!(timeout);
    }
    if let Some(labels) = pool.labels.as_ref().filter(|labels| !labels.is_empty()) {
        spec["nodeLabels"] = json!(labels);
    }
    if let Some(taints) = pool.taints.as_ref().filter(|taints| !taints.is_empty()) {
        let taints = taints.iter().map(|taint| {
            json!({ "key": taint.key, "value": taint.value.as_deref().unwrap_or_default(), "effect": taint.effect })
        });
        spec["taints"] = taints.collect();
    }
    spec
}

/// A Go duration; `None` for no limit, which HyperShift writes by leaving the member out.
fn drain_timeout(pool: &NodePool, cluster_minutes: f64) -> Option<String> {
    let minutes = pool.node_drain_grace_period.as_ref().map_or(cluster_minutes, minutes);
    let seconds = (minutes * 60.0).round();
    if seconds < 1.0 {
        return None;
    }
    let seconds = seconds as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(match hours {
        0 => format!("{minutes}m{seconds}s"),
        hours => format!("{hours}h{minutes}m{seconds}s"),
    })
}

/// An amount of time in minutes.
pub(crate) fn minutes(amount: &Amount) -> f64 {
    let value = amount.value.map_or(0.0, |value| value.0);
    match amount.unit.as_deref() {
        Some("seconds" | "second") => value / 60.0,
        Some("hours" | "hour") => value * 60.0,
        _ => value,
    }
}

fn platform(input: &PoolInput<'_>) -> Value {
    let azure = input.pool.azure_node_pool.clone().unwrap_or_default();
    let disk = azure.os_disk.unwrap_or_default();
    let subnet = input.pool.subnet.as_deref().filter(|subnet| !subnet.is_empty());
    let encrypted = azure.encryption_at_host.and_then(|encryption| encryption.state) == Some(Switch::Enabled);
    let mut os_disk = json!({
        "sizeGiB": disk.size_gibibytes.unwrap_or(64),
        "diskStorageAccountType": disk.storage_account_type.as_deref().unwrap_or("Premium_LRS"),
        "persistence": match disk.persistence {
            Some(DiskPersistence::Ephemeral) => "Ephemeral",
            _ => "Persistent",
        },
    });
    if let Some(set) = disk.sse_encryption_set_resource_id.filter(|set| !set.is_empty()) {
        os_disk["encryptionSetID"] = json!(set);
    }
    let mut value = json!({
        "vmSize": azure.vm_size,
        "subnetID": subnet.unwrap_or(input.cluster_subnet),
        "encryptionAtHost": if encrypted { "Enabled" } else { "Disabled" },
        "diagnostics": { "storageAccountType": "Managed" },
        "image": { "type": "AzureMarketplace", "azureMarketplace": { "imageGeneration": "Gen2" } },
        "osDisk": os_disk,
    });
    if let Some(zone) = input.pool.availability_zone.as_deref().filter(|zone| !zone.is_empty()) {
        value["availabilityZone"] = json!(zone);
    }
    value
}
