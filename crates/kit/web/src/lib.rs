//! HTTP for every role: a bounded, draining server and the middleware that knows no domain.
//!
//! What it is not: a place for ARM. Correlation headers, error bodies and api-versions belong to the frontend.
//!
//! The flow: [`serve()`] takes a bound listener and any tower service (an axum router, say). The accept loop lives in
//! the scope's `Listeners` phase and takes a permit per connection; connections live in its `Requests` phase, so
//! that closing the scope stops accepting first and then lets requests finish.
//!
//! Invariants:
//! * A slow or silent client costs one permit for a bounded time, never more.
//! * Bodies and query strings are never logged.
//! * Without a subscriber for spans, tracing costs a level check and no allocation.
#![warn(missing_docs)]

pub mod admin;
mod panics;
mod request_metrics;
mod serve;
mod trace;

pub use panics::{CatchPanic, CatchPanicLayer};
pub use request_metrics::{InFlight, RequestMetrics, STANDARD_BUCKETS};
pub use serve::{Handshake, Peer, ServeOptions, Server, Upgradable, Upgrade, UpgradedIo, serve, serve_after};
pub use trace::{Trace, TraceLayer};
