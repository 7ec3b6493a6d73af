//! A kubelet for any number of nodes of one cluster.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{SharedClock, SignedDuration};
use aro_control::{Queue, ReconcileMetrics, Runner, RunnerOptions};
use aro_kube::events::Recorder;
use aro_kube::informer::{Informer, ObjectKey, key_of};
use aro_kube_node_api::NodeDirectory;
use aro_runtime::{Fault, Phase, Scope, TaskKind};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::addresses::Addresses;
use crate::container::FIRST_PAUSE;
use crate::host_paths::HostPaths;
use crate::image::{Images, NoImages};
use crate::node::{self, NodeSpec};
use crate::pod::{Passes, Slot};
use crate::sources::Sources;

/// What a kubelet is given.
pub struct KubeletOptions {
    /// The name of the cluster, for containers.
    pub cluster: String,
    pub nodes: Vec<NodeSpec>,
    pub images: Arc<dyn Images>,
    pub clock: SharedClock,
    pub metrics: ReconcileMetrics,
    /// Where the files of pods are.
    pub dir: PathBuf,
    /// The directories of the host that volumes may be in.
    pub host_paths: HostPaths,
    /// Where the nodes are made known to the API server, if it is in this process.
    pub directory: NodeDirectory,
    /// The cluster's pods, if an informer runs already; its owner runs it.
    pub pods: Option<Informer<Pod>>,
    /// The pause before the second restart of a container.
    pub first_pause: Duration,
    /// How often the files of pods are brought up to date.
    pub refresh: Duration,
    /// The network of pods' addresses.
    pub network: (Ipv4Addr, u8),
}

/// See [`KubeletOptions::refresh`].
const REFRESH: Duration = Duration::from_secs(30);

impl KubeletOptions {
    /// All images simulated, nothing shared.
    pub fn new(nodes: Vec<NodeSpec>, clock: SharedClock, dir: PathBuf) -> Self {
        Self {
            cluster: String::new(),
            nodes,
            images: Arc::new(NoImages),
            clock,
            metrics: ReconcileMetrics::default(),
            dir,
            host_paths: HostPaths::default(),
            directory: NodeDirectory::default(),
            pods: None,
            first_pause: FIRST_PAUSE,
            refresh: REFRESH,
            network: (Ipv4Addr::new(10, 128, 0, 0), 10),
        }
    }
}

/// A kubelet that runs.
#[derive(Clone)]
pub struct Kubelet {
    pub(crate) shared: Arc<Shared>,
    registered: watch::Receiver<bool>,
}

impl std::fmt::Debug for Kubelet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.shared.nodes.keys()).finish()
    }
}

/// What everything in a kubelet shares.
pub(crate) struct Shared {
    pub cluster: String,
    pub client: Client,
    pub clock: SharedClock,
    pub images: Arc<dyn Images>,
    pub sources: Sources,
    pub events: Recorder,
    pub pods: Informer<Pod>,
    pub queue: Queue<ObjectKey>,
    /// Name to address.
    pub nodes: HashMap<String, String>,
    pub slots: Mutex<HashMap<ObjectKey, Arc<Slot>>>,
    /// Versions of own writes that the watch has not delivered yet.
    pub written: Mutex<HashMap<ObjectKey, String>>,
    pub addresses: Mutex<Addresses>,
    pub dir: PathBuf,
    pub host_paths: HostPaths,
    pub first_pause: Duration,
    pub refresh: SignedDuration,
    /// Containers live here.
    pub containers: Scope,
    /// The scope of the tasks that watch containers.
    pub watching: Scope,
}

