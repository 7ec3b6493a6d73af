//! The ARM resource provider's front end: hosted clusters, node pools and external auths over HTTP.
//!
//! What it is not: the part that provisions. It validates, asks Clusters Service whether it would take a new cluster
//! (the [`Preflight`](ports::Preflight) port), and commits one batch: the resource, its operation, the effect owed
//! to Clusters Service, and claims on what only one resource may use. The backend does the rest.
//!
//! The flow: `aro-arm-server` is the way of every request up to its handler; `routes` registers the resource types; one file
//! per subject in `handlers` parses, loads, calls the pure functions of `aro-arm`, writes one batch and answers.
//! `cascade` continues deletions that do not fit one batch.
//!
//! Invariants:
//! * A caller's mistake is never a 5xx. A 5xx never carries internal text.
//! * What was answered with 200, 201 or 202 is stored, together with everything it causes.
//! * No write without a precondition: what was read is what is replaced, else the request is decided anew.
//! * Bodies, query strings and credentials are never logged.

mod cascade;
mod catalogue;
mod claims;
mod clusters_service;
mod config;
mod conflict;
mod descriptor;
mod handlers;
mod metrics;
mod operations;
pub mod ports;
mod rendered;
mod role;
mod routes;
mod shared;

pub use catalogue::BuiltInCatalogue;
pub use clusters_service::{DryRun, OfferedReleases};
pub use config::FrontendConfig;
pub use descriptor::DESCRIPTOR;
pub use ports::{AcceptAll, FrontendPorts};
pub use role::Frontend;
