//! HTTP for every role: a bounded, draining server and the middleware that knows no domain.
//!
//! What it is not: a place for ARM. Correlation headers, error bodies and api-versions belong to the frontend.
//!
//! The flow: [`serve()`] takes a bound listener and any tower service (an axum router, say). The accept loop lives in
//! the scope's `Listeners` phase; connections live in its `Requests` phase, so that closing the scope stops accepting first
//! and then lets requests finish. A connection occupies a handshake slot first and counts as a connection afterwards
//! ([`aro_net::Admission`]). Request bodies are read through [`BodyLimits`], within a byte budget and a deadline.
//!
//! Invariants:
//! * A slow or silent client occupies one slot for a bounded time, never more.
//! * Request bodies in flight take no more memory than their budget.
//! * Bodies and query strings are never logged.
//! * Without a subscriber for spans, tracing costs a level check and no allocation.
#![warn(missing_docs)]

pub mod admin;
mod body;
mod head;
mod panics;
mod request_metrics;
mod serve;
mod trace;

pub use body::{BodyBudget, BodyError, BodyLimits, HeldBody};
pub use head::RequestHead;
pub use panics::{CatchPanic, CatchPanicLayer};
pub use request_metrics::{InFlight, RequestMetrics, STANDARD_BUCKETS};
pub use serve::{Handshake, Peer, ServeOptions, Server, Upgradable, Upgrade, UpgradedIo, serve, serve_after};
pub use trace::{Trace, TraceLayer};
