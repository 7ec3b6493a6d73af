//! What a cluster is called elsewhere: in Kubernetes, in DNS, in Maestro, in Azure.
//!
//! All names follow from the environment, the cluster's id and its domain prefix, so every role computes the same ones.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{BadId, ClusterId, NodePoolId, ShardId};

/// The namespace on a management cluster that ManifestWorks for its own agent are in.
pub const LOCAL_CLUSTER: &str = "local-cluster";

/// The set of managed clusters that hosted clusters belong to.
pub const MANAGED_CLUSTER_SET: &str = "hypershift-management-clusters";

/// The length of a generated domain prefix, and of the longest name that becomes one.
pub const MAX_DOMAIN_PREFIX: usize = 15;

/// Labels and annotations of everything that is made for a cluster.
pub mod label {
    /// The cluster's id.
    pub const ID: &str = "api.openshift.com/id";
    /// The cluster's name.
    pub const NAME: &str = "api.openshift.com/name";
    /// The environment.
    pub const ENVIRONMENT: &str = "api.openshift.com/environment";
    /// The bundle that holds a cluster's namespaces.
    pub const CONTAINS_NAMESPACES: &str = "containsNamespaces";
    /// Annotation: the ARM id of the cluster.
    pub const ARM_ID: &str = "azure.microsoft.com/hcp-cluster-azure-resource-id";
    /// Annotation: the correlation id of the request that caused an object.
    pub const CORRELATION_ID: &str = "aro.dev/correlation-id";
    /// Annotation: the trace of the request that caused an object.
    pub const TRACEPARENT: &str = "aro.dev/traceparent";
}

/// The environment's name, which is part of many others: 1 to 10 lower-case letters and digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Environment(String);

impl Environment {
    /// Checks a name.
    pub fn parse(text: &str) -> Result<Self, BadId> {
        let good = (1..=10).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let refused = || BadId {
            text: text.chars().take(64).collect(),
            what: "environment",
            rule: "1 to 10 lower-case letters and digits",
        };
        good.then(|| Self(text.to_owned())).ok_or_else(refused)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The source of a shard's bundles in Maestro.
    pub fn source_id(&self, shard: ShardId) -> String {
        format!("{}-{shard}", self.0)
    }

    /// The namespace of a cluster's HostedCluster.
    pub fn hosted_cluster_namespace(&self, id: &ClusterId) -> String {
        format!("ocm-{}-{id}", self.0)
    }

    /// The namespace of a cluster's control plane, which HyperShift makes: namespace and name of the HostedCluster.
    pub fn control_plane_namespace(&self, id: &ClusterId, domain_prefix: &str) -> String {
        clipped(&format!("ocm-{}-{id}-{}", self.0, domain_prefix.replace('.', "-")), 63)
    }
}

impl TryFrom<String> for Environment {
    type Error = BadId;

