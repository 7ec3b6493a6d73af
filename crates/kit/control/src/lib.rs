//! The controller runtime: one queue, one loop and one set of rules for everything that makes the actual state equal to the
//! desired one.
//!
//! What it is:
//! * [`Reconcile`], what a controller implements, and [`Runner`], the loop that passes it keys from a [`Queue`];
//! * [`Source`], which enqueues keys. `port/kube` implements it over informers, `port/store` over documents;
//! * [`Controller`], the optional shape *observe, plan, apply* with a [`Plan`] that can be printed;
//! * [`Gate`], which withholds `apply` from keys that are paused, dry-run or another replica's;
//! * [`Shards`] and [`Lease`], which spread the keys over replicas. `port/store` implements the lease over a document;
//! * [`saga`], ordered work for one request that completes or is undone.
//!
//! What it is not: it knows no Kubernetes and no store. The reasons are in `docs/adr/0055-controller-runtime.md`.
//!
//! The flow: source → queue → runner → gate → `reconcile`, or `preview` where the gate withholds the key.
//!
//! Invariants:
//! * A key is in at most one pass at a time; enqueued meanwhile, it gets another pass afterwards.
//! * A key is queued once, however often it is enqueued. The queue is bounded by the keys there are.
//! * The class of an error decides about the next pass; see [`Runner`].
//! * An idle controller runs no task step and sets no timer.
//! * At most one replica applies a key; writes of a former holder are fenced by the epoch.
#![warn(missing_docs)]

mod controller;
mod gate;
mod lease;
mod metrics;
mod plan;
mod queue;
mod reconcile;
mod runner;
pub mod saga;
mod shards;
mod source;

pub use controller::{Controller, Planned, PlannedError};
pub use gate::{Gate, Permit, Reason, Withheld};
pub use lease::{Epoch, FencingToken, Lease, LeaseError, LeaseTable, ReplicaId, Shard};
pub use metrics::ReconcileMetrics;
pub use plan::{Plan, Step, SubPlan};
pub use queue::Queue;
pub use reconcile::{Key, Outcome, Preview, Reconcile};
pub use runner::{Runner, RunnerOptions};
pub use shards::{ShardOptions, Shards};
pub use source::{Source, Synced};
