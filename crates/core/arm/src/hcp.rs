//! Hosted clusters, node pools, external auths: `Microsoft.RedHatOpenShift/hcpOpenShiftClusters` and below.
//!
//! What it is: one internal model for each of the three resources, in the shape of the newest api-version, and the
//! way of a request body into it and back out of it, for every api-version that is served.
//!
//! What it is not: HTTP, storage, or a look at other resources. What needs more than the object itself (running
//! versions, the parent, siblings) is handed to [`admission`].
//!
//! The flow of a write ([`resource::Resource::create`], `replace`, `patch`):
//! body → [`schema`](crate::schema) reads it by a table of members (types, nulls, defaults, carried-over values, limits) →
//! typed structs → mutation (experimental settings) → rules across members → comparison with the stored object.
//! The flow of a read is one pass: typed structs → JSON → members the api-version does not know are dropped.
//!
//! Invariants: nothing here panics on input; problems are reported together, once each, in path order, with the
//! paths of the api-version the caller used; an object stored through any version can be written through any other.

pub mod admission;
pub mod cluster;
pub mod credential;
pub mod external_auth;
pub mod members;
pub mod node_pool;
pub mod openshift_version;
pub mod operation;
pub mod resource;
pub mod service_provider;
pub mod version;

/// The provider's namespace.
pub const NAMESPACE: &str = "Microsoft.RedHatOpenShift";
/// The type of a hosted cluster.
pub const CLUSTER_TYPE: &str = "Microsoft.RedHatOpenShift/hcpOpenShiftClusters";
/// The type of a node pool.
pub const NODE_POOL_TYPE: &str = "Microsoft.RedHatOpenShift/hcpOpenShiftClusters/nodePools";
/// The type of an external auth.
pub const EXTERNAL_AUTH_TYPE: &str = "Microsoft.RedHatOpenShift/hcpOpenShiftClusters/externalAuths";