impl Kubelet {
    /// Registers the nodes and starts to run their pods. Stops with the scope; pods stay as they are.
    pub fn start(client: Client, options: KubeletOptions, scope: &Scope) -> Self {
        let reconcilers = scope.child(Phase::Reconcilers, "kubelet");
        let shared_pods = options.pods.is_some();
        let pods = options.pods.unwrap_or_default();
        let shared = Arc::new(Shared {
            sources: Sources::new(client.clone()),
            events: Recorder::start(client.clone(), options.clock.clone(), "kubelet", &reconcilers),
            nodes: options.nodes.iter().map(|node| (node.name.clone(), node.address.to_string())).collect(),
            client: client.clone(),
            cluster: options.cluster,
            clock: options.clock.clone(),
            images: options.images,
            pods,
            queue: Queue::new(),
            slots: Mutex::default(),
            written: Mutex::default(),
            addresses: Mutex::new(Addresses::of(options.network.0, options.network.1)),
            dir: options.dir,
            host_paths: options.host_paths,
            first_pause: options.first_pause,
            refresh: SignedDuration::try_from(options.refresh).unwrap_or(SignedDuration::MAX),
            containers: scope.child(Phase::Roles, "containers"),
            watching: reconcilers.clone(),
        });
        for node in &options.nodes {
            options.directory.add(node.name.clone(), shared.clone());
        }
        let follow = shared.clone();
        shared.pods.subscribe(move |change| {
            let pod = change.object();
            if follow.is_ours(pod) {
                follow.note_address(change.now());
                let key = key_of(&**pod);
                let written = follow.written.lock().remove(&key);
                // An own write needs no pass, unless another client wrote in between: then the object differs.
                let ours = written.is_some() && written == pod.resource_version();
                if !(ours && change.before() == change.now()) {
                    follow.queue.add(key);
                }
            }
        });
        // Those that are cached already, if the informer was running.
        for pod in shared.pods.cache().all() {
            if shared.is_ours(&pod) {
                shared.queue.add(key_of(&*pod));
            }
        }
        if !shared_pods {
            let names: Vec<&String> = shared.nodes.keys().collect();
            let selector = match names.as_slice() {
                [one] => format!("spec.nodeName={one}"),
                _ => "spec.nodeName!=".to_owned(),
            };
            shared.pods.run(
                Api::all(client.clone()),
                watcher::Config::default().fields(&selector),
                &reconcilers,
            );
        }
        let concurrency = RunnerOptions { tasks: 2, concurrency: 64, ..RunnerOptions::default() };
        Runner::new(Arc::new(Passes { shared: shared.clone() }), &shared.queue)
            .with_options(concurrency)
            .with_metrics(&options.metrics)
            .start(&reconcilers);
        shared.clone().sweep();
        let (sender, registered) = watch::channel(false);
        node::keep(client, options.clock, options.nodes, sender, &reconcilers);
        Self { shared, registered }
    }

    /// Returns when all nodes are registered.
    pub async fn registered(&self) {
        let mut registered = self.registered.clone();
        // The sender lives until then, or until the kubelet stops.
        let _ = registered.wait_for(|registered| *registered).await;
    }
}

impl Shared {
    pub fn is_ours(&self, pod: &Pod) -> bool {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        node.is_some_and(|node| self.nodes.contains_key(node))
    }

    /// Notes the address of a pod that lives, so that no other pod gets it: after a restart, new pods may be looked at
    /// before those that are there already.
    fn note_address(&self, pod: Option<&Arc<Pod>>) {
        let status = pod.and_then(|pod| pod.status.as_ref());
        let Some(status) =
            status.filter(|status| !matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")))
        else {
            return;
        };
        if let Some(address) = &status.pod_ip {
            self.addresses.lock().known(address);
        }
    }

    /// Removes the files of pods that ended while the kubelet was down.
    fn sweep(self: Arc<Self>) {
        let shared = self.clone();
        self.watching.spawn(TaskKind::Helper, "sweep", async move {
            shared.pods.synced().await;
            let known: HashSet<String> =
                shared.pods.cache().all().iter().filter_map(|pod| pod.uid()).collect();
            let dir = shared.dir.clone();
            let swept = tokio::task::spawn_blocking(move || {
                let Ok(entries) = std::fs::read_dir(&dir) else { return };
                for entry in entries.flatten() {
                    let stale = entry.file_name().to_str().is_some_and(|uid| !known.contains(uid));
                    if stale && let Err(error) = std::fs::remove_dir_all(entry.path()) {
                        tracing::warn!(path = %entry.path().display(), %error, "files of a pod that is gone could not be removed");
                    }
                }
            });
            // The closure does not panic.
            let _ = swept.await;
            Ok::<_, Fault>(())
        });
    }
}
