//! Node pools.

use std::collections::HashSet;

use aro_arm::ResourceId;
use aro_arm::hcp::node_pool::vm_sizes;
use aro_ocm::{Cluster, Code, NodePool};

use super::Found;
use super::cluster::number_of;
use super::value::{drain_period, is_label_value, is_qualified_name};
use crate::versions::Catalogue;

const MAX_REPLICAS: i64 = 500;
const MAX_LABELS: usize = 200;
const MAX_TAINTS: usize = 100;
const STORAGE: [&str; 4] = ["Premium_LRS", "StandardSSD_LRS", "Standard_LRS", "UltraSSD_LRS"];
const DISK_GIB: std::ops::RangeInclusive<i64> = 1..=32_767;

/// What node pools are checked against.
pub(in crate::api) struct NodePoolRules<'r> {
    /// The releases on offer.
    pub(in crate::api) catalogue: &'r Catalogue,
    /// The pool's cluster.
    pub(in crate::api) cluster: &'r Cluster,
}

/// Everything that is wrong with a complete node pool. `creating` adds what only a new one must meet.
pub(in crate::api) fn node_pool(pool: &NodePool, rules: &NodePoolRules<'_>, creating: bool) -> Found {
    let mut found = Found::default();
    size(&mut found, pool);
    labels_and_taints(&mut found, pool);
    drain_period(&mut found, "node_drain_grace_period", pool.node_drain_grace_period.as_ref());
    if creating {
        version(&mut found, pool, rules);
        machines(&mut found, pool);
        place(&mut found, pool, rules);
    }
    found
}

fn size(found: &mut Found, pool: &NodePool) {
    match (pool.replicas, &pool.autoscaling) {
        (Some(_), Some(_)) => {
            found.add(Code::Conflicting, "replicas", "'replicas' and 'autoscaling' cannot be set together");
        }
        (None, None) => found.required("replicas"),
        (Some(replicas), None) if !(0..=MAX_REPLICAS).contains(&replicas) => {
            found.invalid("replicas", format!("'replicas' must be between 0 and {MAX_REPLICAS}"));
        }
        (Some(_), None) => {}
        (None, Some(bounds)) => {
            let (Some(min), Some(max)) = (bounds.min_replica, bounds.max_replica) else {
                return found.required("autoscaling.min_replica and autoscaling.max_replica");
            };
            if !(0..=max).contains(&min) || max > MAX_REPLICAS {
                let reason =
                    format!("'autoscaling' must have 0 <= min_replica <= max_replica <= {MAX_REPLICAS}");
                found.invalid("autoscaling", reason);
            }
        }
    }
}

fn labels_and_taints(found: &mut Found, pool: &NodePool) {
    let labels = pool.labels.iter().flatten();
    for (key, value) in labels.take(MAX_LABELS + 1) {
        if !is_qualified_name(key) {
            found.invalid("labels", format!("'{}' is not a valid label key", aro_ocm::shape::shortened(key)));
        }
        if !is_label_value(value) {
            let shown = aro_ocm::shape::shortened(value);
            found.invalid(&format!("labels.{key}"), format!("'{shown}' is not a valid label value"));
        }
    }
    if pool.labels.as_ref().is_some_and(|labels| labels.len() > MAX_LABELS) {
        found.invalid("labels", format!("'labels' has more than {MAX_LABELS} entries"));
    }
    let taints = pool.taints.as_deref().unwrap_or_default();
    if taints.len() > MAX_TAINTS {
        found.invalid("taints", format!("'taints' has more than {MAX_TAINTS} entries"));
    }
    let mut known = HashSet::new();
    for (index, taint) in taints.iter().enumerate().take(MAX_TAINTS) {
        let place = format!("taints[{index}]");
        if let Some(key) = found.text(&format!("{place}.key"), taint.key.as_ref())
            && !is_qualified_name(key)
        {
            found.invalid(
                &format!("{place}.key"),
                format!("'{}' is not a valid key", aro_ocm::shape::shortened(key)),
            );
        }
        if !taint.value.as_deref().is_none_or(is_label_value) {
            found.invalid(&format!("{place}.value"), format!("'{place}.value' is not a valid value"));
        }
        if taint.effect.is_none() {
            found.required(&format!("{place}.effect"));
        }
        if !known.insert((taint.key.as_deref(), taint.effect)) {
            found.add(Code::Duplicate, &place, "a taint with this key and effect appears before");
        }
    }
}

