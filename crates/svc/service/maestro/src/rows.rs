//! The repository: bundles and consumers as documents of one container.
//!
//! * A bundle is one document in a partition of its own, since PostgreSQL orders writes per partition. Its resource id is
//!   `/consumers/<consumer>/bundles/<id>`, so the bundles of one consumer are a prefix.
//! * A consumer is one document of the partition `consumers`, under its name; its resource id is `/consumers/<uuid>`.
//! * The name of a removed consumer stays in a document of its own: certificates of its agent may still be valid.
//! * A tombstone replaces a removed bundle for an hour: followers of the container's feed deliver the final status to
//!   sources, and a new bundle of the same id knows which statuses belong to the former one.
//!
//! What it is not: it publishes nothing and follows no feed. `deliveries` finds what is due.
//!
//! Invariants:
//! * Every write carries the etag it read, and every retry loop is bounded.
//! * The version of a bundle grows by one with every change of its spec, and with nothing else.
//! * A bundle being deleted stays until its agent reports that everything is deleted, or an operator abandons the consumer.
//! * No bundle refers to a missing consumer: a create reads the consumer before and after its write, and a removal of a
//!   consumer marks it before it counts its bundles.

mod bundle;
mod bundles;
mod consumer;
mod consumers;
mod decide;
mod deliveries;
mod moment;
mod of_source;

pub use bundle::{Bundle, DeliveryRecord, LONGEST_PAUSE, Tombstone};
pub use bundles::{Deletion, Update};
pub use consumer::{Consumer, OrphanDeletion, check_name};
pub use decide::Outcome;
pub use moment::Moment;

use std::sync::Arc;
use std::time::Duration;

use aro_base::{SharedClock, chain};
use aro_store::{
    Batch, Condition, Container, DocId, DocKey, Document, NewDocument, Page, PageToken, PartitionKey, Query,
    Raw, SharedStore, StoreError,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fault::{Code, Fault};

/// The container of all Maestro documents.
pub const CONTAINER: Container = Container::new("maestro");

/// The resource type of bundles.
pub const BUNDLE: &str = "bundle";
/// The resource type of tombstones.
pub const TOMBSTONE: &str = "farewell";
/// The resource type of consumers.
pub const CONSUMER: &str = "consumer";
/// The resource type of names that were a consumer's.
const FORMER_CONSUMER: &str = "former-consumer";

/// Attempts at a write that conflicts with others.
const ATTEMPTS: u32 = 12;

/// How long a tombstone is kept.
const TOMBSTONE_TTL: Duration = Duration::from_hours(1);

/// A stored value and its etag.
#[derive(Debug, Clone)]
pub struct Row<T> {
    /// The value.
    pub value: T,
    /// The document's etag.
    pub etag: aro_base::ETag,
    /// Grows with every write, across removal and creation too.
    pub revision: u64,
}

/// A document of the container, as followers of its feed get it.
#[derive(Debug)]
pub enum FeedRow {
    /// A bundle.
    Bundle(Box<Row<Bundle>>),
    /// The tombstone of a bundle.
    Tombstone(Box<Tombstone>),
    /// A consumer.
    Consumer(Row<Consumer>),
}

impl FeedRow {
    /// Decodes a document; `None` if this release does not know its type.
    pub fn read(document: &Document) -> Result<Option<Self>, Fault> {
        Ok(match document.resource_type.as_str() {
            BUNDLE => Some(Self::Bundle(Box::new(row(document)?))),
            TOMBSTONE => Some(Self::Tombstone(Box::new(row(document)?.value))),
            CONSUMER => Some(Self::Consumer(row(document)?)),
            _ => None,
        })
    }
}

/// The repository. Cheap to clone.
#[derive(Clone)]
pub struct Rows {
    store: SharedStore,
    clock: SharedClock,
    /// The original source that statuses must name.
    server: Arc<str>,
}

impl Rows {
    /// A repository on a store. `server` is the server's own source id, `maestro` by default.
    pub fn new(store: SharedStore, clock: SharedClock, server: &str) -> Self {
        Self { store, clock, server: server.into() }
    }

    /// The store, for its feed.
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// The clock that writes are stamped with.
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    async fn find<T: DeserializeOwned>(&self, key: &DocKey) -> Result<Option<Row<T>>, Fault> {
        let document = self.store.get(key).await.map_err(store_fault)?;
        document.as_ref().map(row).transpose()
    }

    /// One page of a query.
    async fn page<T: DeserializeOwned>(
        &self,
        query: &Query,
        page: Page,
    ) -> Result<(Vec<Row<T>>, Option<PageToken>), Fault> {
        let paged = self.store.query(query, page).await.map_err(store_fault)?;
        // One document that cannot be decoded must not hide the others.
        let readable = |document: &Document| {
            let read = row(document);
            read.inspect_err(
                |error| tracing::error!(document = %document.key, error = %chain(error), "row cannot be decoded; skipped"),
            )
            .ok()
        };
        Ok((paged.items.iter().filter_map(readable).collect(), paged.next))
    }

    /// Writes a batch; `false` on a conflict.
    async fn write(&self, batch: Batch) -> Result<bool, Fault> {
        match self.store.write(batch).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(store_fault(error)),
        }
    }
}

