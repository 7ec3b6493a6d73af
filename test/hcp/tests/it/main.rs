//! The chain from ARM to a management cluster, with real processes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

mod chaos;
mod failures;
mod flow;
mod guide;
