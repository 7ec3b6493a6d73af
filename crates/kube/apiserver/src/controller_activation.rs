//! Starts and stops the workload controllers of clusters.
//!
//! Controllers cost memory and run timers, so a cluster has them only while its workloads change: the first write that
//! concerns them activates them, and when nothing has changed for a while they are stopped; what is left is at most the time
//! at which a delayed key is due. A cluster with nodes keeps its controllers: nodes renew their leases for ever (ADR 0052).
//!
//! One task serves all clusters of the process; with no active cluster and nothing due, it waits without a timer.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use aro_base::SharedClock;
use aro_control::ReconcileMetrics;
use aro_kube::of_service;
use aro_kube_controllers::{Workloads, WorkloadsOptions};
use aro_kube_kubelet::{HostPaths, Images, Kubelet, KubeletOptions, NodeSpec};
use aro_runtime::{Fault, Phase, Scope, TaskKind};
use futures::FutureExt as _;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::identity::user::User;
use crate::service::ClusterService;
use crate::storage::{ClusterStore, Event, WatchCache};

/// Clusters whose controllers are to be activated.
#[derive(Debug, Clone, Default)]
pub struct ActivationRequests {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    pending: Mutex<HashMap<String, Weak<Cluster>>>,
    added: Notify,
}

/// Resources whose objects controllers act on.
const CONCERNING: [&str; 10] = [
    "deployments.apps",
    "jobs.batch",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "poddisruptionbudgets.policy",
    "pods",
    "replicasets.apps",
    "services",
    "statefulsets.apps",
];

/// Every cluster has this service, and no controller acts on it.
const OWN_SERVICE: &str = "default/kubernetes";

impl ActivationRequests {
    /// Requests controllers for an event that concerns them. Runs on the log's thread.
    pub fn observe(&self, cluster: &Arc<Cluster>, watch_cache: &WatchCache, event: &Event) {
        if !CONCERNING.contains(&&*watch_cache.name) || &*event.object.key == OWN_SERVICE {
            return;
        }
        // In this order, and the other way round in `check`: one of the two sees the other.
        cluster.written.store(true, Ordering::SeqCst);
        if !cluster.controllers_active.load(Ordering::SeqCst) {
            self.request(cluster);
        }
    }

    /// Requests controllers for a cluster in which an earlier process left workloads.
    pub fn request_existing(&self, cluster: &Arc<Cluster>) {
        if has_workloads(&cluster.store) {
            self.request(cluster);
        }
    }

    pub fn request(&self, cluster: &Arc<Cluster>) {
        self.inner.pending.lock().insert(cluster.name().to_owned(), Arc::downgrade(cluster));
        self.inner.added.notify_one();
    }

    fn take(&self) -> Vec<Arc<Cluster>> {
        let pending = std::mem::take(&mut *self.inner.pending.lock());
        pending.into_values().filter_map(|cluster| cluster.upgrade()).collect()
    }
}

fn has_workloads(store: &ClusterStore) -> bool {
    CONCERNING.iter().any(|name| {
        let watch_cache = store.watch_cache(name);
        watch_cache.len() > usize::from(*name == "services" && watch_cache.get(OWN_SERVICE).is_some())
    })
}

/// What the controllers of clusters need.
pub struct ActivationOptions {
    pub clock: SharedClock,
    pub metrics: ReconcileMetrics,
    /// Counts clusters with controllers.
    pub active: Gauge,
    pub images: Arc<dyn Images>,
    /// Where volumes and pods' files are.
    pub dir: PathBuf,
    /// Directories that host path volumes may name.
    pub host_paths: Vec<PathBuf>,
    pub node_grace: Duration,
    /// Controllers are stopped when nothing has changed for so long.
    pub idle_after: Duration,
    /// These clusters have virtual nodes, so many each.
    pub nodes: BTreeMap<String, u32>,
}

struct Active {
    /// When a write was last found.
    written: Instant,
    cluster: Weak<Cluster>,
    scope: Scope,
    workloads: Workloads,
    kubelet: Option<Kubelet>,
}

impl Active {
    /// Whether every cache is synced, nothing changes, and no key is queued.
    fn is_idle(&self, now: Instant, idle_after: Duration) -> bool {
        let since = self.workloads.activity().quiet_since().map(|since| since.max(self.written));
        self.workloads.synced().now_or_never().is_some()
            && since.is_some_and(|since| now >= since + idle_after)
            && self.workloads.caches().nodes.cache().is_empty()
    }
}

struct Activator {
    options: ActivationOptions,
    requests: ActivationRequests,
    active: HashMap<String, Active>,
    /// Inactive clusters in which a key is due, and when.
    due: HashMap<String, (Instant, Weak<Cluster>)>,
    scope: Scope,
}

