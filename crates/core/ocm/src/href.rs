//! Addresses of objects: absolute paths without scheme and host.

use std::fmt;

use crate::{ClusterId, CredentialId, ExternalAuthId, NodePoolId, ShardId};

/// The two roots of the API, over one set of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Root {
    /// `/api/aro_hcp/v1alpha1`.
    AroHcp,
    /// `/api/clusters_mgmt/v1`.
    ClustersMgmt,
}

impl Root {
    /// Both.
    pub const ALL: [Self; 2] = [Self::AroHcp, Self::ClustersMgmt];

    /// Its path.
    pub const fn path(self) -> &'static str {
        match self {
            Self::AroHcp => "/api/aro_hcp/v1alpha1",
            Self::ClustersMgmt => "/api/clusters_mgmt/v1",
        }
    }

    /// What error codes begin with.
    pub const fn error_prefix(self) -> &'static str {
        match self {
            Self::AroHcp => "ARO-HCP",
            Self::ClustersMgmt => "CLUSTERS-MGMT",
        }
    }

    /// Splits a path into its root and what follows, which begins with `/` or is empty.
    pub fn split(path: &str) -> Option<(Self, &str)> {
        Self::ALL.into_iter().find_map(|root| {
            let rest = path.strip_prefix(root.path())?;
            (rest.is_empty() || rest.starts_with('/')).then_some((root, rest))
        })
    }
}

/// What an address is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Href {
    /// A cluster.
    Cluster(ClusterId),
    /// A node pool.
    NodePool(ClusterId, NodePoolId),
    /// An external auth.
    ExternalAuth(ClusterId, ExternalAuthId),
    /// A break-glass credential. It exists below one root only.
    Credential(ClusterId, CredentialId),
    /// An upgrade policy of a control plane.
    ControlPlaneUpgradePolicy(ClusterId, String),
    /// An upgrade policy of a node pool.
    NodePoolUpgradePolicy(ClusterId, NodePoolId, String),
    /// An inflight check.
    InflightCheck(ClusterId, String),
    /// A provision shard.
    Shard(ShardId),
    /// A version.
    Version(String),
}

impl Href {
    /// The address below a root.
    pub fn under(&self, root: Root) -> String {
        match self {
            Self::Credential(..) => format!("{}{self}", Root::ClustersMgmt.path()),
            _ => format!("{}{self}", root.path()),
        }
    }

    /// Reads an address. The root is that of the text.
    pub fn parse(text: &str) -> Option<(Root, Self)> {
        let (root, rest) = Root::split(text)?;
        let parts: Vec<&str> = rest.strip_prefix('/')?.split('/').collect();
        let cluster = |id: &str| ClusterId::parse(id).ok();
        let pool = |id: &str| NodePoolId::parse(id).ok();
        let opaque = |id: &str| (!id.is_empty()).then(|| id.to_owned());
        let href = match parts.as_slice() {
            ["clusters", id] => Self::Cluster(cluster(id)?),
            ["clusters", id, "node_pools", np] => Self::NodePool(cluster(id)?, pool(np)?),
            ["clusters", id, "external_auth_config", "external_auths", auth] => {
                Self::ExternalAuth(cluster(id)?, ExternalAuthId::parse(auth).ok()?)
            }
            ["clusters", id, "break_glass_credentials", credential] => {
                Self::Credential(cluster(id)?, CredentialId::parse(credential).ok()?)
            }
            ["clusters", id, "control_plane_upgrade_policies", policy]
            | ["clusters", id, "control_plane", "upgrade_policies", policy] => {
                Self::ControlPlaneUpgradePolicy(cluster(id)?, opaque(policy)?)
            }
            ["clusters", id, "node_pools", np, "upgrade_policies", policy] => {
                Self::NodePoolUpgradePolicy(cluster(id)?, pool(np)?, opaque(policy)?)
            }
            ["clusters", id, "inflight_checks", check] => Self::InflightCheck(cluster(id)?, opaque(check)?),
            ["provision_shards", id] => Self::Shard(ShardId::parse(id).ok()?),
            ["versions", id] => Self::Version(opaque(id)?),
            _ => return None,
        };
        Some((root, href))
    }

    /// The cluster it is of or in.
    pub fn cluster(&self) -> Option<&ClusterId> {
        match self {
            Self::Cluster(id)
            | Self::NodePool(id, _)
            | Self::ExternalAuth(id, _)
            | Self::Credential(id, _)
            | Self::ControlPlaneUpgradePolicy(id, _)
            | Self::NodePoolUpgradePolicy(id, ..)
            | Self::InflightCheck(id, _) => Some(id),
            Self::Shard(_) | Self::Version(_) => None,
        }
    }
}

/// The path below a root.
impl fmt::Display for Href {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(id) => write!(f, "/clusters/{id}"),
            Self::NodePool(id, pool) => write!(f, "/clusters/{id}/node_pools/{pool}"),
            Self::ExternalAuth(id, auth) => {
                write!(f, "/clusters/{id}/external_auth_config/external_auths/{auth}")
            }
            Self::Credential(id, credential) => {
                write!(f, "/clusters/{id}/break_glass_credentials/{credential}")
            }
            Self::ControlPlaneUpgradePolicy(id, policy) => {
                write!(f, "/clusters/{id}/control_plane_upgrade_policies/{policy}")
            }
            Self::NodePoolUpgradePolicy(id, pool, policy) => {
                write!(f, "/clusters/{id}/node_pools/{pool}/upgrade_policies/{policy}")
            }
            Self::InflightCheck(id, check) => write!(f, "/clusters/{id}/inflight_checks/{check}"),
            Self::Shard(id) => write!(f, "/provision_shards/{id}"),
            Self::Version(id) => write!(f, "/versions/{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_read_back_below_both_roots() {
        for path in [
            "/clusters/c1",
            "/clusters/c1/node_pools/np1",
            "/clusters/c1/external_auth_config/external_auths/entra",
            "/clusters/c1/control_plane_upgrade_policies/p",
            "/clusters/c1/node_pools/np1/upgrade_policies/p",
            "/clusters/c1/inflight_checks/x",
            "/provision_shards/aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
            "/versions/openshift-v4.20.8",
        ] {
            for root in Root::ALL {
                let text = format!("{}{path}", root.path());
                let (read, href) = Href::parse(&text).unwrap_or_else(|| panic!("{text}"));
                assert_eq!((read, href.under(root)), (root, text));
            }
        }
        let (_, credential) =
            Href::parse("/api/clusters_mgmt/v1/clusters/c1/break_glass_credentials/x").unwrap();
        assert!(credential.under(Root::AroHcp).starts_with("/api/clusters_mgmt/v1/"));
    }

    #[test]
    fn other_paths_are_no_addresses() {
        for text in [
            "",
            "/api/aro_hcp/v1alpha1",
            "/api/aro_hcp/v1alpha10/clusters/c1",
            "/api/aro_hcp/v1alpha1/clusters",
            "/api/aro_hcp/v1alpha1/clusters/c1/",
            "/api/aro_hcp/v1alpha1/clusters/UPPER",
            "/api/aro_hcp/v1alpha1/clusters/c1/node_pools",
            "https://host/api/aro_hcp/v1alpha1/clusters/c1",
        ] {
            assert_eq!(Href::parse(text), None, "{text}");
        }
    }
}
