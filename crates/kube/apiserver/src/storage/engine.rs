//! One log for all cluster stores.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aro_base::SharedClock;
use aro_journal::{Journal, OpenError, Options, Outcome};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::cluster_store::{ClusterStore, WriteFailed};
use super::compact::Compactor;
use super::history::{HistoryBudget, HistoryLimits};
use super::object::Stored;
use super::record::Record;
use super::watch_cache::WatchCache;

/// What the log hands back when a record is durable.
pub(super) enum Ticket {
    Write {
        store: Arc<ClusterStore>,
        watch_cache: Arc<WatchCache>,
        key: Arc<str>,
        version: u64,
        new: Option<Arc<Stored>>,
        reply: oneshot::Sender<Result<Arc<Stored>, WriteFailed>>,
    },
    /// Everything before this is durable.
    Barrier(oneshot::Sender<Outcome>),
    Nothing,
}

/// The storage of all clusters of a process.
#[derive(Debug)]
pub struct Engine {
    journal: Journal<Ticket>,
    stores: Arc<Mutex<HashMap<Box<str>, Arc<ClusterStore>>>>,
    next: AtomicU64,
    live_bytes: Arc<AtomicU64>,
    history: Arc<HistoryBudget>,
    compactor: Compactor,
    failed: watch::Sender<bool>,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ticket")
    }
}

