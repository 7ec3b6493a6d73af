//! The frontend in one process: its router over a store of its own, no socket, no background work.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails by panicking")]

mod children;
mod clusters;
mod errors;
mod operations;
mod support;
