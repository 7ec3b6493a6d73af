//! The port itself.

use std::sync::Arc;

use aro_base::ETag;
use async_trait::async_trait;

use crate::{Batch, ChangePage, Container, Cursor, DocKey, Document, Page, Paged, Query, Slice, StoreError};

/// What a successful batch gave: one entry per operation, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The document's new etag (for `Delete` the tombstone's, for `Check` the one that was checked).
    pub etag: ETag,
    /// The document's new version.
    pub version: u64,
}

/// A document store. See the crate's documentation for the contract.
#[async_trait]
pub trait DocumentStore: Send + Sync + 'static {
    /// Reads one document.
    async fn get(&self, key: &DocKey) -> Result<Option<Document>, StoreError>;

    /// Writes one batch. After [`StoreError::Unavailable`] the caller does not know whether it happened and must
    /// read before trying again.
    async fn write(&self, batch: Batch) -> Result<Vec<Written>, StoreError>;

    /// Runs a query and returns one page of it.
    async fn query(&self, query: &Query, page: Page) -> Result<Paged, StoreError>;

    /// Runs a query and returns a part of it in the order asked for. It looks at all that the query finds: narrow the
    /// query by type and prefix.
    async fn slice(&self, query: &Query, slice: &Slice) -> Result<Vec<Document>, StoreError>;

    /// How many documents a query finds.
    async fn count(&self, query: &Query) -> Result<u64, StoreError>;

    /// Reads the feed after a cursor; `None` is the beginning (every live document). At most `limit` changes.
    async fn changes(
        &self,
        container: Container,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<ChangePage, StoreError>;

    /// The feed's end as of now: list after asking for it, then follow from it, and nothing is missed.
    async fn latest_cursor(&self, container: Container) -> Result<Cursor, StoreError>;

    /// Signals when `changes` may have something new. Spurious wake-ups happen, lost ones do not.
    fn subscribe(&self, container: Container) -> Box<dyn ChangeSignal>;

    /// Whether the store answers; used for readiness.
    async fn ping(&self) -> Result<(), StoreError>;
}

/// Wakes a feed reader.
#[async_trait]
pub trait ChangeSignal: Send {
    /// Returns when there may be something new since the last return. Also returns now and then without cause.
    async fn changed(&mut self);
}

/// A store as it is passed around.
pub type SharedStore = Arc<dyn DocumentStore>;