fn version(found: &mut Found, pool: &NodePool, rules: &NodePoolRules<'_>) {
    let Some(id) =
        pool.version.as_ref().and_then(|version| version.id.as_deref()).filter(|id| !id.is_empty())
    else {
        return;
    };
    let Some(release) = rules.catalogue.find(id) else {
        let shown = aro_ocm::shape::shortened(id);
        return found.add(Code::NotFound, "version.id", format!("Version '{shown}' not found"));
    };
    if !release.enabled {
        found.add(Code::UnsupportedValue, "version.id", format!("Version '{}' is not enabled", release.id()));
    }
    let of_cluster = rules.cluster.version.as_ref().and_then(|version| version.id.as_deref());
    if let Some(mine) = of_cluster.and_then(|id| number_of(rules.catalogue, id))
        && release.number.line() > mine.line()
    {
        let reason = format!("version {} is newer than the cluster's {mine}", release.number);
        found.invalid("version.id", reason);
    }
}

fn machines(found: &mut Found, pool: &NodePool) {
    let Some(azure) = &pool.azure_node_pool else { return found.required("azure_node_pool") };
    if let Some(size) = found.text("azure_node_pool.vm_size", azure.vm_size.as_ref())
        && !vm_sizes::is_offered(size)
    {
        let reason = format!("VM size '{}' is not supported", aro_ocm::shape::shortened(size));
        found.add(Code::UnsupportedValue, "azure_node_pool.vm_size", reason);
    }
    let Some(disk) = &azure.os_disk else { return };
    if disk.size_gibibytes.is_some_and(|size| !DISK_GIB.contains(&size)) {
        let field = "azure_node_pool.os_disk.size_gibibytes";
        found
            .invalid(field, format!("'{field}' must be between {} and {}", DISK_GIB.start(), DISK_GIB.end()));
    }
    if disk.storage_account_type.as_deref().is_some_and(|kind| !kind.is_empty() && !STORAGE.contains(&kind)) {
        let field = "azure_node_pool.os_disk.storage_account_type";
        found.add(Code::UnsupportedValue, field, format!("'{field}' must be one of {}", STORAGE.join(", ")));
    }
}

fn place(found: &mut Found, pool: &NodePool, rules: &NodePoolRules<'_>) {
    if pool.availability_zone.as_deref().is_some_and(|zone| !matches!(zone, "" | "1" | "2" | "3")) {
        found.add(Code::UnsupportedValue, "availability_zone", "'availability_zone' must be '1', '2' or '3'");
    }
    let Some(text) = pool.subnet.as_deref().filter(|text| !text.is_empty()) else { return };
    let subnet = |text: &str| {
        ResourceId::parse(text).ok().filter(|id| id.is_type("Microsoft.Network/virtualNetworks/subnets"))
    };
    let Some(id) = subnet(text) else {
        let shown = aro_ocm::shape::shortened(text);
        return found
            .invalid("subnet", format!("'subnet' value '{shown}' is not the resource id of a subnet"));
    };
    let of_cluster = rules.cluster.azure.as_ref().and_then(|azure| azure.subnet_resource_id.as_deref());
    if let Some(mine) = of_cluster.and_then(subnet)
        && mine.parent() != id.parent()
    {
        found.invalid("subnet", "'subnet' must be in the virtual network of the cluster's subnet");
    }
}
