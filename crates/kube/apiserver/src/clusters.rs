//! The logical clusters of a process: made, found, stopped and deleted while it runs.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use aro_base::SharedClock;
use aro_control::ReconcileMetrics;
use aro_kube_apimachinery::status::Status;
use aro_runtime::Scope;
use parking_lot::RwLock;

use crate::cluster::Cluster;
use crate::config::is_name;
use crate::controller_activation::{self, ActivationOptions, ActivationRequests};
use crate::identity::keys::{Keys, KeysError};
use crate::internal_controllers::{self, WorkQueue};
use crate::storage::{ClusterStore, Engine, EngineError, HistoryLimits};
use crate::{bootstrap, tls};

/// All clusters of a process.
#[derive(Clone)]
pub struct Clusters {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    clock: SharedClock,
    work: WorkQueue,
    activation: ActivationRequests,
    running: RwLock<HashMap<Box<str>, Arc<Cluster>>>,
    /// Other names by which clients ask for a cluster.
    aliases: RwLock<HashMap<Box<str>, Box<str>>>,
    /// Held while a cluster is made: one of them for each name, so that different ones are made at once.
    making: [tokio::sync::Mutex<()>; 64],
    domain: String,
}

impl std::fmt::Debug for Clusters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.inner.running.read().keys()).finish()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ClustersError {
    #[error("`{0}` is no name for a cluster: lower-case letters, digits and dashes, at most 63")]
    Name(String),
    #[error("there is no cluster `{0}`")]
    Unknown(String),
    #[error("cannot load the keys of cluster `{cluster}`")]
    Keys {
        cluster: String,
        #[source]
        source: KeysError,
    },
    #[error("cannot open the object storage")]
    Storage(#[source] EngineError),
    #[error("cannot bootstrap cluster `{cluster}`")]
    Bootstrap {
        cluster: String,
        #[source]
        source: Status,
    },
}

impl Clusters {
    /// Opens the storage in a directory and starts every cluster found there. Blocks on the disk.
    pub fn open(
        dir: &Path,
        flush: bool,
        history: impl Into<HistoryLimits>,
        domain: &str,
        clock: SharedClock,
    ) -> Result<Self, ClustersError> {
        let engine = Engine::open(dir, flush, history, clock.clone()).map_err(ClustersError::Storage)?;
        let stores = engine.stores();
        let inner = Inner {
            engine,
            clock,
            work: WorkQueue::default(),
            activation: ActivationRequests::default(),
            running: RwLock::default(),
            aliases: RwLock::default(),
            making: std::array::from_fn(|_| tokio::sync::Mutex::default()),
            domain: domain.to_owned(),
        };
        let clusters = Self { inner: Arc::new(inner) };
        for store in stores {
            let keys = Keys::from_bytes(&store.data())
                .map_err(|source| ClustersError::Keys { cluster: store.name.to_string(), source })?;
            clusters.start(store, keys);
        }
        Ok(clusters)
    }

    fn start(&self, store: Arc<ClusterStore>, keys: Keys) -> Arc<Cluster> {
        let cluster = Arc::new(Cluster::new(store, keys, self.inner.clock.clone(), self.inner.work.clone()));
        let (observer, activation) = (Arc::downgrade(&cluster), self.inner.activation.clone());
        cluster.store.observe(move |watch_cache, event| {
            if let Some(cluster) = observer.upgrade() {
                internal_controllers::observe(&cluster, watch_cache, event);
                activation.observe(&cluster, watch_cache, event);
            }
        });
        internal_controllers::enqueue_existing(&cluster);
        self.inner.activation.request_existing(&cluster);
        self.inner.running.write().insert(cluster.name().into(), cluster.clone());
        cluster
    }

    /// Starts the internal controllers of all clusters.
    pub fn start_internal_controllers(&self, metrics: &ReconcileMetrics, scope: &Scope) {
        internal_controllers::start(&self.inner.work, metrics, scope);
    }

    /// Starts the workload controllers: of clusters with nodes always, of others while their workloads change.
    pub fn activate_controllers(&self, options: ActivationOptions, scope: &Scope) {
        for name in options.nodes.keys() {
            if let Some(cluster) = self.get(name) {
                self.inner.activation.request(&cluster);
            }
        }
        controller_activation::start(options, self.inner.activation.clone(), scope);
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.inner.running.read().keys().map(|name| name.to_string()).collect();
        names.sort();
        names
    }

    pub fn get(&self, name: &str) -> Option<Arc<Cluster>> {
        self.inner.running.read().get(name).cloned()
    }

