//! States and statuses.

use crate::Time;

words! {
    /// The state of a cluster. ARO uses the first seven.
    ClusterState {
        Validating = "validating",
        Pending = "pending",
        Installing = "installing",
        Ready = "ready",
        Updating = "updating",
        Uninstalling = "uninstalling",
        Error = "error",
        Waiting = "waiting",
        Hibernating = "hibernating",
        PoweringDown = "powering_down",
        Resuming = "resuming",
        Unknown = "unknown",
    }

    /// The state of a node pool.
    NodePoolStateValue {
        Validating = "validating",
        Pending = "pending",
        Installing = "installing",
        Ready = "ready",
        ValidatingUpdate = "validating_update",
        PendingUpdate = "pending_update",
        Updating = "updating",
        Uninstalling = "uninstalling",
        RecoverableError = "recoverable_error",
        Error = "error",
    }

    /// The state of an external auth.
    ExternalAuthStateValue {
        Ready = "ready",
        Uninstalling = "uninstalling",
        Error = "error",
    }

    /// How much of a cluster is managed.
    ConfigurationMode {
        Full = "full",
        ReadOnly = "read_only",
    }

    /// Whether a cluster is healthy.
    ClusterHealthState {
        Healthy = "healthy",
        Unhealthy = "unhealthy",
        Unknown = "unknown",
    }
}

impl ClusterState {
    /// Whether the desired state of the cluster, its pools and its external auths may be changed.
    pub fn is_updatable(self) -> bool {
        matches!(self, Self::Ready | Self::Updating)
    }
}

impl NodePoolStateValue {
    /// Whether the desired state of the pool may be changed.
    pub fn is_updatable(self) -> bool {
        matches!(self, Self::Ready | Self::ValidatingUpdate | Self::PendingUpdate | Self::Updating)
    }
}

objects! {
    /// The status of a cluster.
    ClusterStatus {
        kind: String,
        id: String,
        href: String,
        state: ClusterState,
        description: String,
        dns_ready: bool,
        oidc_ready: bool,
        provision_error_code: String,
        provision_error_message: String,
        configuration_mode: ConfigurationMode,
        limited_support_reason_count: i64,
        current_compute: i64,
    }

    /// The status of a node pool.
    NodePoolStatus {
        kind: String,
        id: String,
        href: String,
        state: NodePoolState,
        current_replicas: i64,
        message: String,
    }

    /// The state of a node pool and since when it has it.
    NodePoolState {
        kind: String,
        id: String,
        href: String,
        value: NodePoolStateValue,
        last_updated_timestamp: Time,
    }

    /// The status of an external auth.
    ExternalAuthStatus {
        state: ExternalAuthState,
        message: String,
    }

    /// The state of an external auth and since when it has it.
    ExternalAuthState {
        value: ExternalAuthStateValue,
        last_updated_timestamp: Time,
    }
}
