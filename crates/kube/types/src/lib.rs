//! The built-in types of Kubernetes as data: what they are, their defaults and rules, how they are listed and described.
//!
//! What it is: tables of the types ([`registry`], read from `gen/`, which `cargo xtask gen-kube-types` writes), and pure
//! functions over objects held as JSON: defaults ([`defaults`]), what a write may change ([`strategy`]), rules
//! ([`validate`]), what selectors can ask for ([`fields`]), rows of tables ([`table`]); and documents about the types:
//! [`discovery`] and [`openapi`].
//!
//! What it is not: a server. Names, addresses, user ids and times are given by the caller; nothing here allocates an IP,
//! draws a name or asks who is calling.
//!
//! Invariants: no function panics on any input; all of them are deterministic. Functions over objects expect what
//! decoding against the schema leaves (members have their declared JSON types), and treat anything else as absent.

pub mod defaults;
pub mod discovery;
pub mod fields;
pub mod openapi;
pub mod quantity;
pub mod registry;
pub mod strategy;
pub mod table;
pub mod validate;

pub use registry::{Builtin, builtin};