    /// The cluster, made if there is none.
    pub async fn ensure(&self, name: &str) -> Result<Arc<Cluster>, ClustersError> {
        if self.get(name).is_none() {
            let _one_at_a_time = self.making(name).lock().await;
            // A concurrent caller may have created it meanwhile.
            match self.inner.engine.store(name) {
                None => return self.make(name).await,
                // It was stopped.
                Some(store) if self.get(name).is_none() => {
                    let failed = |source| ClustersError::Keys { cluster: name.to_owned(), source };
                    let keys = Keys::from_bytes(&store.data()).map_err(failed)?;
                    self.start(store, keys);
                }
                Some(_) => {}
            }
        }
        let cluster = self.get(name).ok_or_else(|| ClustersError::Unknown(name.to_owned()))?;
        self.fill(&cluster).await?;
        Ok(cluster)
    }

    /// Makes a cluster. It answers when this returns.
    pub async fn create(&self, name: &str) -> Result<Arc<Cluster>, ClustersError> {
        let _one_at_a_time = self.making(name).lock().await;
        self.make(name).await
    }

    fn making(&self, name: &str) -> &tokio::sync::Mutex<()> {
        let sum = name.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        &self.inner.making[sum % self.inner.making.len()]
    }

    async fn make(&self, name: &str) -> Result<Arc<Cluster>, ClustersError> {
        if !is_name(name) {
            return Err(ClustersError::Name(name.to_owned()));
        }
        let failed = |source| ClustersError::Keys { cluster: name.to_owned(), source };
        let keys = Keys::generate(name, self.inner.clock.now()).map_err(failed)?;
        let data = keys.to_bytes().map_err(failed)?;
        let store = self.inner.engine.create(name, data).await.map_err(ClustersError::Storage)?;
        let cluster = self.start(store, keys);
        self.fill(&cluster).await?;
        Ok(cluster)
    }

    /// Puts into a cluster what every cluster holds; once per process. An earlier one may have ended half-way.
    async fn fill(&self, cluster: &Arc<Cluster>) -> Result<(), ClustersError> {
        let filled = cluster.filled.get_or_try_init(|| bootstrap::ensure(cluster)).await;
        let failed = |source| ClustersError::Bootstrap { cluster: cluster.name().to_owned(), source };
        filled.map_err(failed)?;
        Ok(())
    }

    /// Stops a cluster: it answers no more. [`Clusters::ensure`] or a restart brings it back.
    pub fn stop(&self, name: &str) -> Result<(), ClustersError> {
        let cluster = self.inner.running.write().remove(name);
        cluster.ok_or_else(|| ClustersError::Unknown(name.to_owned()))?.closing.cancel();
        Ok(())
    }

    /// Deletes a cluster with everything in it.
    pub async fn delete(&self, name: &str) -> Result<(), ClustersError> {
        if let Some(cluster) = self.inner.running.write().remove(name) {
            cluster.closing.cancel();
        }
        let store = self.inner.engine.store(name).ok_or_else(|| ClustersError::Unknown(name.to_owned()))?;
        self.inner.aliases.write().retain(|_, known| &**known != name);
        self.inner.engine.drop_space(&store).await.map_err(ClustersError::Storage)
    }

    /// Makes a cluster also answer to a host name of its own.
    pub fn alias(&self, host: &str, cluster: &str) {
        self.inner.aliases.write().insert(host.to_ascii_lowercase().into(), cluster.into());
        if let Some(cluster) = self.get(cluster) {
            // Its certificate has to say so, too: the next connection gets a new one.
            *cluster.tls.write() = None;
        }
    }

    /// The name clients ask for to reach a cluster.
    pub fn host(&self, cluster: &str) -> String {
        format!("{cluster}.{}", self.inner.domain)
    }

    /// The cluster a client asks for by host name.
    pub fn by_host(&self, host: &str) -> Option<Arc<Cluster>> {
        let host = host.to_ascii_lowercase();
        if let Some(name) = self.inner.aliases.read().get(&*host) {
            return self.get(name);
        }
        let name = host.strip_suffix(&self.inner.domain)?.strip_suffix('.')?;
        self.get(name)
    }

    /// Names a cluster's certificate is good for.
    pub fn server_names(&self, cluster: &str) -> Vec<String> {
        let mut names = tls::standard_names();
        names.insert(0, self.host(cluster));
        let aliases = self.inner.aliases.read();
        names.extend(
            aliases.iter().filter(|(_, known)| &***known == cluster).map(|(host, _)| host.to_string()),
        );
        names
    }

    /// Bytes of all objects, and bytes on disk.
    pub fn usage(&self) -> (u64, u64) {
        self.inner.engine.usage()
    }

    /// Ends everything that lasts, writes what is queued, and closes the storage. Blocks on the disk.
    pub fn close(&self) {
        for cluster in self.inner.running.read().values() {
            cluster.closing.cancel();
        }
        self.inner.engine.close();
    }

    /// Returns when the storage has failed: nothing can be written until the next start.
    pub async fn failed(&self) {
        self.inner.engine.failed().await;
    }

    /// Ends watches, so that connections can drain.
    pub fn end_watches(&self) {
        for cluster in self.inner.running.read().values() {
            cluster.closing.cancel();
        }
    }
}
