//! The Maestro server: stores bundles of manifests, delivers them to consumers' agents over a broker, and stores and
//! publishes their status.
//!
//! The flow of a spec: a source publishes it over gRPC (`grpc`), it is stored (`rows`), enqueued (`spec_queue`) and
//! published (`spec_publisher`, `publisher`). It stays in the `backlog` until its agent confirms it, and is published again
//! when an attempt is due (`retry`) and after every connect (`after_connect`).
//!
//! The flow of a status: an agent publishes it, `status_receiver` accepts it, `status_writer` stores it, and the change feed
//! brings it to the source's subscriptions (`streams`). `orphans` deletes works that no row wants. `resync` repairs what a
//! lost connection or broker has lost.
//!
//! * `search`: the two search grammars of the REST API, compiled to conditions on documents.
//! * `rest`: the REST API, with the delivery `ledger` for operators.
//!
//! Each part is given only the handles it uses; `role` builds and connects them.
#![warn(missing_docs)]

mod after_connect;
mod agent_event;
mod backlog;
mod config;
mod decisions;
mod descriptor;
mod encoder;
pub mod fault;
mod grpc;
pub mod ledger;
mod metrics;
mod orphans;
mod ports;
mod publish_times;
mod publisher;
pub mod rest;
mod resync;
mod retry;
mod role;
pub mod rows;
pub mod search;
mod spec_publisher;
mod spec_queue;
mod status_queue;
mod status_receiver;
mod status_writer;
mod streams;
#[cfg(test)]
mod testing;

pub use config::{MaestroConfig, SubscriptionType};
pub use descriptor::DESCRIPTOR;
pub use fault::Fault;
pub use ports::MaestroPorts;
pub use role::MaestroServer;
