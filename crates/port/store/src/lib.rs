//! The document store: what every service persists goes through here.
//!
//! The contract is the weakest backend's, Azure Cosmos DB: documents live in a *container*, inside a
//! *partition*; a write is a batch of one partition, at most [`MAX_BATCH`] operations, all or nothing;
//! every document carries an etag and no unconditional write exists; a change feed per container delivers the
//! latest version of every changed document. Adapters (`aro-store-sqlite`, `aro-store-postgres`) must
//! not offer more, and the suite in `conformance/` (`aro-store-conformance`) holds them to it.
//!
//! What it is not: a query engine. Queries are by type, by id prefix and by equality on named members, and for APIs with
//! a search language by a [`Condition`]; work across partitions is a reconciler's, never a transaction's.
//!
//! Invariants every caller may rely on:
//! * A successful [`DocumentStore::write`] survives `kill -9` of the process that made it.
//! * A deleted or expired document is never returned by `get` or `query`, and its key can be created anew at
//!   once, with a greater `version`.
//! * The feed delivers at least once, in commit order within a partition, without a gap from any cursor it
//!   handed out; if a gap can no longer be excluded it returns [`StoreError::CursorExpired`] instead.
#![warn(missing_docs)]

pub mod adapter;
mod attempts;
mod batch;
mod collection;
mod condition;
mod document;
mod error;
#[cfg(any(test, feature = "testing"))]
pub mod fault;
mod feed;
mod follower;
mod journal;
mod lease;
mod query;
mod source;
mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use attempts::Attempts;
pub use batch::{Batch, BatchError, MAX_BATCH, MAX_DOCUMENT_BYTES, MAX_ID_BYTES, MAX_NAME_BYTES, Op};
pub use collection::{
    Collection, CollectionError, DecodeError, Kind, Listed, Names, Typed, UnreadableDocuments,
};
pub use condition::{Condition, ConditionError, Expr, Literal, Path, Relation};
pub use document::{Container, DocId, DocKey, Document, NewDocument, PartitionKey, Raw};
pub use error::StoreError;
pub use feed::{Change, ChangePage, Cursor};
pub use follower::Follower;
pub use journal::{DocumentJournal, JournalPlace};
pub use lease::{DocumentLease, Fence, FenceError, LEASES, Raised};
pub use query::{Filter, Order, Page, PageToken, Paged, Query, Slice};
pub use source::DocumentSource;
pub use store::{ChangeSignal, DocumentStore, SharedStore, Written};
