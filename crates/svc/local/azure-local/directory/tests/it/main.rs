//! The directory's protocols, over its routers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails by panicking")]

mod assertions;
mod graph;
mod identities;
mod lifecycle;
mod robustness;
mod site;
mod tokens;
