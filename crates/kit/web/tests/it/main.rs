//! The server against real sockets.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails by panicking")]

mod client;
mod drain;
mod limits;
mod propagation;
mod serving;
mod tracing_spans;
mod upgrade;
