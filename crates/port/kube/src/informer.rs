//! One copy of a resource's objects, kept up to date by a watch and shared by everybody in the process who needs it.
//!
//! What it is: a [`Cache`] with indexes, and an [`Informer`] that fills it and tells subscribers what changed.
//! What it is not: a queue. Subscribers run on the informer's task and do no more than add keys to their queues.
//!
//! Controllers write through it: what the API server answered to a write goes in at once ([`Cache::wrote`]), so that the
//! next pass sees its own writes even if the watch is late. That is why nobody here needs to count what they expect.
//!
//! Invariants:
//! * An object never gets older: what has a lower resource version than what is there is left out.
//! * Managed fields are dropped; nobody decides by them, and they are half of an object.
//! * After the first list ([`Informer::synced`]) every object that is there was told to every subscriber.

mod cache;
mod run;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::sync::Arc;

use kube::{Resource, ResourceExt as _};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

pub use cache::{Cache, Index, ObjectKey};
pub use run::Patience;

/// Objects that can be kept.
pub trait Kept:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}
impl<K> Kept for K where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

/// What happened to an object.
#[derive(Debug, Clone)]
pub enum Change<K> {
    /// It is there, new or changed.
    Applied {
        /// What was there before.
        old: Option<Arc<K>>,
        /// What is there now.
        new: Arc<K>,
    },
    /// It is gone.
    Deleted(Arc<K>),
}

impl<K> Change<K> {
    /// The object as it is now, or as it was last.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Self::Applied { new, .. } => new,
            Self::Deleted(old) => old,
        }
    }

    /// What was there before, if anything.
    pub fn before(&self) -> Option<&Arc<K>> {
        match self {
            Self::Applied { old, .. } => old.as_ref(),
            Self::Deleted(old) => Some(old),
        }
    }

    /// What is there now, if anything.
    pub fn now(&self) -> Option<&Arc<K>> {
        match self {
            Self::Applied { new, .. } => Some(new),
            Self::Deleted(_) => None,
        }
    }
}

type Subscriber<K> = Box<dyn Fn(&Change<K>) + Send + Sync>;

/// Keeps a [`Cache`] up to date. Cloning gives another handle to the same one.
pub struct Informer<K: Kept> {
    cache: Cache<K>,
    subscribers: Arc<RwLock<Vec<Subscriber<K>>>>,
    synced: watch::Sender<bool>,
}

impl<K: Kept> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), subscribers: self.subscribers.clone(), synced: self.synced.clone() }
    }
}

impl<K: Kept> Debug for Informer<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Informer({}, {} objects)", K::kind(&()), self.cache.len())
    }
}

impl<K: Kept> Default for Informer<K> {
    fn default() -> Self {
        Self::with(&[])
    }
}

impl<K: Kept> Informer<K> {
    /// An empty one with these indexes beside the standard ones. [`Informer::run`] fills it.
    pub fn with(indexes: &[Index<K>]) -> Self {
        Self { cache: Cache::with(indexes), subscribers: Arc::default(), synced: watch::Sender::new(false) }
    }

    /// What is known now.
    pub fn cache(&self) -> &Cache<K> {
        &self.cache
    }

    /// Tells `subscriber` about every change from now on, those of [`Cache::wrote`] excepted: whoever writes knows.
    /// It runs on the informer's task and must not block.
    pub fn subscribe(&self, subscriber: impl Fn(&Change<K>) + Send + Sync + 'static) {
        self.subscribers.write().push(Box::new(subscriber));
    }

    /// Returns when the first list has been read.
    pub async fn synced(&self) {
        let mut synced = self.synced.subscribe();
        // The sender lives in `self`: this cannot fail while we wait.
        let _ = synced.wait_for(|synced| *synced).await;
    }

    fn tell(&self, change: &Change<K>) {
        for subscriber in self.subscribers.read().iter() {
            subscriber(change);
        }
    }
}

/// The key of an object.
pub fn key_of<K: Resource<DynamicType = ()>>(object: &K) -> ObjectKey {
    ObjectKey { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
}