    fn try_from(text: String) -> Result<Self, BadId> {
        Self::parse(&text)
    }
}

impl From<Environment> for String {
    fn from(environment: Environment) -> Self {
        environment.0
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The prefix that a cluster's name gives, if it is short enough and a label.
pub fn domain_prefix_of(name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    is_domain_prefix(&lower).then_some(lower)
}

/// Whether a text can be a domain prefix.
pub fn is_domain_prefix(text: &str) -> bool {
    (1..=MAX_DOMAIN_PREFIX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && !text.ends_with('-')
}

/// A generated prefix: letters and digits in turn, a letter first.
pub fn generated_domain_prefix(random: [u8; MAX_DOMAIN_PREFIX]) -> String {
    let place = |(index, byte): (usize, u8)| match index % 2 {
        0 => char::from(b'a' + byte % 26),
        _ => char::from(b'0' + byte % 10),
    };
    random.into_iter().enumerate().map(place).collect()
}

fn base36(byte: u8) -> char {
    char::from(b"0123456789abcdefghijklmnopqrstuvwxyz"[usize::from(byte) % 36])
}

/// The domain of one cluster's names below the zone of its region: a slug of four characters and the zone.
pub fn base_domain(random: [u8; 4], zone: &str) -> String {
    let slug: String = random.into_iter().map(base36).collect();
    format!("{slug}.{}", zone.trim_end_matches('.'))
}

/// The infrastructure id: the domain prefix and five characters.
pub fn infra_id(domain_prefix: &str, random: [u8; 5]) -> String {
    let suffix: String = random.into_iter().map(base36).collect();
    format!("{domain_prefix}-{suffix}")
}

/// The domain of a cluster: everything it publishes is below.
pub fn cluster_domain(domain_prefix: &str, base_domain: &str) -> String {
    format!("{domain_prefix}.{base_domain}")
}

/// The name of the API server.
pub fn api_host(domain_prefix: &str, base_domain: &str) -> String {
    format!("api.{domain_prefix}.{base_domain}")
}

/// The address of the API server.
pub fn api_url(domain_prefix: &str, base_domain: &str) -> String {
    format!("https://{}:443", api_host(domain_prefix, base_domain))
}

/// The names in the region's zone that lead to the management cluster's shared ingress.
pub fn ingress_hosts(domain_prefix: &str, base_domain: &str) -> [String; 4] {
    ["api", "oauth", "konnectivity-server", "ignition-server"]
        .map(|service| format!("{service}.{domain_prefix}.{base_domain}"))
}

/// The zone that is delegated to the managed resource group: the base domain of the HostedCluster.
pub fn delegated_zone(domain_prefix: &str, base_domain: &str) -> String {
    format!("aro.{domain_prefix}.{base_domain}")
}

/// The name of the console.
pub fn console_url(domain_prefix: &str, base_domain: &str) -> String {
    format!("https://console-openshift-console.apps.{}", delegated_zone(domain_prefix, base_domain))
}

/// The name of a NodePool.
pub fn node_pool_name(domain_prefix: &str, pool: &NodePoolId) -> String {
    format!("{domain_prefix}-{pool}")
}

/// The namespace of a cluster's klusterlet.
pub fn klusterlet_namespace(id: &ClusterId) -> String {
    format!("klusterlet-{id}")
}

/// The ManifestWork with a cluster's namespaces.
pub fn namespaces_work(id: &ClusterId) -> String {
    format!("{id}-00-hcp-namespaces")
}

/// The ManifestWork with a cluster's HostedCluster and what belongs to it.
pub fn cluster_work(id: &ClusterId) -> String {
    id.to_string()
}

/// The ManifestWork with a NodePool.
pub fn node_pool_work(id: &ClusterId, pool: &NodePoolId) -> String {
    format!("{id}-{pool}")
}

/// The secret in the key vault with the credential of a cluster's identity.
pub fn identity_secret(id: &ClusterId, suffix: &str) -> String {
    format!("uamsi-{id}-{suffix}")
}

/// The token by which a cluster pulls from the registry of OpenShift's images.
pub fn pull_token(id: &ClusterId) -> String {
    format!("hc-ocp-pull-{id}")
}

/// The namespace of UUIDs of bundles.
const BUNDLES: Uuid = Uuid::from_u128(0x5f7c_21a4_0bd9_4c0e_9f63_7a8e_0a5d_31c7);

/// The id and name of a bundle in Maestro: the same for the same object at every attempt.
pub fn bundle_id(source_id: &str, object: &str) -> Uuid {
    Uuid::new_v5(&BUNDLES, format!("{source_id}/{object}").as_bytes())
}

/// A name of limited length: a longer one is cut and gets a hash of the whole, so that two long names stay two.
pub fn clipped(name: &str, max: usize) -> String {
    if name.len() <= max {
        return name.to_owned();
    }
    let hash = Uuid::new_v5(&BUNDLES, name.as_bytes()).simple().to_string();
    let tail = hash.get(..8).unwrap_or_default();
    let mut keep = max.saturating_sub(9);
    while !name.is_char_boundary(keep) {
        keep -= 1;
    }
    let head = name.get(..keep).unwrap_or_default().trim_end_matches(['-', '.']);
    format!("{head}-{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> ClusterId {
        ClusterId::parse("2qrppk0otds3rdmdcojqcqkqq8f0s591").unwrap()
    }

    #[test]
    fn namespaces_of_the_longest_names_are_labels() {
        let environment = Environment::parse("arohcpprod").unwrap();
        assert_eq!(environment.hosted_cluster_namespace(&id()), format!("ocm-arohcpprod-{}", id()));
        let namespace = environment.control_plane_namespace(&id(), "x8y5p7r4g6j9e3v");
        assert_eq!(namespace.len(), 63);
        assert!(namespace.ends_with("-x8y5p7r4g6j9e3v"), "not clipped: {namespace}");
        for bad in ["", "Upper", "has-dash", "elevenchars"] {
            assert!(Environment::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn short_names_become_the_domain_prefix() {
        assert_eq!(domain_prefix_of("My-Cluster").as_deref(), Some("my-cluster"));
        for name in ["a-name-of-16-char", "1abc", "", "abc-"] {
            assert_eq!(domain_prefix_of(name), None, "{name}");
        }
        let generated = generated_domain_prefix([0, 255, 25, 9, 26, 10, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
        assert_eq!(generated, "a5z9a0h7h7h7h7h");
        assert!(is_domain_prefix(&generated));
    }

    #[test]
    fn hosts_are_below_the_base_domain() {
        let base = base_domain([0, 56, 11 + 10, 35], "uksouth.aroapp-hcp.io.");
        assert_eq!(base, "0klz.uksouth.aroapp-hcp.io");
        assert_eq!(api_host("c1", &base), "api.c1.0klz.uksouth.aroapp-hcp.io");
        assert_eq!(api_url("c1", "d"), "https://api.c1.d:443");
        assert_eq!(console_url("c1", "d"), "https://console-openshift-console.apps.aro.c1.d");
        assert_eq!(ingress_hosts("c1", "d")[3], "ignition-server.c1.d");
        assert_eq!(infra_id("c1", [1, 2, 3, 4, 10]), "c1-1234a");
    }

    #[test]
    fn bundles_of_two_sources_differ_and_clipped_names_stay_apart() {
        assert_ne!(bundle_id("a", "x"), bundle_id("b", "x"));
        assert_eq!(bundle_id("a", "x"), bundle_id("a", "x"));
        let (one, two) = (clipped(&"x".repeat(64), 63), clipped(&format!("{}y", "x".repeat(63)), 63));
        assert!(one != two && one.len() <= 63 && two.len() <= 63);
        assert_eq!(clipped("ok", 63), "ok");
    }
}
