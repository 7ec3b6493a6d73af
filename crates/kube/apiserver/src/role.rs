//! Embedded Kubernetes as a role.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{SharedClock, SignedDuration};
use aro_control::ReconcileMetrics;
use aro_kube_kubelet::Images;
use aro_runtime::{
    BuildError, Checked, Component, Fault, Listener, Metrics, Phase, Readiness, Role, RunError, Scope,
    TaskKind,
};
use aro_web::{BodyBudget, BodyLimits, ServeOptions, serve_after};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use tokio::sync::watch;

use crate::clusters::{Clusters, ClustersError};
use crate::config::KubeConfig;
use crate::controller_activation::ActivationOptions;
use crate::kubeconfig::{Entry, render};
use crate::observe::Observer;
use crate::storage::HistoryLimits;
use crate::tls::ByServerName;

/// What the role needs from outside.
pub struct KubePorts {
    pub listener: Listener,
    /// Where objects are kept.
    pub dir: PathBuf,
    /// Flush to disk before a write counts. Off only for data that may be lost.
    pub flush: bool,
    pub clock: SharedClock,
    pub metrics: Metrics,
    pub readiness: Readiness,
    /// What runs as tasks of this process; every other image is simulated.
    pub images: Arc<dyn Images>,
    /// Told about the clusters once they answer.
    pub started: watch::Sender<Option<Clusters>>,
}

/// The controllers of a cluster are stopped when nothing has changed in it for so long.
const IDLE_AFTER: Duration = Duration::from_secs(20);

/// One cluster may use this part of the budget of request bodies: a tenant cannot use up what the others need.
const CLUSTER_SHARE: u64 = 4;

/// Embedded Kubernetes.
pub struct Kube {
    config: Checked<KubeConfig>,
    ports: KubePorts,
    ready: Component,
}

impl Role for Kube {
    const NAME: &'static str = "kube";
    type Config = KubeConfig;
    type Ports = KubePorts;

    fn build(config: Checked<KubeConfig>, ports: KubePorts) -> Result<Self, BuildError> {
        let ready = ports.readiness.component("kube");
        Ok(Self { config, ports, ready })
    }

