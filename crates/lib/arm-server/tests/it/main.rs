//! A second provider on the same server: two resource types, one long-running operation, no code of another role.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails by panicking")]

mod farm;
mod pipeline;
mod resources;
