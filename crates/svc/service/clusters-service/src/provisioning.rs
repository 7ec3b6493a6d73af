//! The pipelines: make stored clusters, node pools and external auths real, keep them so, and remove them.
//!
//! * `clusters`, `pools`: the reconcilers. A pass reads the record and does what its state asks for.
//! * `create`, `delete`: sagas of a cluster (ADR 0079). Creation is undone when it fails; deletion only goes forward.
//! * `infrastructure`: what is asked of the cloud, as a port; `azure` is behind it. `target` derives every name.
//! * `render`: what `manifests` needs of the records. `state`: which state follows from what was observed. Both are pure.
//! * `observe`: writes what the management cluster reports into the records.
//!
//! The flow of a creation: validating → checks → pending → cloud resources → bundles published → installing → status → ready.
//! From then on every change and every verification renders the records anew, publishes what differs, and makes the cloud as it
//! should be.
//!
//! Invariants:
//! * One replica works on a cluster at a time (a lease over shards of clusters); journals are fenced by its epoch.
//! * Every name follows from the record, so a deletion needs nothing that the creation wrote down.
//! * The state `error` names the resource and the cause.

mod azure;
mod checks;
mod clusters;
mod create;
mod delete;
mod environment;
mod infrastructure;
mod keys;
mod observe;
mod pools;
mod render;
mod rows;
mod start;
mod state;
mod target;

#[cfg(test)]
mod tests;

pub use start::start;
