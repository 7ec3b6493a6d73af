//! Documents as values of one Rust type: the repository that roles use.
//!
//! A [`Kind`] describes the documents (resource type, schema version, expiry); a [`Collection`] reads and writes them in one
//! container of a store. A read yields a [`Typed`] value with the etag that its next write names. Writes are operations for a
//! batch, so that a change and its effects commit together; [`Collection::update`] is the compare-and-swap loop for
//! the change of a single document.
//!
//! What it is not: a cache, and not a place for rules about what may be written.
//!
//! Invariants:
//! * A document that cannot be decoded is counted and logged ([`UnreadableDocuments`]). A point read returns it as an
//!   error; a list returns its neighbours and names it in [`Listed::unreadable`].
//! * An older schema version is upgraded when it is read; a newer one is unreadable.

mod kind;
mod unreadable;

use aro_base::{Class, Classify, ETag, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{
    Attempts, Batch, Container, DocId, DocKey, Document, Op, Page, PageToken, PartitionKey, Query,
    SharedStore, StoreError, Written,
};

pub use kind::Kind;
pub use unreadable::UnreadableDocuments;

/// A value together with what the store knows about its document.
#[derive(Debug, Clone)]
pub struct Typed<T> {
    /// The body.
    pub value: T,
    /// The document's full name.
    pub key: DocKey,
    /// Its resource id, as written.
    pub resource_id: String,
    /// To name in the next write.
    pub etag: ETag,
    /// Grows with every write.
    pub version: u64,
    /// When it was last written.
    pub modified: Timestamp,
    /// When it will expire.
    pub expires: Option<Timestamp>,
}

/// Values found by a query, in the order of their resource ids.
#[derive(Debug)]
pub struct Listed<T> {
    /// The values.
    pub items: Vec<Typed<T>>,
    /// One [`CollectionError::Decode`] per document that the query found and that could not be decoded.
    pub unreadable: Vec<CollectionError>,
    /// Where to go on; `None` at the end.
    pub next: Option<PageToken>,
}

impl<T> Listed<T> {
    /// The values, if all could be decoded: for decisions that must not miss one.
    pub fn complete(self) -> Result<Vec<Typed<T>>, CollectionError> {
        match self.unreadable.into_iter().next() {
            None => Ok(self.items),
            Some(error) => Err(error),
        }
    }
}

/// Why a body could not be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// It is not what the type expects.
    #[error("the body does not fit its type")]
    Shape(#[from] serde_json::Error),
    /// A newer release wrote it.
    #[error("schema version {stored} is newer than {known}")]
    Newer {
        /// The version of the body.
        stored: u32,
        /// The newest version that this process reads.
        known: u32,
    },
}

/// Why a typed operation failed.
#[derive(Debug, thiserror::Error)]
pub enum CollectionError {
    /// The store's own error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stored body cannot be decoded.
    #[error("decode the body of `{key}`")]
    Decode {
        /// Which document.
        key: DocKey,
        /// Which state of it.
        etag: ETag,
        /// Why.
        #[source]
        source: DecodeError,
    },
    /// A value cannot be written as JSON.
    #[error("encode the body of `{id}`")]
    Encode {
        /// Which document.
        id: DocId,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Other writers changed the document during every attempt.
    #[error("gave up on `{key}` after {} attempts: other writers keep changing it", Attempts::LIMIT)]
    Contended {
        /// Which document.
        key: DocKey,
    },
}

impl Classify for CollectionError {
    fn class(&self) -> Class {
        match self {
            Self::Store(error) => error.class(),
            Self::Contended { .. } => Class::Retry,
            Self::Decode { .. } | Self::Encode { .. } => Class::Terminal,
        }
    }
}

/// What names a document when it is written.
#[derive(Debug, Clone)]
pub struct Names {
    /// Its id inside the partition.
    pub id: DocId,
    /// The resource id that prefix queries look at.
    pub resource_id: String,
}

/// The documents of one kind in one container.
pub struct Collection<T> {
    store: SharedStore,
    container: Container,
    kind: Kind<T>,
    unreadable: UnreadableDocuments,
}

impl<T> Clone for Collection<T> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            container: self.container,
            kind: self.kind,
            unreadable: self.unreadable.clone(),
        }
    }
}

impl<T: Serialize + DeserializeOwned + Send> Collection<T> {
    /// The documents of a kind in this container.
    pub fn new(
        store: SharedStore,
        container: Container,
        kind: Kind<T>,
        unreadable: UnreadableDocuments,
    ) -> Self {
        Self { store, container, kind, unreadable }
    }

