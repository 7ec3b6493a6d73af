//! The Maestro server: bundles of manifests, kept, delivered to consumers over a broker, and their status kept and told.
//!
//! * `rows`: the repository of bundles and consumers on the document store.
//! * `search`: the two search grammars of the REST API, turned into conditions on documents.
//! * `rest`: the REST API.
#![warn(missing_docs)]

mod backlog;
mod config;
mod descriptor;
mod dispatch;
pub mod fault;
mod grpc;
mod hear;
pub mod ledger;
mod observe;
mod ports;
pub mod rest;
mod resync;
mod role;
pub mod rows;
pub mod search;
mod speech;
mod streams;

pub use config::{MaestroConfig, SubscriptionType};
pub use descriptor::DESCRIPTOR;
pub use fault::Fault;
pub use ports::MaestroPorts;
pub use role::MaestroServer;
