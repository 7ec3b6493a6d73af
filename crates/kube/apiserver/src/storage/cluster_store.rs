//! The storage of one logical cluster.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use aro_journal::{Journal, Outcome};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{oneshot, watch};

use super::engine::Ticket;
use super::history::HistoryBudget;
use super::object::{Draft, Stored};
use super::record::Record;
use super::watch_cache::{Event, EventKind, WatchCache};

/// One cluster's objects.
pub struct ClusterStore {
    pub(super) id: u64,
    pub name: Box<str>,
    pub(super) journal: Journal<Ticket>,
    watch_caches: RwLock<HashMap<Box<str>, Arc<WatchCache>>>,
    queued: Mutex<Queued>,
    published: watch::Sender<u64>,
    pub(super) dropped: AtomicBool,
    live_bytes: Arc<AtomicU64>,
    history: Arc<HistoryBudget>,
    /// The version this process began with: no event before it is known, every one after it is.
    began: u64,
    observer: RwLock<Option<Observer>>,
    /// The owner's own record about this cluster: keys and certificates.
    pub(super) data: Mutex<Arc<[u8]>>,
}

/// Called for every published event on the log thread: it must be quick and must not block.
type Observer = Box<dyn Fn(&Arc<WatchCache>, &Arc<Event>) + Send + Sync>;

impl std::fmt::Debug for ClusterStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClusterStore({})", self.name)
    }
}

/// A version, and what it made of an object.
type Write = (u64, Option<Arc<Stored>>);

/// Versions that are assigned but not yet durable.
#[derive(Debug, Default)]
struct Queued {
    version: u64,
    /// By the name of a watch cache, then by key: looking something up makes no key.
    latest: HashMap<Box<str>, HashMap<Arc<str>, Write>>,
}

impl Queued {
    fn get(&self, watch_cache: &WatchCache, key: &str) -> Option<&Write> {
        self.latest.get(&watch_cache.name)?.get(key)
    }

    fn put(&mut self, watch_cache: &WatchCache, key: Arc<str>, version: u64, new: Option<Arc<Stored>>) {
        self.version = version;
        // As many as there are resources; they stay.
        if !self.latest.contains_key(&watch_cache.name) {
            self.latest.insert(watch_cache.name.clone(), HashMap::new());
        }
        if let Some(keys) = self.latest.get_mut(&watch_cache.name) {
            keys.insert(key, (version, new));
        }
    }

    /// Forgets a write that is durable, or lost, unless another has followed it.
    fn settle(&mut self, watch_cache: &WatchCache, key: &str, version: u64) {
        if let Some(keys) = self.latest.get_mut(&watch_cache.name)
            && keys.get(key).is_some_and(|(latest, _)| *latest == version)
        {
            keys.remove(key);
        }
    }
}

/// What a write does.
#[derive(Debug)]
pub enum Change {
    Put(Draft),
    Delete,
}

/// What a write was decided upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    Absent,
    /// This resource version.
    Version(u64),
}

/// Why nothing was written.
#[derive(Debug, Clone)]
pub enum WriteFailed {
    /// Conflict; this is the current object.
    Changed(Option<Arc<Stored>>),
    /// The log takes nothing more, or the cluster was deleted.
    Unavailable,
}

impl ClusterStore {
    pub(super) fn new(
        id: u64,
        name: &str,
        data: Arc<[u8]>,
        journal: Journal<Ticket>,
        live_bytes: Arc<AtomicU64>,
        version: u64,
        history: Arc<HistoryBudget>,
    ) -> Self {
        Self {
            id,
            name: name.into(),
            journal,
            watch_caches: RwLock::default(),
            queued: Mutex::new(Queued { version, latest: HashMap::new() }),
            published: watch::Sender::new(version),
            dropped: AtomicBool::new(false),
            live_bytes,
            history,
            began: version,
            observer: RwLock::new(None),
            data: Mutex::new(data),
        }
    }

    /// The owner's record, as last written.
    pub fn data(&self) -> Arc<[u8]> {
        self.data.lock().clone()
    }

    /// Who hears of every event from now on.
    pub fn observe(&self, observer: impl Fn(&Arc<WatchCache>, &Arc<Event>) + Send + Sync + 'static) {
        *self.observer.write() = Some(Box::new(observer));
    }

