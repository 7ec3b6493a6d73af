//! The storage of one logical cluster.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use aro_journal::{Journal, Outcome};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{oneshot, watch};

use super::engine::Ticket;
use super::object::{Draft, Stored};
use super::record::Record;
use super::shelf::{Event, EventKind, Shelf};

/// One cluster's objects.
pub struct Space {
    pub(super) id: u64,
    pub name: Box<str>,
    pub(super) journal: Journal<Ticket>,
    shelves: RwLock<HashMap<Box<str>, Arc<Shelf>>>,
    queued: Mutex<Queued>,
    published: watch::Sender<u64>,
    pub(super) dropped: AtomicBool,
    live_bytes: Arc<AtomicU64>,
    history: usize,
    /// The version this process began with: no event before it is known, every one after it is.
    began: u64,
    observer: RwLock<Option<Observer>>,
    /// The owner's own record about this cluster: keys and certificates.
    pub(super) data: Mutex<Arc<[u8]>>,
}

/// Told about every published event, on the log's thread: it must be quick and must not block.
type Observer = Box<dyn Fn(&Arc<Shelf>, &Arc<Event>) + Send + Sync>;

impl std::fmt::Debug for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Space({})", self.name)
    }
}

/// A version, and what it made of an object.
type Write = (u64, Option<Arc<Stored>>);

/// What is given out but not yet durable.
#[derive(Debug, Default)]
struct Queued {
    version: u64,
    /// By the name of a shelf, then by key: looking something up makes no key.
    latest: HashMap<Box<str>, HashMap<Arc<str>, Write>>,
}

impl Queued {
    fn get(&self, shelf: &Shelf, key: &str) -> Option<&Write> {
        self.latest.get(&shelf.name)?.get(key)
    }

    fn put(&mut self, shelf: &Shelf, key: Arc<str>, version: u64, new: Option<Arc<Stored>>) {
        self.version = version;
        // As many as there are resources; they stay.
        if !self.latest.contains_key(&shelf.name) {
            self.latest.insert(shelf.name.clone(), HashMap::new());
        }
        if let Some(keys) = self.latest.get_mut(&shelf.name) {
            keys.insert(key, (version, new));
        }
    }

    /// Forgets a write that is durable, or lost, unless another has followed it.
    fn settle(&mut self, shelf: &Shelf, key: &str, version: u64) {
        if let Some(keys) = self.latest.get_mut(&shelf.name)
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
    /// Somebody else was faster; this is what is there now.
    Changed(Option<Arc<Stored>>),
    /// The log takes nothing more, or the cluster was deleted.
    Unavailable,
}

impl Space {
    pub(super) fn new(
        id: u64,
        name: &str,
        data: Arc<[u8]>,
        journal: Journal<Ticket>,
        live_bytes: Arc<AtomicU64>,
        version: u64,
        history: usize,
    ) -> Self {
        Self {
            id,
            name: name.into(),
            journal,
            shelves: RwLock::default(),
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
    pub fn observe(&self, observer: impl Fn(&Arc<Shelf>, &Arc<Event>) + Send + Sync + 'static) {
        *self.observer.write() = Some(Box::new(observer));
    }

    /// The newest version that readers may see.
    pub fn version(&self) -> u64 {
        *self.published.borrow()
    }

    /// Follows [`Space::version`].
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.published.subscribe()
    }

    /// The shelf of a resource (`deployments.apps`), made when first asked for.
    pub fn shelf(&self, resource: &str) -> Arc<Shelf> {
        if let Some(shelf) = self.shelves.read().get(resource) {
            return shelf.clone();
        }
        let mut shelves = self.shelves.write();
        let make = || Arc::new(Shelf::new(resource, self.began, self.history));
        shelves.entry(resource.into()).or_insert_with(make).clone()
    }

    /// The shelf of a resource, if anything was ever put there.
    pub fn shelf_if_there(&self, resource: &str) -> Option<Arc<Shelf>> {
        self.shelves.read().get(resource).cloned()
    }

    /// Every shelf there is.
    pub fn shelves(&self) -> Vec<Arc<Shelf>> {
        self.shelves.read().values().cloned().collect()
    }

    /// The newest state of an object, durable or not: what writes are decided upon.
    pub fn latest(&self, shelf: &Shelf, key: &str) -> Option<Arc<Stored>> {
        let queued = self.queued.lock();
        match queued.get(shelf, key) {
            Some((_, latest)) => latest.clone(),
            None => shelf.get(key),
        }
    }

    /// Writes one object, if it still is what the decision was made upon. Returns when it is durable and visible.
    /// For a deletion: the last state at the version of the deletion.
    pub async fn commit(
        self: &Arc<Self>,
        shelf: &Arc<Shelf>,
        key: &str,
        expect: Expect,
        change: Change,
    ) -> Result<Arc<Stored>, WriteFailed> {
        let reply = self.queue(shelf, key, expect, change)?;
        reply.await.unwrap_or(Err(WriteFailed::Unavailable))
    }

    fn queue(
        self: &Arc<Self>,
        shelf: &Arc<Shelf>,
        key: &str,
        expect: Expect,
        change: Change,
    ) -> Result<oneshot::Receiver<Result<Arc<Stored>, WriteFailed>>, WriteFailed> {
        let mut queued = self.queued.lock();
        if self.dropped.load(Ordering::Acquire) {
            return Err(WriteFailed::Unavailable);
        }
        let latest = match queued.get(shelf, key) {
            Some((_, latest)) => latest.clone(),
            None => shelf.get(key),
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
            Some(object) => self.put_record(shelf, object).encode(),
            None => Record::Delete { space: self.id, version, shelf: &shelf.name, key: &key }.encode(),
        };
        let (sender, reply) = oneshot::channel();
        let ticket = Ticket::Write {
            space: self.clone(),
            shelf: shelf.clone(),
            key: key.clone(),
            version,
            new: new.clone(),
            reply: sender,
        };
        if self.journal.append(&[&head, body], ticket).is_err() {
            return Err(WriteFailed::Unavailable);
        }
        queued.put(shelf, key, version, new);
        Ok(reply)
    }

    fn put_record<'a>(&'a self, shelf: &'a Shelf, object: &'a Stored) -> Record<'a> {
        Record::Put {
            space: self.id,
            version: object.version,
            hole: object.hole(),
            shelf: &shelf.name,
            key: &object.key,
            json: object.json(),
        }
    }