/// Activates the controllers of requested clusters until the scope is cancelled.
pub fn start(options: ActivationOptions, requests: ActivationRequests, scope: &Scope) {
    // Controllers stop before what they write to.
    let own = scope.child(Phase::Reconcilers, "workloads");
    let (inside, roles) = (own.clone(), scope.clone());
    own.spawn(TaskKind::Worker, "activate", async move {
        let mut activator =
            Activator { options, requests, active: HashMap::new(), due: HashMap::new(), scope: roles };
        while !inside.is_cancelled() {
            let next = activator.next_check();
            tokio::select! {
                biased;
                () = inside.cancelled() => break,
                () = activator.requests.inner.added.notified() => {}
                () = until(next) => {}
            }
            activator.check_all();
        }
        Ok::<_, Fault>(())
    });
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl Activator {
    /// When to check again without a request.
    fn next_check(&self) -> Option<Instant> {
        let stoppable = self.active.values().any(|one| one.kubelet.is_none());
        let check = stoppable.then(|| Instant::now() + self.options.idle_after / 2);
        self.due.values().map(|(at, _)| *at).chain(check).min()
    }

    fn check_all(&mut self) {
        let now = Instant::now();
        let due: HashSet<String> =
            self.due.iter().filter(|(_, (at, _))| *at <= now).map(|(name, _)| name.clone()).collect();
        for name in due {
            if let Some(cluster) = self.due.remove(&name).and_then(|(_, cluster)| cluster.upgrade()) {
                self.activate(&cluster);
            }
        }
        for cluster in self.requests.take() {
            self.activate(&cluster);
        }
        let names: Vec<String> = self.active.keys().cloned().collect();
        for name in names {
            self.check(&name, now);
        }
        self.options.active.set(self.active.len() as i64);
    }

    fn activate(&mut self, cluster: &Arc<Cluster>) {
        let name = cluster.name().to_owned();
        if cluster.closing.is_cancelled() {
            return;
        }
        if let Some(known) = self.active.get(&name) {
            if known.cluster.upgrade().is_some_and(|known| Arc::ptr_eq(&known, cluster)) {
                return;
            }
            // Another one of that name: deleted and made again, or stopped and started.
            self.deactivate(&name);
        }
        cluster.controllers_active.store(true, Ordering::SeqCst);
        self.due.remove(&name);
        let scope = self.scope.child(Phase::Reconcilers, &format!("workloads-{name}"));
        let client = |user: &str| {
            let user = User::authenticated(user.to_owned(), vec!["system:masters".to_owned()]);
            of_service(ClusterService::in_process(cluster.clone(), user))
        };
        let volumes = self.options.dir.join("volumes").join(&name);
        let options = WorkloadsOptions {
            clock: self.options.clock.clone(),
            metrics: self.options.metrics.clone(),
            node_grace: self.options.node_grace,
            volumes: Some(volumes.clone()),
        };
        let workloads = Workloads::start(client("system:kube-controller-manager"), options, &scope);
        let nodes = self.options.nodes.get(&name).copied().unwrap_or_default();
        let kubelet = (nodes > 0).then(|| {
            let specs = (0..nodes).map(|index| node(&name, index)).collect();
            let dir = self.options.dir.join("pods").join(&name);
            let mut options = KubeletOptions::new(specs, self.options.clock.clone(), dir);
            options.cluster.clone_from(&name);
            options.host_paths =
                HostPaths { allowed: self.options.host_paths.clone(), provisioned: Some(volumes) };
            options.images = self.options.images.clone();
            options.metrics = self.options.metrics.clone();
            options.directory = cluster.nodes.clone();
            options.pods = Some(workloads.caches().pods.clone());
            Kubelet::start(client("system:virtual-kubelet"), options, &scope)
        });
        let (cluster, written) = (Arc::downgrade(cluster), Instant::now());
        self.active.insert(name, Active { written, cluster, scope, workloads, kubelet });
    }

    /// Stops the controllers of an idle cluster.
    fn check(&mut self, name: &str, now: Instant) {
        let Some(one) = self.active.get_mut(name) else { return };
        let cluster = one.cluster.upgrade().filter(|cluster| !cluster.closing.is_cancelled());
        let Some(cluster) = cluster else { return self.deactivate(name) };
        if cluster.written.swap(false, Ordering::SeqCst) {
            one.written = now;
        }
        if one.kubelet.is_some() || !one.is_idle(now, self.options.idle_after) {
            return;
        }
        let due = one.workloads.activity().next_due();
        // From here on a write requests controllers again. An earlier one may still be on its way to them.
        cluster.controllers_active.store(false, Ordering::SeqCst);
        if cluster.written.load(Ordering::SeqCst) {
            cluster.controllers_active.store(true, Ordering::SeqCst);
            return;
        }
        if let Some(at) = due {
            self.due.insert(name.to_owned(), (at, Arc::downgrade(&cluster)));
        }
        self.deactivate(name);
    }

    fn deactivate(&mut self, name: &str) {
        let Some(one) = self.active.remove(name) else { return };
        if let Some(cluster) = one.cluster.upgrade() {
            cluster.controllers_active.store(false, Ordering::SeqCst);
        }
        let closing = one.scope.clone();
        self.scope.child(Phase::Reconcilers, "deactivated").spawn(TaskKind::Helper, "close", async move {
            if let Err(late) = closing.close(Duration::from_secs(5)).await {
                tracing::warn!(%late, "controllers did not stop in time; aborted");
            }
            Ok::<_, Fault>(())
        });
    }
}

/// A virtual node of a cluster.
fn node(cluster: &str, index: u32) -> NodeSpec {
    let [_, _, high, low] = (index + 4).to_be_bytes();
    NodeSpec::roomy(format!("{cluster}-node-{index}"), Ipv4Addr::new(10, 0, high, low))
}