    /// The store underneath, for batches that span kinds.
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// The full name of one of its documents.
    pub fn key(&self, partition: &PartitionKey, id: &DocId) -> DocKey {
        DocKey { container: self.container, partition: partition.clone(), id: id.clone() }
    }

    /// Starts a batch on one of its partitions.
    pub fn batch(&self, partition: &PartitionKey) -> Batch {
        Batch::new(self.container, partition.clone())
    }

    /// All documents of the kind in one partition.
    pub fn in_partition(&self, partition: &PartitionKey) -> Query {
        Query::partition(self.container, partition.clone()).of_type(self.kind.resource_type())
    }

    /// All documents of the kind.
    pub fn everywhere(&self) -> Query {
        Query::all(self.container).of_type(self.kind.resource_type())
    }

    /// Reads one, if it is there.
    pub async fn find(&self, key: &DocKey) -> Result<Option<Typed<T>>, CollectionError> {
        self.store.get(key).await?.map(|document| self.decode(document)).transpose()
    }

    /// Decodes a document that was read through the store.
    pub fn decode(&self, document: Document) -> Result<Typed<T>, CollectionError> {
        let decoded = self.kind.decode(document);
        if let Err(error) = &decoded {
            self.unreadable.record(self.kind.resource_type(), error);
        }
        decoded
    }

    /// One page of a query that [`Self::in_partition`] or [`Self::everywhere`] began.
    pub async fn page(&self, query: &Query, page: Page) -> Result<Listed<T>, CollectionError> {
        let paged = self.store.query(query, page).await?;
        let mut listed =
            Listed { items: Vec::with_capacity(paged.items.len()), unreadable: Vec::new(), next: paged.next };
        for document in paged.items {
            match self.decode(document) {
                Ok(typed) => listed.items.push(typed),
                Err(error) => listed.unreadable.push(error),
            }
        }
        Ok(listed)
    }

    /// All results of a query, for sets that are small by nature.
    pub async fn all(&self, query: &Query) -> Result<Listed<T>, CollectionError> {
        const PAGE: usize = 100;
        let mut all = self.page(query, Page::first(PAGE)).await?;
        while let Some(after) = all.next.take() {
            let listed = self.page(query, Page { size: PAGE, after: Some(after) }).await?;
            all.items.extend(listed.items);
            all.unreadable.extend(listed.unreadable);
            all.next = listed.next;
        }
        Ok(all)
    }

    /// The operation that creates a document.
    pub fn create(&self, names: Names, value: &T) -> Result<Op, CollectionError> {
        Ok(Op::Create(self.kind.encode(names, value)?))
    }

    /// The operation that replaces what was read by its present value.
    pub fn replace(&self, read: &Typed<T>) -> Result<Op, CollectionError> {
        let names = Names { id: read.key.id.clone(), resource_id: read.resource_id.clone() };
        Ok(Op::Replace(self.kind.encode(names, &read.value)?, read.etag.clone()))
    }

    /// The operation that deletes what was read.
    pub fn delete(&self, read: &Typed<T>) -> Op {
        Op::Delete(read.key.id.clone(), read.etag.clone())
    }

    /// The operation that makes a batch depend on what was read.
    pub fn check(&self, read: &Typed<T>) -> Op {
        Op::Check(read.key.id.clone(), read.etag.clone())
    }

    /// Reads, changes and replaces one document; repeats when another writer was faster, up to [`Attempts::LIMIT`] times.
    ///
    /// `change` returns whether there is anything to write; it may run several times and must have no other effect.
    /// Returns `None` if there is no such document, else the document as it then is.
    ///
    /// [`StoreError::Unavailable`] is passed on: the write may have happened. Calling again is safe for a change that
    /// describes a state ("phase is Ready"); one that describes a step ("count + 1") might be applied twice, so keep
    /// an operation id in the document then.
    pub async fn update(
        &self,
        key: &DocKey,
        mut change: impl FnMut(&mut T) -> bool,
    ) -> Result<Option<Typed<T>>, CollectionError> {
        let mut attempts = Attempts::default();
        loop {
            let Some(mut read) = self.find(key).await? else { return Ok(None) };
            if !change(&mut read.value) {
                return Ok(Some(read));
            }
            let batch = self.batch(&key.partition).with(self.replace(&read)?);
            match self.store.write(batch).await {
                Ok(written) => {
                    if let Some(Written { etag, version }) = written.into_iter().next() {
                        read.etag = etag;
                        read.version = version;
                    }
                    return Ok(Some(read));
                }
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            if !attempts.wait_for_next().await {
                return Err(CollectionError::Contended { key: key.clone() });
            }
        }
    }
}
