//! Watches on the resources that works apply: one for each resource, shared by all works.
//!
//! What it is: the state of every object that a work wants ([`Watch::look`]), kept up to date by an informer's list and watch,
//! which starts when the first work wants an object of the resource and stops when none does.
//!
//! What it is not: a copy of the cluster. Objects that no work wants are dropped on arrival, except those that a record owns:
//! after a restart their works follow later.
//!
//! The flow: an event changes the state and enqueues the works that want the object, a moment later, so that a burst of
//! events is one pass. The answer to an own write goes in at once ([`Watch::wrote`]); the watch event that repeats it
//! enqueues nothing.
//!
//! Invariant: an object never gets older; see `objects` for how.

mod follow;
mod objects;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aro_control::Queue;
use aro_kube::informer::ObjectKey;
use aro_runtime::Scope;
use kube::core::ApiResource;
use kube::{Api, Client};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::decide::Known;
use crate::kinds::Kind;
use crate::live::Live;
use crate::metrics::ApplyMetrics;
use objects::Objects;

/// The delay between an event and the pass of its works; further events within it are part of the same pass.
const BATCH_DELAY: Duration = Duration::from_millis(10);

/// Whether a resource is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// The first list is under way.
    Opening,
    /// It is watched.
    Clear,
    /// It cannot be watched; objects have to be read.
    Blind,
}

/// One resource, and the state of its objects.
pub(crate) struct Watch {
    client: Client,
    kind: Arc<Kind>,
    objects: Mutex<Objects>,
    sight: watch::Sender<Sight>,
    works: Queue<String>,
    stop: CancellationToken,
}

/// All watches of an engine.
pub(crate) struct Watches {
    client: Client,
    works: Queue<String>,
    scope: Scope,
    metrics: ApplyMetrics,
    all: Mutex<HashMap<ApiResource, Arc<Watch>>>,
}

impl Watches {
    pub(crate) fn new(client: Client, works: Queue<String>, scope: Scope, metrics: ApplyMetrics) -> Self {
        Self { client, works, scope, metrics, all: Mutex::default() }
    }

    /// Registers a work for an object, and watches the resource from now on.
    pub(crate) fn want(&self, kind: &Arc<Kind>, key: &ObjectKey, work: &str) -> Arc<Watch> {
        let mut all = self.all.lock();
        if let Some(watch) = all.get(&kind.api) {
            watch.objects.lock().want(key, work);
            return watch.clone();
        }
        let watch = Arc::new(Watch {
            client: self.client.clone(),
            kind: kind.clone(),
            objects: Mutex::default(),
            sight: watch::Sender::new(Sight::Opening),
            works: self.works.clone(),
            stop: CancellationToken::new(),
        });
        watch.objects.lock().want(key, work);
        follow::start(&watch, &self.scope);
        all.insert(kind.api.clone(), watch.clone());
        self.metrics.watches.set(all.len() as i64);
        watch
    }

    /// Removes a work's registration for an object. A resource without registrations is not watched any longer.
    pub(crate) fn release(&self, kind: &Kind, key: &ObjectKey, work: &str) {
        let mut all = self.all.lock();
        let Some(watch) = all.get(&kind.api) else { return };
        if watch.objects.lock().release(key, work) {
            watch.stop.cancel();
            all.remove(&kind.api);
            self.metrics.watches.set(all.len() as i64);
        }
    }
}

impl Watch {
    pub(crate) fn kind(&self) -> &Arc<Kind> {
        &self.kind
    }

    /// The objects of a namespace, or all that have none.
    pub(crate) fn api(&self, namespace: &str) -> Api<Live> {
        if self.kind.namespaced {
            Api::namespaced_with(self.client.clone(), namespace, &self.kind.api)
        } else {
            Api::all_with(self.client.clone(), &self.kind.api)
        }
    }

    /// The last known state of an object.
    pub(crate) fn look(&self, key: &ObjectKey) -> Known<Arc<Live>> {
        self.objects.lock().look(key)
    }

    /// Records the server's answer to a write or a read. Other works that want the object are enqueued.
    pub(crate) fn wrote(&self, live: Live) -> Arc<Live> {
        let (live, others) = self.objects.lock().wrote(Arc::new(live));
        self.enqueue(others);
        live
    }

    /// Records that the server has no such object. `uid` keeps a newer one of the same name.
    pub(crate) fn absent(&self, key: &ObjectKey, uid: Option<&str>) {
        self.objects.lock().absent(key, uid);
    }

    pub(crate) fn sight(&self) -> Sight {
        *self.sight.borrow()
    }

    /// Returns when the first list has been read, or cannot be.
    pub(crate) async fn opened(&self) {
        let mut sight = self.sight.subscribe();
        // The sender lives in `self`: this cannot fail before it returns.
        let _ = sight.wait_for(|sight| *sight != Sight::Opening).await;
    }

    fn enqueue(&self, works: Vec<String>) {
        for work in works {
            self.works.add_after(work, BATCH_DELAY);
        }
    }
}
