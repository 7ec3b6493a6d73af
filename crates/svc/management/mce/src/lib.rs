//! The multicluster engine of a management cluster: for now, the work agent of `local-cluster`.
//!
//! What it is: ManifestWorks in the namespace `local-cluster` of the hub are applied to the cluster, and their status is
//! written back. Hub and cluster are the same cluster here; the role gets a client for each and does not depend on that.
//!
//! What it is not: it applies nothing itself. `aro_work_engine` does; this role feeds it works and writes its reports.
//!
//! The flow: a watch keeps the ManifestWorks (`role`); each one that changes, or that the engine reports about, is
//! reconciled: the finalizer before the first effect, then the work to the engine, the status back, and the finalizer
//! removed when the engine reports that everything is deleted.
//!
//! Invariants:
//! * Nothing is applied for a work without the finalizer: its deletion could go unnoticed.
//! * A status is written only when it differs from the current one, and only to the object it belongs to.
#![warn(missing_docs)]

mod agent;
mod config;
mod descriptor;
mod pending_reports;
mod ports;
mod role;
mod translate;

pub use config::MceConfig;
pub use descriptor::DESCRIPTOR;
pub use ports::McePorts;
pub use role::Mce;
