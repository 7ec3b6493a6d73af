//! The resource provider's documents: what they are called, where they live, how they are read and written.
//!
//! The frontend writes them, the backend completes them; both meet only here and in the store. One container,
//! [`RESOURCES`], holds everything of a subscription in one partition, so that a change and all that it
//! causes (operation, outbox entry, claims) is one batch.
//!
//! What it is not: rules. What may be written is decided by `aro-arm` and by the roles.
//!
//! Invariant: the key of a document is a function of its resource id in lower case, so a point read needs nothing
//! but the id, in whatever case the caller wrote it.
#![warn(missing_docs)]

mod claim;
mod names;
mod outbox;
mod repository;
mod write;

pub use claim::{Claim, ClaimKind};
pub use names::{
    CASCADE_TYPE, OPERATION_TTL, OPERATION_TYPE, OUTBOX_TYPE, RESOURCES, SUBSCRIPTION_TYPE, key_of,
    operation_document_id,
};
pub use outbox::{Cascade, OutboxEntry};
pub use repository::{Documents, ListOf, Listed, Stored, decode};
pub use write::Write;
