//! The model of hosted clusters from outside: bodies in, bodies and problems out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests, and their helpers")]

mod admission;
mod arbitrary;
mod bodies;
mod cluster;
mod decode;
mod examples;
mod experimental;
mod external_auth;
mod fixtures;
mod node_pool;
mod openapi;
mod patch;
mod round_trip;
mod update;
mod weaknesses;
