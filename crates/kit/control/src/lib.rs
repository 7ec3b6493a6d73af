//! One driver for everything that brings the world in line with what was asked for.
//!
//! What it is: a queue of keys and a loop that hands each key to a [`Reconcile`]. The key is all a pass gets: it looks
//! at the world as it is now, so that a restart, a lost event and a repeated one are the same case.
//!
//! What it is not: it knows no Kubernetes and no store. Whoever watches something adds keys to a [`Queue`].
//!
//! Invariants:
//! * A key is in at most one pass at a time; added meanwhile, it gets another pass afterwards.
//! * A key waits once, however often it is added. The queue is bounded by the keys there are.
//! * A pass that failed is tried again, later each time, with some chance in it; success forgets the failures.
//! * Nothing runs and no timer is set while there is nothing to do.
#![warn(missing_docs)]

mod driver;
mod metrics;
mod queue;

pub use driver::{Outcome, Pace, Reconcile, drive};
pub use metrics::ReconcileMetrics;
pub use queue::Queue;
