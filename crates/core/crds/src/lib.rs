//! Custom resources as Rust types, and the definitions that install them.
//!
//! A type is written once: its fields, their limits and defaults, what is required. Controllers use the type, and
//! [`definitions`] are written from the same lines, so the two cannot drift apart. `aro gen crds` prints them.
//!
//! What it is not: it talks to no server and validates nothing; an API server does that by the definition.
//!
//! Invariant: an object of the published resource survives reading and writing with nothing lost that its schema knows.

pub mod cluster;
mod definition;
pub mod hypershift;
mod schema;
pub mod secrets_store;
pub mod work;

pub use definition::{Definition, DefinitionError, definitions};
