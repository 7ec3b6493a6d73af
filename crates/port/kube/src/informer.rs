//! One copy of a resource's objects, kept up to date by a watch and shared by all controllers of a process.
//!
//! What it is: a [`Cache`] with indexes, and an [`Informer`] that fills it and calls subscribers with every change. Objects are
//! typed, or dynamic with their resource known at run time ([`Informer::dynamic`]).
//!
//! What it is not: a queue. As a source of keys for a controller an informer is [`Informer::objects`],
//! [`Informer::owned_by`] or [`Informer::mapped`].
//!
//! Controllers write through the cache: the API server's answer to a write goes in at once ([`Cache::wrote`]), so that the
//! next pass sees its own writes even if the watch is late. No controller has to count expected events.
//!
//! Invariants:
//! * An object never gets older: what has a lower resource version than what is cached is ignored.
//! * Managed fields are dropped: no controller decides by them, and they are half of an object.
//! * What was written through while a list was under way and is not on the list is looked up: it was written after the list
//!   was served, or it is gone and no watch will say so.
//! * After the first list ([`Informer::synced`]) every listed object has been passed to every subscriber.

mod cache;
mod confirm;
mod run;
mod source;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::sync::Arc;

use aro_runtime::Scope;
use kube::{Resource, ResourceExt as _};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

pub use cache::{Cache, Index, ObjectKey};
pub use run::{WatchSink, list_and_watch};
pub use source::{InformerSource, controller_of, owner_key};

/// Objects that can be cached: of a type that is known when compiling or when running.
pub trait Kept:
    Resource<DynamicType: Clone + Send + Sync> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}
impl<K> Kept for K where
    K: Resource<DynamicType: Clone + Send + Sync> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

/// A change of an object.
#[derive(Debug, Clone)]
pub enum Change<K> {
    /// The object was created or changed.
    Applied {
        /// The state before, if there was one.
        old: Option<Arc<K>>,
        /// The present state.
        new: Arc<K>,
    },
    /// The object was deleted; this was its last state.
    Deleted(Arc<K>),
}

impl<K> Change<K> {
    /// The present state, or the last one.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Applied { new, .. } => new,
            Self::Deleted(old) => old,
        }
    }

    /// The state before, if there was one.
    pub fn before(&self) -> Option<&Arc<K>> {
        match self {
            Self::Applied { old, .. } => old.as_ref(),
            Self::Deleted(old) => Some(old),
        }
    }

    /// The present state, if there is one.
    pub fn now(&self) -> Option<&Arc<K>> {
        match self {
            Self::Applied { new, .. } => Some(new),
            Self::Deleted(_) => None,
        }
    }
}

/// Called for every change.
type Callback<K> = Box<dyn Fn(&Change<K>) + Send + Sync>;

struct Subscriber<K> {
    /// `None`: as long as the informer.
    scope: Option<Scope>,
    call: Callback<K>,
}

impl<K> Subscriber<K> {
    fn is_over(&self) -> bool {
        self.scope.as_ref().is_some_and(Scope::is_cancelled)
    }
}

/// Keeps a [`Cache`] up to date. Cloning gives another handle to the same informer.
pub struct Informer<K: Kept> {
    /// The kind of its objects, for logs.
    kind: Arc<str>,
    resource: Arc<K::DynamicType>,
    cache: Cache<K>,
    subscribers: Arc<RwLock<Vec<Subscriber<K>>>>,
    synced: watch::Sender<bool>,
}

impl<K: Kept> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self {
            kind: self.kind.clone(),
            resource: self.resource.clone(),
            cache: self.cache.clone(),
            subscribers: self.subscribers.clone(),
            synced: self.synced.clone(),
        }
    }
}

impl<K: Kept> Debug for Informer<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Informer({}, {} objects)", self.kind, self.cache.len())
    }
}

impl<K: Kept + Resource<DynamicType = ()>> Default for Informer<K> {
    fn default() -> Self {
        Self::with(&[])
    }
}

impl<K: Kept> Informer<K> {
    /// An empty informer of a type with these indexes beside the standard ones. [`Informer::run`] fills it.
    pub fn with(indexes: &[Index<K>]) -> Self
    where
        K: Resource<DynamicType = ()>,
    {
        Self::dynamic(&(), indexes)
    }

    /// An empty informer of a resource that is known at run time.
    pub fn dynamic(resource: &K::DynamicType, indexes: &[Index<K>]) -> Self {
        Self {
            kind: K::kind(resource).into(),
            resource: Arc::new(resource.clone()),
            cache: Cache::with(indexes),
            subscribers: Arc::default(),
            synced: watch::Sender::new(false),
        }
    }

    /// The cached objects.
    pub fn cache(&self) -> &Cache<K> {
        &self.cache
    }

    /// Calls `subscriber` with every change from now on, except those of [`Cache::wrote`], which its writer knows.
    /// It runs on the informer's task and must not block.
    pub fn subscribe(&self, subscriber: impl Fn(&Change<K>) + Send + Sync + 'static) {
        self.add(None, Box::new(subscriber));
    }

    /// The same until the scope is cancelled.
    fn subscribe_until(&self, scope: &Scope, subscriber: impl Fn(&Change<K>) + Send + Sync + 'static) {
        self.add(Some(scope.clone()), Box::new(subscriber));
    }

    fn add(&self, scope: Option<Scope>, call: Callback<K>) {
        let mut subscribers = self.subscribers.write();
        subscribers.retain(|known| !known.is_over());
        subscribers.push(Subscriber { scope, call });
    }

    /// Returns when the first list has been read.
    pub async fn synced(&self) {
        let mut synced = self.synced.subscribe();
        // The sender lives in `self`: this cannot fail before it returns.
        let _ = synced.wait_for(|synced| *synced).await;
    }

    fn notify(&self, change: &Change<K>) {
        for subscriber in self.subscribers.read().iter() {
            (subscriber.call)(change);
        }
    }
}

/// The key of an object.
pub fn key_of<K: Resource>(object: &K) -> ObjectKey {
    ObjectKey { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
}
