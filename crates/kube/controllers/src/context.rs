//! What every controller of a cluster is given.

use std::sync::Arc;
use std::time::Duration;

use aro_base::SharedClock;
use aro_control::{Queue, Reconcile, ReconcileMetrics, Runner, Source, Synced};
use aro_kube::informer::ObjectKey;
use aro_runtime::{Fault, Scope};
use futures::FutureExt as _;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};

use crate::caches::Caches;
use crate::workloads::Activity;
use aro_kube::events::Recorder;

/// What every controller of a cluster is given.
#[derive(Clone)]
pub struct Context {
    pub client: Client,
    pub caches: Caches,
    pub clock: SharedClock,
    pub events: Recorder,
    pub metrics: ReconcileMetrics,
    pub activity: Activity,
    /// How long a node may be silent before it counts as lost.
    pub node_grace: Duration,
    /// Where the directories of local volumes are made; `None`: claims are not provisioned here.
    pub volumes: Option<std::path::PathBuf>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Context")
    }
}

impl Context {
    /// A namespace's objects of one kind.
    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// A runner of a controller. Its first pass waits for every cache: a controller that reads a cache before its first list
    /// would create what is there already.
    pub fn runner<R: Reconcile<Key = ObjectKey>>(
        &self,
        reconciler: R,
        queue: &Queue<ObjectKey>,
    ) -> Runner<R> {
        self.activity.watch_queue(queue);
        Runner::new(Arc::new(reconciler), queue)
            .with_metrics(&self.metrics)
            .with_source(AllCaches(self.caches.clone()))
    }

    /// The time until `at`, by the wall clock; nothing if that is past.
    pub fn until(&self, at: aro_base::Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.clock.now())).unwrap_or_default()
    }
}

/// Enqueues nothing, and is synced when all caches are.
struct AllCaches(Caches);

impl Source<ObjectKey> for AllCaches {
    fn start(&self, _: &Queue<ObjectKey>, _: &Scope) -> Synced {
        let caches = self.0.clone();
        async move { caches.synced().await }.boxed()
    }
}

/// A fault of a call to the API server.
pub fn refused(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Fault {
    move |error| Fault::caused(what, error)
}

/// Whether the API server says that there is no such thing.
pub fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether the API server says that it is there already, or was changed by another client.
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}
