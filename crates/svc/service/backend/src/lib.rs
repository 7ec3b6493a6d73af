//! The resource provider's backend: it carries out what the frontend accepted, and completes operations by what is observed.
//!
//! What it is: controllers over the resource provider's documents. Each makes one object of Clusters Service equal to its
//! resource, mirrors what is observed, and ends the operation that holds the resource. `cluster` and `child` observe, plan
//! and apply; `feeds` enqueue keys from the change feed and the event feed; `change` is the one batch a pass writes.
//!
//! What it is not: it validates nothing (the frontend did) and makes nothing itself (Clusters Service does). It polls no
//! cluster: without a change or an event a resource costs nothing.
//!
//! The flow of a create: document → id and release stored → POST under that id → the cluster is found and recorded, its outbox
//! entry removed → events → mirror and judgement → operation and resource `Succeeded` in one batch.
//!
//! Invariants:
//! * A pass reads what is and decides by that; lost replies, repeated events and restarts are the same case.
//! * What Clusters Service receives is recorded in the batch that removes the outbox entry.
//! * Every write names the versions it was decided on. Several replicas may work at once; the lease only spreads the work.
//! * An operation reaches a terminal state: by success, refusal, failure or deadline. A deletion goes on after its deadline.
//!
//! The reasons are in `docs/adr/0081-backend-design.md`.

mod act;
mod change;
mod child;
mod cluster;
mod config;
mod descriptor;
mod ended;
mod error;
mod feeds;
mod key;
mod kind;
mod metrics;
mod periodic;
mod ports;
mod progress;
mod refusal;
mod role;
mod shared;

pub use config::BackendConfig;
pub use descriptor::DESCRIPTOR;
pub use ports::BackendPorts;
pub use role::Backend;
