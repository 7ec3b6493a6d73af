//! Resource bundles on the wire: the events between sources, the server and agents.
//!
//! A bundle is a set of Kubernetes manifests for one cluster (a *consumer*). Specs travel source → server → agent,
//! statuses travel back, both as CloudEvents: over gRPC between source and server, over MQTT v5 between server and agent.
//! [`Event`] is the one typed envelope; [`mqtt`], [`grpc`] and [`json`] are its three encodings.
//!
//! What it is not: it opens no connection, keeps no state and applies nothing.
//!
//! Invariants: a decoded event is well formed (its type is known, its numbers and times are parsed); encoding and decoding
//! an event in any encoding returns the same event; no input makes a decoder panic.

mod delivery;
mod digest;
pub mod event;
mod headers;
mod identity;
mod payload;
mod resync;
mod sequence;
mod topics;
mod validate;

pub use delivery::Delivery;
pub use digest::{content_hash, status_hash};
pub use event::{
    Action, Attribute, DATA_TYPE, Event, EventError, EventType, Subresource, grpc, json, mqtt, shortened,
};
pub use identity::work_uid;
pub use payload::{BundleStatus, ManifestBundle};
pub use resync::{IdRange, KnownStatus, KnownVersion, SpecResync, StatusResync, spec_pages, status_pages};
pub use sequence::{SequenceId, SequenceSource};
pub use topics::{TopicError, Topics};
pub use validate::{BundleProblem, validate, validate_data};

/// Bytes of an event on the wire: what Azure Event Grid accepts in one packet.
pub const MAX_PACKET: usize = 512 * 1024;
/// Bytes of the manifests of one bundle. Agents reject more.
pub const MAX_MANIFESTS: usize = 500 * 1024;
/// Bytes of one MQTT property, and so of the metadata.
pub const MAX_PROPERTY: usize = 65_535;

/// Conditions of a work that both ends know by name.
pub mod condition {
    /// The work's manifests are deleted from the cluster; only in events, never in a stored status.
    pub const DELETED: &str = "Deleted";
    /// The reason that goes with [`DELETED`].
    pub const MANIFESTS_DELETED: &str = "ManifestsDeleted";
    /// The work's manifests are applied.
    pub const APPLIED: &str = "Applied";
}
