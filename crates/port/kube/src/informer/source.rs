//! Informers as sources of keys for controllers.

use std::sync::Arc;

use aro_control::{Key, Queue, Source, Synced};
use aro_runtime::Scope;
use futures::FutureExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;

use super::{Change, Informer, Kept, ObjectKey, key_of};

type Enqueue<K, Q> = dyn Fn(&Change<K>, &Queue<Q>) + Send + Sync;

/// Enqueues a key for each change of an informer's objects. Made by [`Informer::objects`], [`Informer::owned_by`] and
/// [`Informer::mapped`]. Several sources, of several clusters too, may share one informer.
pub struct InformerSource<K: Kept, Q> {
    informer: Informer<K>,
    enqueue: Arc<Enqueue<K, Q>>,
}

impl<K: Kept> Informer<K> {
    /// Enqueues the keys of the objects themselves.
    pub fn objects(&self) -> InformerSource<K, ObjectKey> {
        self.mapped(|change, queue| queue.add(key_of(&**change.object())))
    }

    /// Enqueues the keys of the objects' controllers of kind `O`, by owner reference: of the present one and of the one
    /// before the change.
    pub fn owned_by<O: Resource<DynamicType = ()>>(&self) -> InformerSource<K, ObjectKey> {
        self.mapped(|change, queue| {
            let owner = |object: &Arc<K>| owner_key::<O>(&**object);
            let (before, now) = (change.before().and_then(owner), change.now().and_then(owner));
            if before != now
                && let Some(key) = before
            {
                queue.add(key);
            }
            let present = now.or_else(|| owner(change.object()));
            if let Some(key) = present {
                queue.add(key);
            }
        })
    }

    /// Lets a function enqueue the keys that a change concerns. It runs on the informer's task and must not block.
    pub fn mapped<Q: Key>(
        &self,
        enqueue: impl Fn(&Change<K>, &Queue<Q>) + Send + Sync + 'static,
    ) -> InformerSource<K, Q> {
        InformerSource { informer: self.clone(), enqueue: Arc::new(enqueue) }
    }
}

impl<K: Kept, Q: Key> Source<Q> for InformerSource<K, Q> {
    fn start(&self, queue: &Queue<Q>, scope: &Scope) -> Synced {
        let (enqueue, own, alive) = (self.enqueue.clone(), queue.clone(), scope.clone());
        self.informer.subscribe_until(scope, move |change| {
            if !alive.is_cancelled() {
                enqueue(change, &own);
            }
        });
        // The informer may have read its list already. What it reads from here on reaches the subscriber as well: an object
        // is enqueued twice rather than never.
        for object in self.informer.cache().all() {
            (self.enqueue)(&Change::Applied { old: None, new: object }, queue);
        }
        let informer = self.informer.clone();
        async move { informer.synced().await }.boxed()
    }
}

/// The reference to an object's controller.
pub fn controller_of<K: Resource>(object: &K) -> Option<&OwnerReference> {
    object.meta().owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// The key of an object's controller, if that is of kind `O`. Owners are in the namespace of what they own, or have none.
pub fn owner_key<O: Resource<DynamicType = ()>>(object: &impl Resource) -> Option<ObjectKey> {
    let owner = controller_of(object)?;
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let same = owner.kind == O::kind(&()) && group == O::group(&());
    same.then(|| ObjectKey::new(object.meta().namespace.clone().unwrap_or_default(), owner.name.clone()))
}
