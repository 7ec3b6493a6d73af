//! Resource bundles on the wire: what a source, the server and an agent say to one another.
//!
//! A bundle is a set of Kubernetes manifests for one cluster (a *consumer*). Specs travel source → server → agent,
//! statuses travel back, both as CloudEvents: over gRPC between source and server, over MQTT v5 between server and agent.
//! [`Event`] is the one typed envelope; [`mqtt`], [`grpc`] and [`json`] are its three spellings.
//!
//! What it is not: it opens no connection, keeps no state and applies nothing.
//!
//! Invariants: an event that was read is well formed (its type is known, its numbers and times are numbers and times);
//! writing and reading an event in any spelling gives the same event; no input makes a reader panic.

mod delivery;
mod digest;
pub mod event;
mod heads;
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

/// The most that an event may take on the wire: what Azure Event Grid lets through in one packet.
pub const MAX_PACKET: usize = 512 * 1024;
/// How large the manifests of one bundle may be together. Agents refuse more.
pub const MAX_MANIFESTS: usize = 500 * 1024;
/// The longest text MQTT can hold in one property, so the longest metadata.
pub const MAX_PROPERTY: usize = 65_535;

/// Conditions of a work that both ends speak of by name.
pub mod condition {
    /// The work's manifests are gone from the cluster; only ever said in an event.
    pub const DELETED: &str = "Deleted";
    /// The reason that goes with [`DELETED`].
    pub const MANIFESTS_DELETED: &str = "ManifestsDeleted";
    /// The work's manifests are applied.
    pub const APPLIED: &str = "Applied";
}
