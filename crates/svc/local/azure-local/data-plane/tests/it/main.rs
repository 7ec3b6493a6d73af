//! The data planes, over their routers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails by panicking")]

mod blobs;
mod certificates;
mod keys;
mod robustness;
mod secrets;
mod signatures;
mod site;
mod websites;
