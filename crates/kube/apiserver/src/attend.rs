//! Who looks after the workloads of a cluster, and when.
//!
//! Controllers cost memory and wake up now and then, so a cluster has them only while something goes on in it: the first
//! write that concerns them wakes them, and when nothing has changed for a while they go, leaving at most a note when
//! something is due. A cluster with nodes keeps them: nodes renew their leases for ever.
//!
//! One task serves all clusters of the process; with nobody awake and nothing due, it waits without a timer.

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
use aro_kube_kubelet::{Images, Kubelet, KubeletOptions, NodeSpec};
use aro_runtime::{Fault, Phase, Scope, TaskKind};
use futures::FutureExt as _;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::identity::user::User;
use crate::service::ClusterService;
use crate::storage::{Event, Shelf, Space};

/// Clusters that want their workloads looked after.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: Mutex<HashMap<String, Weak<Cluster>>>,
    called: Notify,
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

/// Every cluster has this one, and nobody has to do anything for it.
const OWN_SERVICE: &str = "default/kubernetes";

impl Calls {
    /// Looks at an event. Runs on the log's thread.
    pub fn observe(&self, cluster: &Arc<Cluster>, shelf: &Shelf, event: &Event) {
        if !CONCERNING.contains(&&*shelf.name) || &*event.object.key == OWN_SERVICE {
            return;
        }
        // In this order, and the other way round where controllers are let go: one of the two sees the other.
        cluster.stirred.store(true, Ordering::SeqCst);
        if !cluster.attended.load(Ordering::SeqCst) {
            self.call(cluster);
        }
    }

    /// Calls for a cluster in which an earlier process left something.
    pub fn resume(&self, cluster: &Arc<Cluster>) {
        if has_workloads(&cluster.space) {
            self.call(cluster);
        }
    }

    pub fn call(&self, cluster: &Arc<Cluster>) {
        self.inner.waiting.lock().insert(cluster.name().to_owned(), Arc::downgrade(cluster));
        self.inner.called.notify_one();
    }

    fn take(&self) -> Vec<Arc<Cluster>> {
        let waiting = std::mem::take(&mut *self.inner.waiting.lock());
        waiting.into_values().filter_map(|cluster| cluster.upgrade()).collect()
    }
}

fn has_workloads(space: &Space) -> bool {
    CONCERNING.iter().any(|name| {
        let shelf = space.shelf(name);
        shelf.len() > usize::from(*name == "services" && shelf.get(OWN_SERVICE).is_some())
    })
}

/// How clusters are looked after.
pub struct Attendance {
    pub clock: SharedClock,
    pub metrics: ReconcileMetrics,
    /// Clusters with controllers now.
    pub awake: Gauge,
    pub images: Arc<dyn Images>,
    /// Where volumes and pods' files are.
    pub dir: PathBuf,
    pub node_grace: Duration,
    /// How long nothing may change before controllers go.
    pub quiet: Duration,
    /// These clusters have virtual nodes, so many each.
    pub nodes: BTreeMap<String, u32>,
}

struct Awake {
    /// When a write was last found.
    stirred: Instant,
    cluster: Weak<Cluster>,
    scope: Scope,
    workloads: Workloads,
    kubelet: Option<Kubelet>,
}

impl Awake {
    /// Whether everything has been read, nothing changes, and nobody has anything to do.
    fn is_quiet(&self, now: Instant, quiet: Duration) -> bool {
        let since = self.workloads.activity().quiet_since().map(|since| since.max(self.stirred));
        self.workloads.synced().now_or_never().is_some()
            && since.is_some_and(|since| now >= since + quiet)
            && self.workloads.caches().nodes.cache().is_empty()
    }
}

struct Attendants {
    with: Attendance,
    calls: Calls,
    awake: HashMap<String, Awake>,
    /// Asleep, and when something is due there.
    due: HashMap<String, (Instant, Weak<Cluster>)>,
    scope: Scope,
}

