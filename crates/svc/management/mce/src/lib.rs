//! The multicluster engine of a management cluster: for now, the work agent of `local-cluster`.
//!
//! What it is: ManifestWorks in the namespace `local-cluster` of the hub are applied to the cluster, and their status is
//! written back. Hub and cluster are the same cluster here; the role gets a client for each and cannot tell.
//!
//! What it is not: it applies nothing itself. `aro_work_engine` does; this is where its works come from and where its reports go.
//!
//! The flow: a watch keeps the ManifestWorks (`role`); for each one that changes, or of which the engine tells something,
//! the agent makes a pass: the finalizer before the first effect, then the work to the engine, the status back, and the
//! finalizer off when the engine says that everything is gone.
//!
//! Invariants:
//! * Nothing is applied for a work that does not carry the finalizer: its deletion could not be noticed.
//! * A status is written only when it is another than the one that is there, and only to the work it was found for.
#![warn(missing_docs)]

mod agent;
mod config;
mod descriptor;
mod notes;
mod ports;
mod role;
mod translate;

pub use config::MceConfig;
pub use descriptor::DESCRIPTOR;
pub use ports::McePorts;
pub use role::Mce;
