//! Hosted clusters, node pools, external auths: `Microsoft.RedHatOpenShift/hcpOpenShiftClusters` and below.

/// The provider's namespace.
pub const NAMESPACE: &str = "Microsoft.RedHatOpenShift";
/// The type of a hosted cluster.
pub const CLUSTER_TYPE: &str = "Microsoft.RedHatOpenShift/hcpOpenShiftClusters";
/// The type of a node pool.
pub const NODE_POOL_TYPE: &str = "Microsoft.RedHatOpenShift/hcpOpenShiftClusters/nodePools";
/// The type of an external auth.
pub const EXTERNAL_AUTH_TYPE: &str = "Microsoft.RedHatOpenShift/hcpOpenShiftClusters/externalAuths";
