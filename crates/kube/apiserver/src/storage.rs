//! Objects of all logical clusters: in memory for readers, in one log on disk for the next start.
//!
//! A [`Space`] is the storage of one cluster: a counter of resource versions and a [`Shelf`] per resource. All spaces
//! share one [`Engine`], and therefore one log and its group commit.
//!
//! The life of a write: the handler looks at the [latest](Space::latest) object, decides, and
//! [commits](Space::commit) against the version it saw. Under the space's lock the version is checked, the next resource
//! version is given out and the record is queued for the log; when it is durable, the log's thread publishes it to the
//! shelf, wakes watchers and answers the handler.
//!
//! Invariants:
//! - Readers and watchers only see what is durable. Writers are checked against what is queued, too.
//! - Resource versions of a space only grow, also over restarts, and are published in order.
//! - A shelf's history holds every event after its floor; whoever asks for less gets 410 and lists again.

mod compact;
mod engine;
mod object;
mod record;
mod shelf;
mod space;

pub use engine::{Engine, EngineError};
pub use object::{Draft, Stored};
pub use shelf::{Event, EventKind, Listed, Shelf, TooOld};
pub use space::{Change, Expect, Space, WriteFailed};

#[cfg(test)]
mod tests;