/// Why the storage cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("open the log of Kubernetes objects")]
    Open(#[source] OpenError),
    #[error("the log holds a record that this version cannot read; start the version that wrote it")]
    Unknown,
    #[error("object `{watch_cache}/{key}` of cluster `{store}` cannot be read back from the log")]
    Unreadable {
        store: String,
        watch_cache: String,
        key: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("a cluster `{0}` exists already")]
    Exists(String),
    #[error("the log of Kubernetes objects takes no more writes; see the error logged when it failed")]
    Unavailable,
    #[error("start a thread")]
    Thread(#[source] std::io::Error),
}

/// What a start gathers from the log.
#[derive(Default)]
struct Recovery {
    stores: BTreeMap<u64, Recovered>,
    highest: u64,
    unknown: bool,
}

/// An object's version, where its digits belong, and its JSON.
type Kept = (u64, u32, Bytes);

#[derive(Default)]
struct Recovered {
    name: Box<str>,
    data: Vec<u8>,
    version: u64,
    watch_caches: HashMap<Box<str>, HashMap<Box<str>, Kept>>,
}

impl Recovery {
    /// What is known about a cluster store so far. Its own record may come later: compaction appends it once more.
    fn store(&mut self, id: u64) -> &mut Recovered {
        self.highest = self.highest.max(id);
        self.stores.entry(id).or_default()
    }

    fn take(&mut self, bytes: &[u8]) {
        match Record::decode(bytes) {
            Some(Record::Put { store, version, hole, watch_cache, key, json }) => {
                let store = self.store(store);
                store.version = store.version.max(version);
                let watch_cache = match store.watch_caches.get_mut(watch_cache) {
                    Some(watch_cache) => watch_cache,
                    None => store.watch_caches.entry(watch_cache.into()).or_default(),
                };
                // Compaction appends what is old and still alive: order in the log is not order of versions.
                if watch_cache.get(key).is_none_or(|(known, ..)| *known < version) {
                    watch_cache.insert(key.into(), (version, hole, Bytes::copy_from_slice(json)));
                }
            }
            Some(Record::Delete { store, version, watch_cache, key }) => {
                let store = self.store(store);
                store.version = store.version.max(version);
                if let Some(watch_cache) = store.watch_caches.get_mut(watch_cache) {
                    watch_cache.remove(key);
                }
            }
            Some(Record::Mark { store, version }) => {
                let store = self.store(store);
                store.version = store.version.max(version);
            }
            Some(Record::ClusterStore { store, name, data }) => {
                let store = self.store(store);
                store.name = name.into();
                store.data = data.to_vec();
            }
            Some(Record::Dropped { store }) => {
                self.highest = self.highest.max(store);
                self.stores.remove(&store);
            }
            None => self.unknown = true,
        }
    }
}

impl Engine {
    /// Opens or makes the storage in a directory. Blocks on the disk.
    pub fn open(
        dir: &Path,
        flush: bool,
        history: impl Into<HistoryLimits>,
        clock: SharedClock,
    ) -> Result<Self, EngineError> {
        let history = HistoryBudget::new(history.into(), clock);
        let mut recovery = Recovery::default();
        let options = Options { flush, ..Options::default() };
        let segment_bytes = options.segment_bytes;
        let replay = |bytes: &[u8]| recovery.take(bytes);
        let failed = watch::Sender::new(false);
        let told = failed.clone();
        let budget = history.clone();
        let committed = move |tickets: Vec<Ticket>, outcome: Outcome| {
            if outcome == Outcome::Failed {
                told.send_replace(true);
            }
            commit(tickets, outcome);
            budget.enforce();
        };
        let journal = Journal::open(dir, options, replay, committed).map_err(EngineError::Open)?;
        if recovery.unknown {
            journal.close();
            return Err(EngineError::Unknown);
        }
        let live_bytes = Arc::new(AtomicU64::new(0));
        let mut stores = HashMap::new();
        // Without a record of its own, it is what was left of one that was dropped.
        for (id, found) in recovery.stores.into_iter().filter(|(_, found)| !found.name.is_empty()) {
            let data = Arc::from(found.data);
            let store = ClusterStore::new(
                id,
                &found.name,
                data,
                journal.clone(),
                live_bytes.clone(),
                found.version,
                history.clone(),
            );
            for (watch_cache, objects) in found.watch_caches {
                for (key, (version, hole, json)) in objects {
                    let object = Stored::recover(&key, version, hole, json).map_err(|source| {
                        let (store, watch_cache, key) =
                            (found.name.to_string(), watch_cache.to_string(), key.to_string());
                        EngineError::Unreadable { store, watch_cache, key, source }
                    })?;
                    store.restore(&watch_cache, object);
                }
            }
            stores.insert(found.name, Arc::new(store));
        }
        let stores = Arc::new(Mutex::new(stores));
        let compactor = Compactor::start(
            journal.clone(),
            stores.clone(),
            live_bytes.clone(),
            history.clone(),
            segment_bytes,
            failed.clone(),
        );
        let compactor = compactor.map_err(EngineError::Thread)?;
        let next = AtomicU64::new(recovery.highest + 1);
        Ok(Self { journal, stores, next, live_bytes, history, compactor, failed })
    }

    /// Returns when the log has failed: nothing can be written until the next start.
    pub async fn failed(&self) {
        // The sender lives as long as we do.
        let _ = self.failed.subscribe().wait_for(|failed| *failed).await;
    }

    /// The cluster stores there are.
    pub fn stores(&self) -> Vec<Arc<ClusterStore>> {
        self.stores.lock().values().cloned().collect()
    }

    pub fn store(&self, name: &str) -> Option<Arc<ClusterStore>> {
        self.stores.lock().get(name).cloned()
    }

    /// Makes an empty cluster store; returns when it is durable.
    pub async fn create(&self, name: &str, data: Vec<u8>) -> Result<Arc<ClusterStore>, EngineError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let make = || {
            ClusterStore::new(
                id,
                name,
                data.into(),
                self.journal.clone(),
                self.live_bytes.clone(),
                0,
                self.history.clone(),
            )
        };
        let store = {
            let mut stores = self.stores.lock();
            if stores.contains_key(name) {
                return Err(EngineError::Exists(name.to_owned()));
            }
            let store = Arc::new(make());
            stores.insert(name.into(), store.clone());
            store
        };
        let (sender, durable) = oneshot::channel();
        store.write_self(Ticket::Barrier(sender)).map_err(|_| EngineError::Unavailable)?;
        self.settled(durable).await?;
        Ok(store)
    }

    /// Removes a cluster store and everything in it; returns when that is durable.
    pub async fn drop_space(&self, store: &Arc<ClusterStore>) -> Result<(), EngineError> {
        let (sender, durable) = oneshot::channel();
        store.write_end(Ticket::Barrier(sender)).map_err(|_| EngineError::Unavailable)?;
        self.settled(durable).await?;
        // Everything written before is published by now: what it weighed is known.
        self.live_bytes.fetch_sub(store.live(), Ordering::Relaxed);
        self.stores.lock().remove(&store.name);
        Ok(())
    }

    async fn settled(&self, durable: oneshot::Receiver<Outcome>) -> Result<(), EngineError> {
        match durable.await {
            Ok(Outcome::Durable) => Ok(()),
            _ => Err(EngineError::Unavailable),
        }
    }

    /// Compacts now, instead of when it pays. Blocks on the disk.
    pub fn compact(&self) {
        self.compactor.run_now();
    }

    /// Bytes of all objects, and bytes of log on disk.
    pub fn usage(&self) -> (u64, u64) {
        let segments = self.journal.segments().len() as u64;
        (self.live_bytes.load(Ordering::Relaxed), segments * Options::default().segment_bytes)
    }

    /// Bytes of the events that watches can start from.
    pub fn history_bytes(&self) -> u64 {
        self.history.bytes()
    }

    /// Writes what is queued, and ends. Blocks on the disk.
    pub fn close(&self) {
        self.compactor.stop();
        self.journal.close();
    }
}

/// A batch is durable, or lost: publish in order, then wake everybody once.
fn commit(tickets: Vec<Ticket>, outcome: Outcome) {
    let mut touched: Vec<(Arc<ClusterStore>, Arc<WatchCache>)> = Vec::new();
    let mut replies = Vec::with_capacity(tickets.len());
    for ticket in tickets {
        match ticket {
            Ticket::Write { store, watch_cache, key, version, new, reply } => {
                let published = store.publish(&watch_cache, &key, version, new, outcome);
                replies.push((reply, published));
                if !touched.iter().any(|(_, known)| Arc::ptr_eq(known, &watch_cache)) {
                    touched.push((store, watch_cache));
                }
            }
            Ticket::Barrier(reply) => {
                // The caller is gone.
                let _ = reply.send(outcome);
            }
            Ticket::Nothing => {}
        }
    }
    for (store, watch_cache) in &touched {
        watch_cache.announce();
        store.announce();
    }
    for (reply, published) in replies {
        // The request was given up; the write stands.
        let _ = reply.send(published);
    }
}
