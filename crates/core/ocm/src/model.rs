//! The objects of the API.

mod autoscaler;
mod azure;
mod check;
mod cluster;
mod common;
mod credential;
mod external_auth;
mod node_pool;
mod requirements;
mod shard;
mod status;
mod upgrade_policy;
mod version;

pub use autoscaler::*;
pub use azure::*;
pub use check::*;
pub use cluster::*;
pub use common::*;
pub use credential::*;
pub use external_auth::*;
pub use node_pool::*;
pub use requirements::*;
pub use shard::*;
pub use status::*;
pub use upgrade_policy::*;
pub use version::*;