    /// The newest version that readers may see.
    pub fn version(&self) -> u64 {
        *self.published.borrow()
    }

    /// Follows [`ClusterStore::version`].
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.published.subscribe()
    }

    /// The watch cache of a resource (`deployments.apps`), made when first asked for.
    pub fn watch_cache(&self, resource: &str) -> Arc<WatchCache> {
        if let Some(watch_cache) = self.watch_caches.read().get(resource) {
            return watch_cache.clone();
        }
        let mut watch_caches = self.watch_caches.write();
        let make = || {
            let watch_cache = Arc::new(WatchCache::new(resource, self.began, self.history.clone()));
            self.history.register(self.id, &watch_cache);
            watch_cache
        };
        watch_caches.entry(resource.into()).or_insert_with(make).clone()
    }

    /// The watch cache of a resource, if anything was ever put there.
    pub fn shelf_if_there(&self, resource: &str) -> Option<Arc<WatchCache>> {
        self.watch_caches.read().get(resource).cloned()
    }

    /// Every watch cache there is.
    pub fn watch_caches(&self) -> Vec<Arc<WatchCache>> {
        self.watch_caches.read().values().cloned().collect()
    }

    /// The newest state of an object, durable or not: what writes are decided upon.
    pub fn latest(&self, watch_cache: &WatchCache, key: &str) -> Option<Arc<Stored>> {
        let queued = self.queued.lock();
        match queued.get(watch_cache, key) {
            Some((_, latest)) => latest.clone(),
            None => watch_cache.get(key),
        }
    }

    /// Writes one object, if it still is what the decision was made upon. Returns when it is durable and visible.
    /// For a deletion: the last state at the version of the deletion.
    pub async fn commit(
        self: &Arc<Self>,
        watch_cache: &Arc<WatchCache>,
        key: &str,
        expect: Expect,
        change: Change,
    ) -> Result<Arc<Stored>, WriteFailed> {
        let reply = self.queue(watch_cache, key, expect, change)?;
        reply.await.unwrap_or(Err(WriteFailed::Unavailable))
    }

    fn queue(
        self: &Arc<Self>,
        watch_cache: &Arc<WatchCache>,
        key: &str,
        expect: Expect,
        change: Change,
    ) -> Result<oneshot::Receiver<Result<Arc<Stored>, WriteFailed>>, WriteFailed> {
        let mut queued = self.queued.lock();
        if self.dropped.load(Ordering::Acquire) {
            return Err(WriteFailed::Unavailable);
        }
        let latest = match queued.get(watch_cache, key) {
            Some((_, latest)) => latest.clone(),
            None => watch_cache.get(key),
        };
        let matches = match (expect, &latest) {
            (Expect::Absent, None) => true,
            (Expect::Version(version), Some(latest)) => latest.version == version,
            _ => false,
        };
        if !matches {
            return Err(WriteFailed::Changed(latest));
        }
        let version = queued.version + 1;
        // What is there shares its key with whatever follows it.
        let key = latest.as_ref().map_or_else(|| Arc::from(key), |latest| latest.key.clone());
        let kind = if latest.is_some() { EventKind::Modified } else { EventKind::Added };
        let new = match change {
            Change::Put(draft) => Some(Arc::new(draft.finish(key.clone(), version, kind))),
            Change::Delete => None,
        };
        let (head, body) = match &new {
            Some(object) => self.put_record(watch_cache, object).encode(),
            None => {
                Record::Delete { store: self.id, version, watch_cache: &watch_cache.name, key: &key }.encode()
            }
        };
        let (sender, reply) = oneshot::channel();
        let ticket = Ticket::Write {
            store: self.clone(),
            watch_cache: watch_cache.clone(),
            key: key.clone(),
            version,
            new: new.clone(),
            reply: sender,
        };
        if self.journal.append(&[&head, body], ticket).is_err() {
            return Err(WriteFailed::Unavailable);
        }
        queued.put(watch_cache, key, version, new);
        Ok(reply)
    }

    fn put_record<'a>(&'a self, watch_cache: &'a WatchCache, object: &'a Stored) -> Record<'a> {
        Record::Put {
            store: self.id,
            version: object.version,
            hole: object.hole(),
            watch_cache: &watch_cache.name,
            key: &object.key,
            json: object.json(),
        }
    }

    /// Makes a write visible, and answers its writer. On the log's thread.
    pub(super) fn publish(
        &self,
        watch_cache: &Arc<WatchCache>,
        key: &Arc<str>,
        version: u64,
        new: Option<Arc<Stored>>,
        outcome: Outcome,
    ) -> Result<Arc<Stored>, WriteFailed> {
        let event = match outcome {
            Outcome::Durable => watch_cache.publish(key, version, new),
            Outcome::Failed => None,
        };
        self.queued.lock().settle(watch_cache, key, version);
        let Some(event) = event else { return Err(WriteFailed::Unavailable) };
        let weigh = |object: &Option<Arc<Stored>>| object.as_ref().map_or(0, |object| object.weight());
        let now = if event.kind == EventKind::Deleted { 0 } else { event.object.weight() };
        self.live_bytes.fetch_add(now, Ordering::Relaxed);
        self.live_bytes.fetch_sub(weigh(&event.previous), Ordering::Relaxed);
        // Readers that wait for a version must find it on the watch cache: the counter moves last.
        self.published.send_if_modified(|published| {
            *published = version;
            false
        });
        if let Some(observer) = &*self.observer.read() {
            observer(watch_cache, &event);
        }
        Ok(event.object.clone())
    }

    /// Wakes those who wait for a version.
    pub(super) fn announce(&self) {
        self.published.send_modify(|_| ());
    }

    /// Appends an object once more, if this is still its newest version: its segment is about to go.
    pub(super) fn rewrite(&self, watch_cache: &str, key: &str, version: u64) {
        let Some(watch_cache) = self.watch_caches.read().get(watch_cache).cloned() else { return };
        let queued = self.queued.lock();
        if self.dropped.load(Ordering::Acquire) {
            return;
        }
        if queued.get(&watch_cache, key).is_some() {
            return;
        }
        let Some(object) = watch_cache.get(key).filter(|object| object.version == version) else { return };
        let (head, body) = self.put_record(&watch_cache, &object).encode();
        // A log that takes nothing more removes nothing, either.
        let _ = self.journal.append(&[&head, body], Ticket::Nothing);
    }

    /// Records how far the counter is, so that it never goes back.
    pub(super) fn mark(&self) {
        let queued = self.queued.lock();
        if self.dropped.load(Ordering::Acquire) {
            return;
        }
        let (head, body) = Record::Mark { store: self.id, version: queued.version }.encode();
        let _ = self.journal.append(&[&head, body], Ticket::Nothing);
    }

    /// Appends the cluster store's own record. Nothing to do for one that was dropped: it must not come back.
    pub(super) fn write_self(&self, ticket: Ticket) -> Result<(), WriteFailed> {
        let data = self.data();
        let _queued = self.queued.lock();
        if self.dropped.load(Ordering::Acquire) {
            return Ok(());
        }
        let (head, body) = Record::ClusterStore { store: self.id, name: &self.name, data: &data }.encode();
        self.journal.append(&[&head, body], ticket).map_err(|_| WriteFailed::Unavailable)
    }

    /// Records that the cluster store is gone. Nothing about it follows in the log.
    pub(super) fn write_end(&self, ticket: Ticket) -> Result<(), WriteFailed> {
        let (head, body) = Record::Dropped { store: self.id }.encode();
        let _queued = self.queued.lock();
        self.dropped.store(true, Ordering::Release);
        self.journal.append(&[&head, body], ticket).map_err(|_| WriteFailed::Unavailable)
    }

    pub(super) fn restore(&self, watch_cache: &str, object: Stored) {
        self.live_bytes.fetch_add(object.weight(), Ordering::Relaxed);
        self.watch_cache(watch_cache).restore(Arc::new(object));
    }

    pub(super) fn live(&self) -> u64 {
        let watch_caches = self.watch_caches();
        watch_caches.iter().flat_map(|watch_cache| watch_cache.all()).map(|object| object.weight()).sum()
    }
}