    async fn run(self, scope: Scope) -> Result<(), RunError> {
        let Self { config, ports, ready } = self;
        let (dir, flush, clock) = (ports.dir.clone(), ports.flush, ports.clock.clone());
        let history = HistoryLimits {
            events: config.watch_history,
            bytes: config.watch_history_bytes.get(),
            age: SignedDuration::try_from(config.watch_history_age.get()).unwrap_or(SignedDuration::MAX),
        };
        let domain = config.domain.clone();
        let opened = tokio::task::spawn_blocking(move || {
            // Kubeconfigs, volumes and pods' files are there as well.
            aro_files::take_dir(&dir)
                .map(|()| Clusters::open(&dir.join("objects"), flush, history, &domain, clock))
        });
        let failed = "open the storage of Kubernetes objects";
        let opened = opened.await.map_err(|error| RunError::caused(failed, error))?;
        let opened = opened.map_err(|error| RunError::caused("take the directory of Kubernetes", error))?;
        let clusters = opened.map_err(|error| RunError::caused("open embedded Kubernetes", error))?;
        let metrics = ReconcileMetrics::new(&ports.metrics);
        clusters.start_internal_controllers(&metrics, &scope);
        let observer = Observer::new(&ports.metrics);
        let address = ports.listener.local_addr();
        // Side by side, so that many share one flush.
        let ensured = stream::iter(config.clusters.clone()).map(|name| {
            let clusters = clusters.clone();
            async move { clusters.ensure(&name).await }
        });
        let ensured = ensured.buffer_unordered(64);
        ensured
            .try_for_each(|_| async { Ok(()) })
            .await
            .map_err(|error| RunError::caused("start a cluster", error))?;
        observer.clusters.set(clusters.names().len() as i64);
        write_kubeconfigs(&clusters, &ports.dir, address, &config.clusters)
            .map_err(|error| RunError::caused("write kubeconfigs", error))?;
        // Requests drain first: a pending write is answered, or refused.
        let storage = scope.child(Phase::Store, "kube-storage");
        let (last, inside) = (clusters.clone(), storage.clone());
        storage.spawn(TaskKind::Job, "close", async move {
            inside.cancelled().await;
            let closed = tokio::task::spawn_blocking(move || last.close()).await;
            closed.map_err(|error| Fault::caused("close the storage of Kubernetes objects", error))
        });
        let options = ServeOptions {
            max_connections: config.max_connections,
            max_handshakes: config.max_handshakes,
            max_connections_per_peer: config.max_connections_per_peer,
            max_loopback_connections: config.max_loopback_connections,
            max_streams: config.max_streams,
            header_timeout: config.header_timeout.get(),
            drain: config.drain.get(),
            ..ServeOptions::named("kube")
        };
        let handshake = ByServerName {
            clusters: clusters.clone(),
            default: config.clusters.first().map(|name| Arc::from(name.as_str())),
            body: BodyLimits {
                max: usize::try_from(config.max_body.get()).unwrap_or(usize::MAX),
                discard: 0,
                timeout: config.body_timeout.get(),
                budget: BodyBudget::of_bytes(config.body_budget.get()),
            },
            body_share: (config.body_budget.get() / CLUSTER_SHARE).max(config.max_body.get()),
            observer: observer.clone(),
        };
        serve_after(ports.listener, handshake, &scope, options);
        if config.workloads {
            let names = config.clusters.iter().filter(|_| config.nodes > 0);
            let activation = ActivationOptions {
                clock: ports.clock.clone(),
                metrics,
                active: observer.active.clone(),
                images: ports.images.clone(),
                dir: ports.dir.clone(),
                host_paths: config.host_paths.clone(),
                node_grace: config.node_grace.get(),
                idle_after: IDLE_AFTER,
                nodes: names.map(|name| (name.clone(), config.nodes)).collect(),
            };
            clusters.activate_controllers(activation, &scope);
        }
        ports.started.send_replace(Some(clusters.clone()));
        ready.ready();
        let failed = tokio::select! {
            biased;
            () = scope.cancelled() => false,
            () = clusters.failed() => true,
        };
        clusters.end_watches();
        // The next start reads what is on disk; going on would mean to guess.
        if failed { Err(RunError::new("the log of Kubernetes objects cannot be written")) } else { Ok(()) }
    }
}

/// Writes one kubeconfig per cluster and one with all, readable by their owner only.
pub fn write_kubeconfigs(
    clusters: &Clusters,
    dir: &std::path::Path,
    address: std::net::SocketAddr,
    names: &[String],
) -> Result<(), KubeconfigError> {
    let folder = dir.join("kubeconfig");
    aro_files::create_dir(&folder)
        .map_err(|source| KubeconfigError::Write { path: folder.clone(), source })?;
    let mut issued = Vec::new();
    for name in names {
        let cluster = clusters
            .get(name)
            .ok_or_else(|| KubeconfigError::Cluster(ClustersError::Unknown(name.clone())))?;
        let admin = cluster.keys.admin(cluster.now());
        let admin = admin.map_err(|source| ClustersError::Keys { cluster: name.clone(), source });
        issued.push((name, clusters.host(name), cluster, admin.map_err(KubeconfigError::Cluster)?));
    }
    let entries: Vec<Entry<'_>> = issued
        .iter()
        .map(|(name, host, cluster, admin)| Entry {
            cluster: name.as_str(),
            server: address,
            server_name: host.as_str(),
            authority: cluster.keys.authority.certificate(),
            user: admin,
        })
        .collect();
    for entry in &entries {
        write_secret(
            &folder.join(format!("{}.yaml", entry.cluster)),
            render(std::slice::from_ref(entry)).expose(),
        )?;
    }
    write_secret(&dir.join("kubeconfig.yaml"), render(&entries).expose())
}

#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    #[error("write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Cluster(ClustersError),
}

fn write_secret(path: &std::path::Path, text: &str) -> Result<(), KubeconfigError> {
    let failed = |source| KubeconfigError::Write { path: path.to_owned(), source };
    // Made again with every start: flushing one for each of many clusters would double the time of a start.
    aro_files::replace_unflushed(path, text.as_bytes()).map_err(failed)
}
