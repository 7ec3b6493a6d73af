//! Clusters Service: keeps clusters, node pools and external auths, prepares the cloud for them, and posts what they need on a
//! management cluster to Maestro.
//!
//! The flow of a request: `api` reads the body against the type's table, `validate`s it, places the cluster on a shard
//! (`placement`), and writes one batch (`records`). Everything after the answer follows from the stored records: the
//! pipelines read them, make them real, and write back what they observed. `events` publishes every change.
//!
//! * `search`: the search language of lists, compiled to conditions on documents.
//! * `versions`: the releases on offer.
//!
//! Invariants:
//! * Desired state is written by the API only; observed and provisioned state by the pipelines only. Every write is
//!   compare-and-swap.
//! * A POST that was stored is never answered with an error.
//! * Everything of a cluster is in one partition, and gone with it.

pub mod api;
mod config;
mod descriptor;
pub mod events;
mod maestro;
mod manifests;
pub mod placement;
mod ports;
mod provisioning;
mod random;
pub mod records;
mod role;
pub mod search;
mod shared;
#[cfg(test)]
mod testing;
pub mod versions;

pub use config::ClustersServiceConfig;
pub use descriptor::DESCRIPTOR;
pub use ports::ClustersServicePorts;
pub use role::ClustersService;
pub use shared::Shared;
