//! The local cloud as a whole, over its TLS listener, by the service's own client of Azure.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails by panicking")]

mod check_access;
mod federation;
mod forwarding;
mod world;