    /// Makes a write visible, and answers its writer. On the log's thread.
    pub(super) fn publish(
        &self,
        shelf: &Arc<Shelf>,
        key: &Arc<str>,
        version: u64,
        new: Option<Arc<Stored>>,
        outcome: Outcome,
    ) -> Result<Arc<Stored>, WriteFailed> {
        let event = match outcome {
            Outcome::Durable => shelf.publish(key, version, new),
            Outcome::Failed => None,
        };
        self.queued.lock().settle(shelf, key, version);
        let Some(event) = event else { return Err(WriteFailed::Unavailable) };
        let weigh = |object: &Option<Arc<Stored>>| object.as_ref().map_or(0, |object| object.weight());
        let now = if event.kind == EventKind::Deleted { 0 } else { event.object.weight() };
        self.live_bytes.fetch_add(now, Ordering::Relaxed);
        self.live_bytes.fetch_sub(weigh(&event.previous), Ordering::Relaxed);
        // Readers that wait for a version must find it on the shelf: the counter moves last.
        self.published.send_if_modified(|published| {
            *published = version;
            false
        });
        if let Some(observer) = &*self.observer.read() {
            observer(shelf, &event);
        }
        Ok(event.object.clone())
    }

    /// Wakes those who wait for a version.
    pub(super) fn announce(&self) {
        self.published.send_modify(|_| ());
    }

    /// Appends an object once more, if this is still its newest version: its segment is about to go.
    pub(super) fn rewrite(&self, shelf: &str, key: &str, version: u64) {
        let Some(shelf) = self.shelves.read().get(shelf).cloned() else { return };
        let queued = self.queued.lock();
        if self.dropped.load(Ordering::Acquire) {
            return;
        }
        if queued.get(&shelf, key).is_some() {
            return;
        }
        let Some(object) = shelf.get(key).filter(|object| object.version == version) else { return };
        let (head, body) = self.put_record(&shelf, &object).encode();
        // A log that takes nothing more removes nothing, either.
        let _ = self.journal.append(&[&head, body], Ticket::Nothing);
    }

    /// Records how far the counter is, so that it never goes back.
    pub(super) fn mark(&self) {
        let queued = self.queued.lock();
        if self.dropped.load(Ordering::Acquire) {
            return;
        }
        let (head, body) = Record::Mark { space: self.id, version: queued.version }.encode();
        let _ = self.journal.append(&[&head, body], Ticket::Nothing);
    }

    /// Appends the space's own record. Nothing to do for one that was dropped: it must not come back.
    pub(super) fn write_self(&self, ticket: Ticket) -> Result<(), WriteFailed> {
        let data = self.data();
        let _queued = self.queued.lock();
        if self.dropped.load(Ordering::Acquire) {
            return Ok(());
        }
        let (head, body) = Record::Space { space: self.id, name: &self.name, data: &data }.encode();
        self.journal.append(&[&head, body], ticket).map_err(|_| WriteFailed::Unavailable)
    }

    /// Records that the space is gone. Nothing about it follows in the log.
    pub(super) fn write_end(&self, ticket: Ticket) -> Result<(), WriteFailed> {
        let (head, body) = Record::Dropped { space: self.id }.encode();
        let _queued = self.queued.lock();
        self.dropped.store(true, Ordering::Release);
        self.journal.append(&[&head, body], ticket).map_err(|_| WriteFailed::Unavailable)
    }

    pub(super) fn restore(&self, shelf: &str, object: Stored) {
        self.live_bytes.fetch_add(object.weight(), Ordering::Relaxed);
        self.shelf(shelf).restore(Arc::new(object));
    }

    pub(super) fn live(&self) -> u64 {
        let shelves = self.shelves();
        shelves.iter().flat_map(|shelf| shelf.all()).map(|object| object.weight()).sum()
    }
}
