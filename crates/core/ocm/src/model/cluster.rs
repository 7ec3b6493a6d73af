//! Clusters.

use std::collections::BTreeMap;

use crate::{
    Azure, ClusterAutoscaler, ClusterHealthState, ClusterState, ClusterStatus, DeleteProtection,
    ExternalAuthConfig, InflightCheck, Items, NodePool, Reference, Time, Value, Version,
};

words! {
    /// Whether an endpoint is reachable from the internet.
    ListeningMethod {
        External = "external",
        Internal = "internal",
    }

    /// Whether every address may reach the API.
    AllowMode {
        AllowAll = "allow_all",
        AllowList = "allow_list",
    }

    /// A switch of a feature.
    Switch {
        Enabled = "enabled",
        Disabled = "disabled",
    }
}

objects! {
    /// A cluster.
    Cluster {
        kind: String,
        id: String,
        href: String,
        name: String,
        external_id: String,
        infra_id: String,
        domain_prefix: String,
        region: Reference,
        cloud_provider: Reference,
        product: Reference,
        subscription: Reference,
        flavour: Reference,
        hypershift: Hypershift,
        ccs: CCS,
        managed: bool,
        multi_az: bool,
        multi_arch_enabled: bool,
        fips: bool,
        etcd_encryption: bool,
        billing_model: String,
        version: Version,
        openshift_version: String,
        network: Network,
        proxy: Proxy,
        additional_trust_bundle: String,
        api: ClusterAPI,
        dns: DNS,
        console: ClusterConsole,
        ingresses: Items<Ingress>,
        image_registry: ClusterImageRegistry,
        registry_config: ClusterRegistryConfig,
        node_drain_grace_period: Value,
        autoscaler: ClusterAutoscaler,
        node_pools: Items<NodePool>,
        inflight_checks: Items<InflightCheck>,
        external_auth_config: ExternalAuthConfig,
        properties: BTreeMap<String, String>,
        provision_shard_id: String,
        delete_protection: DeleteProtection,
        azure: Azure,
        creation_timestamp: Time,
        expiration_timestamp: Time,
        state: ClusterState,
        status: ClusterStatus,
        health_state: ClusterHealthState,
        /// What Clusters Service knows beyond the original's model. Read only.
        aro: ClusterAro,
    }

    /// Whether the control plane is hosted.
    Hypershift {
        enabled: bool,
    }

    /// Whether the cluster is in the customer's subscription.
    CCS {
        kind: String,
        id: String,
        href: String,
        enabled: bool,
        disable_scp_checks: bool,
    }

    /// The cluster's networks.
    Network {
        r#type: String,
        pod_cidr: String,
        service_cidr: String,
        machine_cidr: String,
        host_prefix: i64,
    }

    /// The proxy of nodes.
    Proxy {
        http_proxy: String,
        https_proxy: String,
        no_proxy: String,
    }

    /// The cluster's API server.
    ClusterAPI {
        url: String,
        listening: ListeningMethod,
        cidr_block_access: CIDRBlockAccess,
    }

    /// Who may reach the API server.
    CIDRBlockAccess {
        allow: CIDRBlockAllowAccess,
    }

    /// The addresses that may reach the API server.
    CIDRBlockAllowAccess {
        mode: AllowMode,
        values: Vec<String>,
    }

    /// The cluster's domain.
    DNS {
        base_domain: String,
    }

    /// The cluster's console.
    ClusterConsole {
        url: String,
    }

    /// An ingress of the cluster.
    Ingress {
        kind: String,
        id: String,
        href: String,
        default: bool,
        listening: ListeningMethod,
        dns_name: String,
    }

    /// Whether the cluster has its own image registry.
    ClusterImageRegistry {
        state: Switch,
    }

    /// Where images come from.
    ClusterRegistryConfig {
        image_digest_mirrors: Vec<ImageMirror>,
    }

    /// Mirrors of an image source.
    ImageMirror {
        kind: String,
        id: String,
        href: String,
        r#type: String,
        source: String,
        mirrors: Vec<String>,
        creation_timestamp: Time,
        last_update_timestamp: Time,
    }

    /// What the pipelines of Clusters Service know about a cluster.
    ClusterAro {
        hosted_cluster_namespace: String,
        hcp_namespace: String,
        conditions: Vec<Condition>,
        version_history: Vec<VersionHistoryEntry>,
        control_plane_endpoint: Endpoint,
        /// PEM of the authority of the API server's certificate.
        serving_ca: String,
        issuer_url: String,
        management_cluster: String,
        /// The addresses that the service added to the customer's allow-list.
        internal_allowed_cidrs: Vec<String>,
    }

    /// A condition of the HostedCluster.
    Condition {
        r#type: String,
        status: String,
        reason: String,
        message: String,
        last_transition_time: Time,
        observed_generation: i64,
    }

    /// A version that the control plane has or had.
    VersionHistoryEntry {
        version: String,
        state: String,
        image: String,
        started: Time,
        completed: Time,
    }

    /// Where the API server is reached.
    Endpoint {
        host: String,
        port: i64,
    }

    /// Where the control plane of a cluster is.
    HypershiftConfig {
        enabled: bool,
        management_cluster: String,
        hcp_namespace: String,
    }

    /// The objects that Clusters Service applied for a cluster, for support.
    ClusterResources {
        kind: String,
        id: String,
        href: String,
        cluster_id: String,
        creation_timestamp: Time,
        resources: BTreeMap<String, String>,
    }
}

/// The names of the properties that have a meaning.
pub mod property {
    /// One replica of the control plane.
    pub const SINGLE_REPLICA: &str = "hosted_cluster_single_replica";
    /// The size of the control plane.
    pub const SIZE_OVERRIDE: &str = "hosted_cluster_size_override";
    /// The image of the control plane operator.
    pub const CONTROL_PLANE_OPERATOR_IMAGE: &str = "control_plane_operator_image";
    /// Creation without cloud and Maestro, for tests.
    pub const NOOP_PROVISION: &str = "provisioner_noop_provision";
    /// Deletion without cloud and Maestro, for tests.
    pub const NOOP_DEPROVISION: &str = "provisioner_noop_deprovision";
    /// Retired: the member `provision_shard_id` took its place.
    pub const PROVISION_SHARD_ID: &str = "provision_shard_id";
}

impl Cluster {
    /// Whether a property is `true`.
    pub fn has_property(&self, name: &str) -> bool {
        self.properties.as_ref().and_then(|all| all.get(name)).is_some_and(|value| value == "true")
    }
}
