//! The work queue of the internal controllers, shared by all clusters of the process.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};
use std::time::Duration;

use aro_base::{Class, Classify};
use aro_control::{Outcome, Queue, Reconcile, ReconcileMetrics, Runner, RunnerOptions};
use aro_kube_apimachinery::status::Status;
use aro_net::Backoff;
use aro_runtime::{Phase, Scope};

use crate::cluster::Cluster;
use crate::storage::{Stored, WatchCache};

/// Passes at once, in the whole process.
const OPTIONS: RunnerOptions = RunnerOptions {
    tasks: 4,
    concurrency: 8,
    backoff: Backoff::new(Duration::from_millis(100), Duration::from_secs(30)),
};

/// What one pass is about.
#[derive(Debug, Clone)]
pub enum WorkItem {
    /// A CustomResourceDefinition was written or removed.
    Definition(Box<str>),
    /// A namespace was written or removed.
    Namespace(Box<str>),
    /// An object names owners.
    Owned {
        watch_cache: Arc<WatchCache>,
        key: Arc<str>,
    },
    /// An object was deleted that others may name as their owner.
    OwnerGone(Arc<Stored>),
    /// An object is marked for deletion.
    Terminating {
        watch_cache: Arc<WatchCache>,
        key: Arc<str>,
    },
    SigningRequest(Box<str>),
    AggregateRoles,
}

impl WorkItem {
    /// Items of the same name are one item while they are queued.
    fn name(&self, cluster: &str) -> String {
        match self {
            Self::Definition(name) => format!("{cluster} definition {name}"),
            Self::Namespace(name) => format!("{cluster} namespace {name}"),
            Self::Owned { watch_cache, key } => format!("{cluster} owned {} {key}", watch_cache.name),
            Self::OwnerGone(stored) => format!("{cluster} gone {} {}", stored.key, stored.version),
            Self::Terminating { watch_cache, key } => {
                format!("{cluster} terminating {} {key}", watch_cache.name)
            }
            Self::SigningRequest(name) => format!("{cluster} signing {name}"),
            Self::AggregateRoles => format!("{cluster} aggregate"),
        }
    }
}

/// A work item of a cluster. The queue does not keep a closed cluster alive.
#[derive(Clone)]
pub struct WorkKey(Arc<Keyed>);

struct Keyed {
    name: String,
    cluster: Weak<Cluster>,
    item: WorkItem,
}

impl PartialEq for WorkKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for WorkKey {}

impl Hash for WorkKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Debug for WorkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}

/// Where events leave work. Cloning gives another handle to the same queue.
#[derive(Debug, Clone, Default)]
pub struct WorkQueue(Queue<WorkKey>);

impl WorkQueue {
    pub fn add(&self, cluster: &Arc<Cluster>, item: WorkItem) {
        let name = item.name(cluster.name());
        self.0.add(WorkKey(Arc::new(Keyed { name, cluster: Arc::downgrade(cluster), item })));
    }
}

/// Starts the controllers.
pub fn start(work: &WorkQueue, metrics: &ReconcileMetrics, scope: &Scope) {
    Runner::new(Arc::new(InternalControllers), &work.0)
        .with_options(OPTIONS)
        .with_metrics(metrics)
        .start(&scope.child(Phase::Reconcilers, "internal-controllers"));
}

struct InternalControllers;

/// The storage or a called handler refused.
#[derive(Debug, thiserror::Error)]
#[error("reconcile in cluster `{cluster}`: {status}")]
struct Refused {
    cluster: String,
    status: Status,
}

impl Classify for Refused {
    /// What an object waits for changes with other objects: no refusal is final.
    fn class(&self) -> Class {
        Class::Retry
    }
}

impl Reconcile for InternalControllers {
    type Key = WorkKey;
    type Error = Refused;
    const NAME: &'static str = "internal-controllers";

    async fn reconcile(&self, key: &WorkKey) -> Result<Outcome, Refused> {
        let Some(cluster) = key.0.cluster.upgrade() else { return Ok(Outcome::Settled) };
        match super::reconcile(&cluster, &key.0.item).await {
            Err(status) if !cluster.closing.is_cancelled() => {
                Err(Refused { cluster: cluster.name().to_owned(), status })
            }
            _ => Ok(Outcome::Settled),
        }
    }
}
