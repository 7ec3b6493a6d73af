//! The words every other crate shares: time as a trait, error classes, secrets, entity tags, the depth of
//! documents.
//!
//! What it is not: a place for domain types. ARM words live in `aro-arm`; documents live in `aro-store`.
//!
//! Invariant of the whole `core` layer: pure. Nothing here performs I/O, reads a clock or draws randomness;
//! the caller hands those in ([`Clock`], ids already made).

mod class;
mod clock;
mod error_chain;
mod etag;
pub mod nesting;
mod secret;

pub use class::{Class, Classify};
pub use clock::{Clock, ManualClock, SharedClock};
pub use error_chain::chain;
pub use etag::ETag;
pub use jiff::{SignedDuration, Timestamp};
pub use secret::Secret;
