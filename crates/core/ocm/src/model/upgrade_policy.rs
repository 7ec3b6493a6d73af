//! Upgrade policies.

use crate::Time;

words! {
    /// The state of an upgrade policy.
    UpgradePolicyStateValue {
        Pending = "pending",
        Scheduled = "scheduled",
        Started = "started",
        Delayed = "delayed",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

objects! {
    /// A requested upgrade of a control plane or a node pool. They differ in `kind` and `node_pool_id`.
    UpgradePolicy {
        kind: String,
        id: String,
        href: String,
        cluster_id: String,
        node_pool_id: String,
        /// `x.y.z`, without `openshift-v`.
        version: String,
        creation_timestamp: Time,
        last_update_timestamp: Time,
        state: UpgradePolicyState,
    }

    /// The state of an upgrade policy.
    UpgradePolicyState {
        kind: String,
        id: String,
        href: String,
        value: UpgradePolicyStateValue,
        description: String,
    }
}
