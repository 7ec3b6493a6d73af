//! The resource provider's documents, addressed by resource id and listed by type.

use std::marker::PhantomData;

use aro_arm::ResourceId;
use aro_store::{
    Collection, CollectionError, Document, Filter, Listed, Page, PartitionKey, Query, SharedStore,
    StoreError, Typed, UnreadableDocuments,
};

use crate::kinds::RpDocument;
use crate::names::{RESOURCES, key_of};

/// Which documents to list.
#[derive(Debug, Clone)]
pub struct ListOf<T> {
    query: Query,
    marker: PhantomData<fn() -> T>,
}

impl<T: RpDocument> ListOf<T> {
    /// All of one subscription.
    pub fn in_subscription(subscription: &str) -> Self {
        Self::within(Query::partition(RESOURCES, PartitionKey::new(subscription)))
    }

    /// All of all subscriptions.
    pub fn everywhere() -> Self {
        Self::within(Query::all(RESOURCES))
    }

    fn within(query: Query) -> Self {
        Self { query: query.of_type(T::KIND.resource_type()), marker: PhantomData }
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

/// The collections of the container [`RESOURCES`], with resource ids for keys.
#[derive(Clone)]
pub struct Documents {
    store: SharedStore,
    unreadable: UnreadableDocuments,
}

impl Documents {
    /// The documents in a store.
    pub fn new(store: SharedStore, unreadable: UnreadableDocuments) -> Self {
        Self { store, unreadable }
    }

    /// The store below.
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// The collection of one kind.
    pub fn of<T: RpDocument>(&self) -> Collection<T> {
        Collection::new(self.store.clone(), RESOURCES, T::KIND, self.unreadable.clone())
    }

    /// Reads the document that an id names.
    pub async fn find<T: RpDocument>(&self, id: &ResourceId) -> Result<Option<Typed<T>>, CollectionError> {
        self.of::<T>().find(&key_of(id)).await
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
    pub async fn page<T: RpDocument>(
        &self,
        of: &ListOf<T>,
        page: Page,
    ) -> Result<Listed<T>, CollectionError> {
        self.of::<T>().page(&of.query, page).await
    }

    /// The whole list, for sets that are small by nature (children of one cluster).
    pub async fn all<T: RpDocument>(&self, of: &ListOf<T>) -> Result<Listed<T>, CollectionError> {
        self.of::<T>().all(&of.query).await
    }
}
