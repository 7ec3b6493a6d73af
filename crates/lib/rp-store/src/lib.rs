//! The resource provider's documents: their names, their kinds, and the batch that changes them.
//!
//! The frontend writes them, the backend completes them; the two share these documents and nothing else. One container,
//! [`RESOURCES`], holds everything of a subscription in one partition, so that a change and its effects (operation, outbox
//! entry, claims) are one batch. Reads go through [`aro_store::Collection`] ([`Documents::of`]), writes through [`Write`].
//!
//! What it is not: rules. What may be written is decided by `aro-arm` and by the roles.
//!
//! Invariant: the key of a document is a function of its resource id in lower case, so a point read needs nothing
//! but the id, in any case.
#![warn(missing_docs)]

mod claim;
mod documents;
mod kinds;
mod names;
mod outbox;
mod write;

pub use claim::{Claim, ClaimKind};
pub use documents::{Documents, ListOf};
pub use kinds::{OPERATION_TTL, RpDocument};
pub use names::{RESOURCES, key_of, operation_document_id};
pub use outbox::{Cascade, OutboxEntry};
pub use write::Write;
