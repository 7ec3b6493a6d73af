//! The cluster autoscaler.

objects! {
    /// The settings of the cluster autoscaler.
    ClusterAutoscaler {
        kind: String,
        id: String,
        href: String,
        balance_similar_node_groups: bool,
        skip_nodes_with_local_storage: bool,
        log_verbosity: i64,
        /// Seconds.
        max_pod_grace_period: i64,
        pod_priority_threshold: i64,
        ignore_daemonsets_utilization: bool,
        /// A Go duration.
        max_node_provision_time: String,
        balancing_ignored_labels: Vec<String>,
        resource_limits: AutoscalerResourceLimits,
        scale_down: AutoscalerScaleDownConfig,
    }

    /// Upper bounds of the autoscaler.
    AutoscalerResourceLimits {
        max_nodes_total: i64,
        cores: ResourceRange,
        memory: ResourceRange,
        gpus: Vec<AutoscalerResourceLimitsGPULimit>,
    }

    /// A range.
    ResourceRange {
        min: i64,
        max: i64,
    }

    /// A range of one type of GPU.
    AutoscalerResourceLimitsGPULimit {
        r#type: String,
        range: ResourceRange,
    }

    /// When nodes are removed.
    AutoscalerScaleDownConfig {
        enabled: bool,
        unneeded_time: String,
        utilization_threshold: String,
        delay_after_add: String,
        delay_after_delete: String,
        delay_after_failure: String,
    }
}
