//! What makes workloads come up in a cluster: the controllers of Deployments, ReplicaSets, StatefulSets, Jobs, claims,
//! endpoints, disruption budgets and nodes, and the scheduler.
//!
//! What it is: ordinary controllers on `kube`. They work alike on our API server and on a real one.
//! What it is not: it runs no containers (that is the kubelet), and it does not do what our API server does by itself
//! after a write: collecting orphans, emptying namespaces, furnishing them with accounts and the root certificate,
//! signing certificates. Against a real API server, those belong to a real controller manager.
//!
//! The flow: one [`Caches`] per cluster is kept up to date by watches; a change adds keys to the queues of the controllers that are
//! concerned; a pass reads the caches only, decides in a pure function, and writes through the caches.
//!
//! One folder per controller: `plan` decides, the folder's root file reads and acts.
//!
//! Invariants:
//! * A pass never waits for another controller, and never reads from the server what a cache holds.
//! * Children have names or owner references from which a restarted process finds them again.
//! * Status is written only if it changed, and only by the controller that owns it.

mod caches;
mod claims;
mod context;
mod deployment;
mod disruption;
mod endpoints;
mod job;
mod nodes;
mod pod_cleanup;
mod pods;
mod replica_set;
mod scheduler;
mod stateful_set;
mod workloads;

pub use caches::Caches;
pub use context::Context;
pub use workloads::{Activity, Workloads, WorkloadsOptions};
