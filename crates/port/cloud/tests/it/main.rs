//! The client against a small cloud that misbehaves on command.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails by panicking")]

mod credentials;
mod effects;
mod model;
mod operations;
mod server;
mod wire;
