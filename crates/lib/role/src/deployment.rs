//! Where and how a role runs in a region.

use serde_json::Value;

/// The cluster the region's own services run on.
pub const SERVICE_CLUSTER: &str = "svc";
/// The prefix of the names of management clusters.
const MANAGEMENT_CLUSTER: &str = "mgmt-";

/// A cluster of the region that roles are deployed to.
#[derive(Debug, Clone, Copy)]
pub struct RegionCluster<'a> {
    /// The cluster's name.
    pub name: &'a str,
    /// All clusters of the region.
    pub all: &'a [String],
}

impl<'a> RegionCluster<'a> {
    /// Whether it is the service cluster.
    pub fn is_service(&self) -> bool {
        self.name == SERVICE_CLUSTER
    }

    /// Whether it is a cluster for hosted control planes.
    pub fn is_management(&self) -> bool {
        self.name.starts_with(MANAGEMENT_CLUSTER)
    }

    /// The management clusters of the region.
    pub fn management_clusters(&self) -> impl Iterator<Item = &'a str> {
        self.all.iter().map(String::as_str).filter(|name| name.starts_with(MANAGEMENT_CLUSTER))
    }
}

/// A role's Deployment, and what goes with it. The number of replicas is left out: it belongs to the operator who scales.
#[derive(Debug)]
pub struct RoleDeployment {
    /// The namespace; it is created.
    pub namespace: &'static str,
    /// The name of the Deployment, and of the Service if the role listens.
    pub name: &'static str,
    /// The container's environment.
    pub env: Vec<(String, String)>,
    /// The certificates it is given.
    pub certificates: Vec<Certificate>,
    /// What happens when the Deployment changes.
    pub update: UpdateStrategy,
    /// Whether its service account is bound to `cluster-admin`.
    pub cluster_admin: bool,
    /// Objects that are applied before any role of the cluster: custom resource definitions, namespaces.
    pub prerequisites: Vec<Value>,
}

impl RoleDeployment {
    /// One without permissions, certificates and environment.
    pub fn new(namespace: &'static str, name: &'static str) -> Self {
        Self {
            namespace,
            name,
            env: Vec::new(),
            certificates: Vec::new(),
            update: UpdateStrategy::Rolling,
            cluster_admin: false,
            prerequisites: Vec::new(),
        }
    }
}

/// How old pods are replaced by new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateStrategy {
    /// The new pod is ready before the old one stops.
    Rolling,
    /// The old pod stops before the new one starts: two at once would split the work or do it twice.
    Recreate,
}

/// A certificate that the region issues into a Secret and mounts into the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The Secret's name, in the role's namespace.
    pub secret: &'static str,
    /// Where it is mounted.
    pub path: &'static str,
    /// The authority that issues it.
    pub issuer: Issuer,
    /// The subject's common name.
    pub common_name: String,
    /// The Services it serves, by name in the role's namespace.
    pub services: Vec<&'static str>,
    /// What it is used for.
    pub usage: CertificateUsage,
}

/// An authority of the region. Each listener trusts one of them only, so no agent can act as a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Issuer {
    /// For the broker and its clients, the Maestro server and the agents.
    Broker,
    /// For the Maestro server's gRPC listener and its sources.
    Sources,
}

/// What a certificate is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateUsage {
    /// TLS server.
    Server,
    /// TLS client.
    Client,
}

/// The environment that points a section's keys for certificate, key and authorities at a mount.
pub fn certificate_files(
    mount: &str,
    section: &str,
    [certificate, key, authorities]: [&str; 3],
) -> Vec<(String, String)> {
    [(certificate, "tls.crt"), (key, "tls.key"), (authorities, "ca.crt")]
        .map(|(name, file)| (format!("ARO_{section}__{name}"), format!("{mount}/{file}")))
        .to_vec()
}
