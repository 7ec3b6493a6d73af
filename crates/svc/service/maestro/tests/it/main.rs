//! The server's parts on real stores.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test: a panic with a line number is what we want")]

mod rest;
mod rows;
mod site;
