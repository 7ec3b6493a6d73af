//! Where keys come from.

use std::sync::Arc;

use aro_runtime::Scope;
use futures::future::BoxFuture;

use crate::{Key, Queue};

/// Resolves when a source has enqueued every key that existed when it started.
pub type Synced = BoxFuture<'static, ()>;

/// Enqueues the keys of one kind of change: of watched objects, of documents.
///
/// A source enqueues every existing key once after its start, then every key whose object changed, until its scope is
/// cancelled. It may enqueue a key without cause; it never misses one. Errors of the system it watches are retried inside.
pub trait Source<K: Key>: Send + Sync + 'static {
    /// Starts to enqueue. Keys that exist already are enqueued when the returned future resolves.
    fn start(&self, queue: &Queue<K>, scope: &Scope) -> Synced;
}

impl<K: Key, S: Source<K> + ?Sized> Source<K> for Arc<S> {
    fn start(&self, queue: &Queue<K>, scope: &Scope) -> Synced {
        (**self).start(queue, scope)
    }
}
