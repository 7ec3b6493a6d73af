//! Objects of all logical clusters: in memory for readers, in one log on disk for the next start.
//!
//! A [`ClusterStore`] is the storage of one cluster: a counter of resource versions and a [`WatchCache`] per resource. All cluster stores
//! share one [`Engine`], and therefore one log and its group commit.
//!
//! The life of a write: the handler looks at the [latest](ClusterStore::latest) object, decides, and
//! [commits](ClusterStore::commit) against the version it saw. Under the cluster store's lock the version is checked, the next resource
//! version is given out and the record is queued for the log; when it is durable, the log's thread publishes it to the
//! watch cache, wakes watchers and answers the handler.
//!
//! Invariants:
//! - Readers and watchers only see what is durable. Writers are checked against what is queued, too.
//! - Resource versions of a cluster store only grow, also over restarts, and are published in order.
//! - A watch cache's history holds every event after its floor; a watch from an older version gets 410 and lists again.
//! - Histories are bounded by events, bytes and age; all clusters share the bytes.
//! - Under a watch cache's lock, which the log thread needs, pointers are copied in chunks; nothing is parsed or selected.

mod cluster_store;
mod compact;
mod engine;
mod history;
mod lister;
mod object;
mod record;
mod watch_cache;

pub use cluster_store::{Change, ClusterStore, Expect, WriteFailed};
pub use engine::{Engine, EngineError};
pub use history::HistoryLimits;
pub use lister::Lister;
pub use object::{Draft, Stored};
pub use watch_cache::{Event, EventKind, Listed, TooOld, WatchCache};

#[cfg(test)]
mod tests;
