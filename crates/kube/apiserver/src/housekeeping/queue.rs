//! The queue of chores, and who works on it.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use aro_runtime::{Fault, Phase, Scope, TaskKind};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::cluster::Cluster;
use crate::storage::{Shelf, Stored};

/// Something to do in one cluster.
#[derive(Debug, Clone)]
pub enum Chore {
    /// A CustomResourceDefinition was written or removed.
    Definition(Box<str>),
    /// A namespace was written or removed.
    Namespace(Box<str>),
    /// An object names owners.
    Owned {
        shelf: Arc<Shelf>,
        key: Arc<str>,
    },
    /// An object is gone that others may name as their owner.
    OwnerGone(Arc<Stored>),
    /// An object is marked for deletion.
    Terminating {
        shelf: Arc<Shelf>,
        key: Arc<str>,
    },
    SigningRequest(Box<str>),
    AggregateRoles,
}

impl Chore {
    /// Chores of the same name are one, while they wait.
    fn name(&self, cluster: &Cluster) -> String {
        let cluster = cluster.name();
        match self {
            Self::Definition(name) => format!("{cluster} definition {name}"),
            Self::Namespace(name) => format!("{cluster} namespace {name}"),
            Self::Owned { shelf, key } => format!("{cluster} owned {} {key}", shelf.name),
            Self::OwnerGone(stored) => format!("{cluster} gone {} {}", stored.key, stored.version),
            Self::Terminating { shelf, key } => format!("{cluster} terminating {} {key}", shelf.name),
            Self::SigningRequest(name) => format!("{cluster} signing {name}"),
            Self::AggregateRoles => format!("{cluster} aggregate"),
        }
    }
}

/// Where chores are left. Bounded by what there is: a chore that waits already is not queued again.
#[derive(Debug, Clone, Default)]
pub struct Chores {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    queue: Mutex<Queue>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Entry>,
    names: HashSet<String>,
}

#[derive(Debug)]
struct Entry {
    cluster: Weak<Cluster>,
    name: String,
    chore: Chore,
    failures: u32,
}

impl Chores {
    pub fn add(&self, cluster: &Arc<Cluster>, chore: Chore) {
        let name = chore.name(cluster);
        self.push(Entry { cluster: Arc::downgrade(cluster), name, chore, failures: 0 });
    }

    fn push(&self, entry: Entry) {
        let mut queue = self.inner.queue.lock();
        if queue.names.insert(entry.name.clone()) {
            let first = queue.waiting.is_empty();
            queue.waiting.push_back(entry);
            drop(queue);
            // Whoever takes the first one wakes the next: a batch of events wakes one worker from here, not all.
            if first {
                self.inner.wake.notify_one();
            }
        }
    }

    /// The next chore, and whether others wait.
    fn pop(&self) -> Option<(Entry, bool)> {
        let mut queue = self.inner.queue.lock();
        let entry = queue.waiting.pop_front()?;
        queue.names.remove(&entry.name);
        Some((entry, !queue.waiting.is_empty()))
    }
}

/// Chores at once, in the whole process.
const WORKERS: usize = 8;
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Starts the workers.
pub fn start(chores: &Chores, scope: &Scope) {
    let scope = scope.child(Phase::Reconcilers, "housekeeping");
    for _ in 0..WORKERS {
        let (chores, inside) = (chores.clone(), scope.clone());
        scope.spawn(TaskKind::Helper, "worker", async move {
            loop {
                let Some((entry, more)) = chores.pop() else {
                    tokio::select! {
                        biased;
                        () = inside.cancelled() => return Ok::<_, Fault>(()),
                        () = chores.inner.wake.notified() => continue,
                    }
                };
                // The next one is woken before going to work.
                if more {
                    chores.inner.wake.notify_one();
                }
                work(&chores, &inside, entry).await;
                if inside.is_cancelled() {
                    return Ok(());
                }
            }
        });
    }
}

async fn work(chores: &Chores, scope: &Scope, mut entry: Entry) {
    let Some(cluster) = entry.cluster.upgrade() else { return };
    let Err(status) = super::perform(&cluster, &entry.chore).await else { return };
    if cluster.closing.is_cancelled() {
        return;
    }
    entry.failures += 1;
    let pause = Duration::from_millis(50 << entry.failures.min(10)).min(LONGEST_PAUSE);
    tracing::warn!(cluster = cluster.name(), chore = entry.name, error = %status, ?pause, "a chore failed and will be tried again");
    drop(cluster);
    let (chores, inside) = (chores.clone(), scope.clone());
    scope.spawn(TaskKind::Helper, "again", async move {
        tokio::select! {
            () = inside.cancelled() => {}
            () = tokio::time::sleep(pause) => chores.push(entry),
        }
        Ok::<_, Fault>(())
    });
}
