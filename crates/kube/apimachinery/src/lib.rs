//! The words and algorithms of the Kubernetes API, without a server.
//!
//! What it is: names of things ([`names`]), what a type is ([`schema`], [`resource`]), how objects are read, selected,
//! patched and merged, and the errors clients see ([`status`]). Everything here is a pure function of its arguments.
//!
//! What it is not: it knows no particular type (`kube/types` brings the built-in ones, `kube/crd` makes
//! types out of CustomResourceDefinitions), no storage, no HTTP, no clock.
//!
//! Invariants: no function panics on any input; objects are plain `serde_json::Value`s; a type is data.

pub mod apply;
pub mod decode;
pub mod meta;
pub mod names;
pub mod patch;
pub mod resource;
pub mod schema;
pub mod selector;
pub mod status;

pub use names::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
pub use resource::{ResourceType, Subresource};
pub use schema::{Definitions, Schema, Typed};
pub use status::{FieldError, FieldErrorKind, Status};
