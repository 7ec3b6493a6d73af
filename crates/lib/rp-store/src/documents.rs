//! Reading documents by resource id and by type.

use std::marker::PhantomData;

use aro_arm::ResourceId;
use aro_base::ETag;
use aro_store::{Document, Filter, Page, PageToken, PartitionKey, Query, SharedStore, StoreError};
use serde::de::DeserializeOwned;

use crate::names::{RESOURCES, key_of};

/// A value with the mark its next write must name.
#[derive(Debug, Clone)]
pub struct Stored<T> {
    /// The value.
    pub value: T,
    /// Its version mark.
    pub etag: ETag,
}

/// One page of values.
#[derive(Debug, Clone)]
pub struct Listed<T> {
    /// The values, in the order of their ids.
    pub items: Vec<Stored<T>>,
    /// Where to go on.
    pub next: Option<PageToken>,
}

/// Which documents to list.
#[derive(Debug, Clone)]
pub struct ListOf<T> {
    query: Query,
    marker: PhantomData<fn() -> T>,
}

impl<T> ListOf<T> {
    /// Documents of a type in one subscription.
    pub fn in_subscription(subscription: &str, resource_type: &str) -> Self {
        let query = Query::partition(RESOURCES, PartitionKey::new(subscription)).of_type(resource_type);
        Self { query, marker: PhantomData }
    }

    /// Documents of a type in all subscriptions.
    pub fn everywhere(resource_type: &str) -> Self {
        Self { query: Query::all(RESOURCES).of_type(resource_type), marker: PhantomData }
    }

    /// Only those below this id.
    pub fn below(mut self, parent: &str) -> Self {
        self.query = self.query.under(format!("{parent}/"));
        self
    }

    /// Only those that meet a condition.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.query = self.query.filter(filter);
        self
    }
}

/// The resource provider's documents in a store.
#[derive(Clone)]
pub struct Documents {
    store: SharedStore,
}

impl Documents {
    /// A view on a store.
    pub fn new(store: SharedStore) -> Self {
        Self { store }
    }

    /// The store below.
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// Reads the document that an id names.
    pub async fn find<T: DeserializeOwned>(&self, id: &ResourceId) -> Result<Option<Stored<T>>, StoreError> {
        self.read(id).await?.map(|document| decode(&document)).transpose()
    }

    /// Reads it without decoding it.
    pub async fn read(&self, id: &ResourceId) -> Result<Option<Document>, StoreError> {
        self.store.get(&key_of(id)).await
    }

    /// Whether a document with this id exists.
    pub async fn exists(&self, id: &ResourceId) -> Result<bool, StoreError> {
        Ok(self.read(id).await?.is_some())
    }

    /// One page of a list.
    pub async fn page<T: DeserializeOwned>(
        &self,
        of: &ListOf<T>,
        page: Page,
    ) -> Result<Listed<T>, StoreError> {
        let paged = self.store.query(&of.query, page).await?;
        let items = paged.items.iter().map(decode).collect::<Result<_, _>>()?;
        Ok(Listed { items, next: paged.next })
    }

    /// The whole list, for sets that are small by nature (children of one cluster).
    pub async fn all<T: DeserializeOwned>(&self, of: &ListOf<T>) -> Result<Vec<Stored<T>>, StoreError> {
        let mut all = Vec::new();
        let mut page = Page::first(100);
        loop {
            let listed = self.page(of, page).await?;
            all.extend(listed.items);
            match listed.next {
                Some(next) => page = Page { size: 100, after: Some(next) },
                None => return Ok(all),
            }
        }
    }
}

/// Decodes a document that was read.
pub fn decode<T: DeserializeOwned>(document: &Document) -> Result<Stored<T>, StoreError> {
    let value = document.body.to().map_err(|source| {
        let what = format!("document {} of type {}", document.key, document.resource_type);
        StoreError::Corrupt(Box::new(Undecodable { what, source }))
    })?;
    Ok(Stored { value, etag: document.etag.clone() })
}

#[derive(Debug, thiserror::Error)]
#[error("decode {what}")]
struct Undecodable {
    what: String,
    source: serde_json::Error,
}
