//! Node pools.

use std::collections::BTreeMap;

use crate::{NodePoolStatus, Switch, Value, Version};

words! {
    /// What a taint does to pods.
    TaintEffect {
        NoSchedule = "NoSchedule",
        NoExecute = "NoExecute",
        PreferNoSchedule = "PreferNoSchedule",
    }

    /// Whether the OS disk outlives the machine.
    DiskPersistence {
        Persistent = "persistent",
        Ephemeral = "ephemeral",
    }
}

objects! {
    /// A node pool.
    NodePool {
        kind: String,
        id: String,
        href: String,
        version: Version,
        subnet: String,
        availability_zone: String,
        auto_repair: bool,
        replicas: i64,
        autoscaling: NodePoolAutoscaling,
        labels: BTreeMap<String, String>,
        taints: Vec<Taint>,
        tuning_configs: Vec<String>,
        kubelet_configs: Vec<String>,
        node_drain_grace_period: Value,
        management_upgrade: NodePoolManagementUpgrade,
        azure_node_pool: AzureNodePool,
        status: NodePoolStatus,
    }

    /// The bounds of a pool that scales by itself.
    NodePoolAutoscaling {
        kind: String,
        id: String,
        href: String,
        min_replica: i64,
        max_replica: i64,
    }

    /// How nodes are replaced.
    NodePoolManagementUpgrade {
        kind: String,
        id: String,
        href: String,
        r#type: String,
        max_surge: String,
        max_unavailable: String,
    }

    /// A taint of nodes.
    Taint {
        key: String,
        value: String,
        effect: TaintEffect,
    }

    /// The Azure part of a pool.
    AzureNodePool {
        resource_name: String,
        vm_size: String,
        encryption_at_host: AzureNodePoolEncryptionAtHost,
        os_disk: AzureNodePoolOsDisk,
    }

    /// Whether disks are encrypted on the host.
    AzureNodePoolEncryptionAtHost {
        state: Switch,
    }

    /// The OS disk of nodes.
    AzureNodePoolOsDisk {
        size_gibibytes: i64,
        storage_account_type: String,
        persistence: DiskPersistence,
        sse_encryption_set_resource_id: String,
    }
}
