//! The ARM resource provider's front end: hosted clusters, node pools and external auths over HTTP.
//!
//! What it is not: the one who provisions. It validates, asks Clusters Service whether it would take a new cluster
//! (the [`Preflight`](ports::Preflight) port), and commits one batch: the resource, its operation, the effect owed
//! to Clusters Service, and claims on what only one resource may use. The backend does the rest.
//!
//! The flow: `pipeline` is the way of every request; [`route`] finds what a path names; one file per subject in
//! `handlers`; `error` is the only place where failures become answers. `cascade` carries on deletions
//! that do not fit one batch.
//!
//! Invariants:
//! * A caller's mistake is never a 5xx. A 5xx never carries internal text.
//! * Whatever was answered with 200, 201 or 202 is stored, together with everything it causes.
//! * No write without a precondition: what was read is what is replaced, else everything is decided anew.
//! * Bodies, query strings and credentials are never logged.

mod answer;
mod caller;
mod cascade;
mod catalogue;
mod claims;
mod config;
mod conflict;
mod descriptor;
mod error;
mod handlers;
mod links;
mod observe;
mod operations;
mod pipeline;
pub mod ports;
mod precondition;
mod query;
mod rendered;
mod role;
pub mod route;
mod shared;
mod subscription_state;

pub use catalogue::BuiltInCatalogue;
pub use config::FrontendConfig;
pub use descriptor::DESCRIPTOR;
pub use ports::{AcceptAll, FrontendPorts};
pub use role::Frontend;