/// Looks after all clusters that call, until the scope is cancelled.
pub fn start(with: Attendance, calls: Calls, scope: &Scope) {
    // Controllers stop before what they write to.
    let own = scope.child(Phase::Reconcilers, "workloads");
    let (inside, roles) = (own.clone(), scope.clone());
    own.spawn(TaskKind::Worker, "attend", async move {
        let mut attendants =
            Attendants { with, calls, awake: HashMap::new(), due: HashMap::new(), scope: roles };
        while !inside.is_cancelled() {
            let next = attendants.next();
            tokio::select! {
                biased;
                () = inside.cancelled() => break,
                () = attendants.calls.inner.called.notified() => {}
                () = until(next) => {}
            }
            attendants.look();
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

impl Attendants {
    /// When to look again even if nobody calls.
    fn next(&self) -> Option<Instant> {
        let sleepy = self.awake.values().any(|one| one.kubelet.is_none());
        let check = sleepy.then(|| Instant::now() + self.with.quiet / 2);
        self.due.values().map(|(at, _)| *at).chain(check).min()
    }

    fn look(&mut self) {
        let now = Instant::now();
        let due: HashSet<String> =
            self.due.iter().filter(|(_, (at, _))| *at <= now).map(|(name, _)| name.clone()).collect();
        for name in due {
            if let Some(cluster) = self.due.remove(&name).and_then(|(_, cluster)| cluster.upgrade()) {
                self.wake(&cluster);
            }
        }
        for cluster in self.calls.take() {
            self.wake(&cluster);
        }
        let names: Vec<String> = self.awake.keys().cloned().collect();
        for name in names {
            self.check(&name, now);
        }
        self.with.awake.set(self.awake.len() as i64);
    }

    fn wake(&mut self, cluster: &Arc<Cluster>) {
        let name = cluster.name().to_owned();
        if cluster.closing.is_cancelled() {
            return;
        }
        if let Some(known) = self.awake.get(&name) {
            if known.cluster.upgrade().is_some_and(|known| Arc::ptr_eq(&known, cluster)) {
                return;
            }
            // Another one of that name: deleted and made again, or stopped and started.
            self.dismiss(&name);
        }
        cluster.attended.store(true, Ordering::SeqCst);
        self.due.remove(&name);
        let scope = self.scope.child(Phase::Reconcilers, &format!("workloads-{name}"));
        let client = |user: &str| {
            let user = User::authenticated(user.to_owned(), vec!["system:masters".to_owned()]);
            of_service(ClusterService::in_process(cluster.clone(), user))
        };
        let options = WorkloadsOptions {
            clock: self.with.clock.clone(),
            metrics: self.with.metrics.clone(),
            node_grace: self.with.node_grace,
            volumes: Some(self.with.dir.join("volumes").join(&name)),
        };
        let workloads = Workloads::start(client("system:kube-controller-manager"), options, &scope);
        let nodes = self.with.nodes.get(&name).copied().unwrap_or_default();
        let kubelet = (nodes > 0).then(|| {
            let specs = (0..nodes).map(|index| node(&name, index)).collect();
            let dir = self.with.dir.join("pods").join(&name);
            let mut options = KubeletOptions::new(specs, self.with.clock.clone(), dir);
            options.cluster.clone_from(&name);
            options.images = self.with.images.clone();
            options.metrics = self.with.metrics.clone();
            options.directory = cluster.nodes.clone();
            options.pods = Some(workloads.caches().pods.clone());
            Kubelet::start(client("system:virtual-kubelet"), options, &scope)
        });
        let (cluster, stirred) = (Arc::downgrade(cluster), Instant::now());
        self.awake.insert(name, Awake { stirred, cluster, scope, workloads, kubelet });
    }

    /// Lets the controllers of a quiet cluster go.
    fn check(&mut self, name: &str, now: Instant) {
        let Some(one) = self.awake.get_mut(name) else { return };
        let cluster = one.cluster.upgrade().filter(|cluster| !cluster.closing.is_cancelled());
        let Some(cluster) = cluster else { return self.dismiss(name) };
        if cluster.stirred.swap(false, Ordering::SeqCst) {
            one.stirred = now;
        }
        if one.kubelet.is_some() || !one.is_quiet(now, self.with.quiet) {
            return;
        }
        let due = one.workloads.activity().next_due();
        // From here on a write calls again. One that came before may still be on its way to the controllers.
        cluster.attended.store(false, Ordering::SeqCst);
        if cluster.stirred.load(Ordering::SeqCst) {
            cluster.attended.store(true, Ordering::SeqCst);
            return;
        }
        if let Some(at) = due {
            self.due.insert(name.to_owned(), (at, Arc::downgrade(&cluster)));
        }
        self.dismiss(name);
    }

    fn dismiss(&mut self, name: &str) {
        let Some(one) = self.awake.remove(name) else { return };
        if let Some(cluster) = one.cluster.upgrade() {
            cluster.attended.store(false, Ordering::SeqCst);
        }
        let closing = one.scope.clone();
        self.scope.child(Phase::Reconcilers, "dismissed").spawn(TaskKind::Helper, "close", async move {
            if let Err(late) = closing.close(Duration::from_secs(5)).await {
                tracing::warn!(%late, "controllers did not stop in time and were cut off");
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