/// All documents of a type that meet a condition.
fn of_type(kind: &str, condition: Option<Condition>) -> Query {
    let query = Query::all(CONTAINER).of_type(kind);
    match condition {
        Some(condition) => query.matching(condition),
        None => query,
    }
}

fn bundles_of(consumer: &str) -> String {
    format!("/consumers/{consumer}/bundles/")
}

fn bundle_key(id: &str) -> DocKey {
    DocKey { container: CONTAINER, partition: PartitionKey::new(id), id: DocId::new(id) }
}

/// Differs from the key of the bundle in the same partition.
fn tombstone_key(id: &str) -> DocKey {
    DocKey { id: DocId::new(&format!("{id}:farewell")), ..bundle_key(id) }
}

fn consumer_key(name: &str) -> DocKey {
    DocKey { container: CONTAINER, partition: PartitionKey::new("consumers"), id: DocId::new(name) }
}

/// Differs from the key of any consumer: names have no colon.
fn former_consumer_key(name: &str) -> DocKey {
    DocKey { id: DocId::new(&format!("{name}:former")), ..consumer_key(name) }
}

fn bundle_document(bundle: &Bundle) -> Result<NewDocument, Fault> {
    let resource_id = format!("{}{}", bundles_of(&bundle.consumer_name), bundle.id);
    document(&bundle.id, BUNDLE, resource_id, bundle)
}

fn document<T: Serialize>(
    id: &str,
    kind: &str,
    resource_id: String,
    value: &T,
) -> Result<NewDocument, Fault> {
    let body = Raw::of(value).map_err(|error| Fault::caused("encode a row", error))?;
    Ok(NewDocument { id: DocId::new(id), resource_type: kind.to_owned(), resource_id, ttl: None, body })
}

fn row<T: DeserializeOwned>(document: &Document) -> Result<Row<T>, Fault> {
    let value = document.body.to().map_err(Fault::unreadable)?;
    Ok(Row { value, etag: document.etag.clone(), revision: document.version })
}

/// A store error as clients see it.
fn store_fault(error: StoreError) -> Fault {
    match error {
        StoreError::Batch(error) => Fault::new(Code::Validation, error.to_string()),
        error @ StoreError::BadToken => Fault::new(Code::BadRequest, error.to_string()),
        error => Fault::caused("the store failed", error),
    }
}

/// Other writers change the document faster than it can be written.
fn contended(id: &str) -> Fault {
    Fault::new(Code::Conflict, format!("the resource was modified concurrently; retry, id: {id}"))
}
