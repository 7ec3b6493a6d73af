//! All controllers of one cluster, started and stopped together.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aro_base::SharedClock;
use aro_control::{Queue, ReconcileMetrics};
use aro_kube::informer::{Informer, Kept, ObjectKey};
use aro_runtime::Scope;
use kube::Client;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::caches::Caches;
use crate::context::Context;
use crate::{
    claims, deployment, disruption, endpoints, job, nodes, pod_cleanup, replica_set, scheduler, stateful_set,
};
use aro_kube::events::Recorder;

/// Starts one controller.
type Start = fn(&Context, &Scope);

/// Every controller: its name in events, and what starts it.
const CONTROLLERS: [(&str, Start); 10] = [
    ("persistentvolume-controller", claims::start),
    ("deployment-controller", deployment::start),
    ("controllermanager", disruption::start),
    ("endpoint-slice-controller", endpoints::start),
    ("job-controller", job::start),
    ("node-controller", nodes::start),
    ("pod-garbage-collector", pod_cleanup::start),
    ("replicaset-controller", replica_set::start),
    ("default-scheduler", scheduler::start),
    ("statefulset-controller", stateful_set::start),
];

/// What the controllers of a cluster need.
#[derive(Clone)]
pub struct WorkloadsOptions {
    pub clock: SharedClock,
    pub metrics: ReconcileMetrics,
    /// How long a node may be silent before it counts as lost.
    pub node_grace: Duration,
    /// Where the directories of local volumes are made; `None`: claims are not provisioned here.
    pub volumes: Option<PathBuf>,
}

/// The controllers of one cluster, while they run.
#[derive(Debug)]
pub struct Workloads {
    context: Context,
}

impl Workloads {
    /// Starts all controllers. They stop with the scope.
    pub fn start(client: Client, options: WorkloadsOptions, scope: &Scope) -> Self {
        let caches = Caches::default();
        let activity = Activity::default();
        let events = Recorder::start(client.clone(), options.clock.clone(), "aro-kube-controllers", scope);
        let context = Context {
            client,
            caches,
            clock: options.clock,
            events,
            metrics: options.metrics,
            activity,
            node_grace: options.node_grace,
            volumes: options.volumes,
        };
        // Every source subscribes before the first list is read.
        for (name, start) in CONTROLLERS {
            start(&Context { events: context.events.named(name), ..context.clone() }, scope);
        }
        context.follow_activity();
        context.caches.run(&context.client, scope);
        Self { context }
    }

    /// Returns when every cache has been filled once.
    pub async fn synced(&self) {
        self.context.caches.synced().await;
    }

    /// The shared caches.
    pub fn caches(&self) -> &Caches {
        &self.context.caches
    }

    /// Whether the controllers have work.
    pub fn activity(&self) -> &Activity {
        &self.context.activity
    }
}

/// Whether the controllers of a cluster have work, so that those of an idle cluster can be stopped.
#[derive(Clone)]
pub struct Activity {
    inner: Arc<Inner>,
}

struct Inner {
    began: Instant,
    /// Milliseconds after `began`.
    last: AtomicU64,
    queues: Mutex<Vec<Queue<ObjectKey>>>,
}

impl Default for Activity {
    fn default() -> Self {
        let inner = Inner { began: Instant::now(), last: AtomicU64::new(0), queues: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }
}

impl Activity {
    pub(crate) fn watch_queue(&self, queue: &Queue<ObjectKey>) {
        self.inner.queues.lock().push(queue.clone());
    }

    /// Counts every change of an informer as activity.
    pub(crate) fn follow<K: Kept>(&self, informer: &Informer<K>) {
        let activity = self.clone();
        informer.subscribe(move |_| activity.touch());
    }

    fn touch(&self) {
        let now = self.inner.began.elapsed().as_millis() as u64;
        self.inner.last.store(now, Ordering::Relaxed);
    }

    /// Since when nothing has changed and no key is queued. `None`: a key is queued or in a pass.
    pub fn quiet_since(&self) -> Option<Instant> {
        let busy = self.inner.queues.lock().iter().any(|queue| queue.busy() > 0);
        let last = Duration::from_millis(self.inner.last.load(Ordering::Relaxed));
        (!busy).then(|| self.inner.began + last)
    }

    /// When the next delayed key is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.inner.queues.lock().iter().filter_map(Queue::next_due).min()
    }
}

impl Context {
    /// Every change of what users write or pods do counts as activity. Leases do not: they are renewed for ever.
    fn follow_activity(&self) {
        let (activity, caches) = (&self.activity, &self.caches);
        activity.follow(&caches.pods);
        activity.follow(&caches.nodes);
        activity.follow(&caches.deployments);
        activity.follow(&caches.replica_sets);
        activity.follow(&caches.stateful_sets);
        activity.follow(&caches.jobs);
        activity.follow(&caches.services);
        activity.follow(&caches.budgets);
        activity.follow(&caches.claims);
        activity.follow(&caches.volumes);
        activity.follow(&caches.storage_classes);
    }
}
