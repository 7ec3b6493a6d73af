//! One log for all spaces.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aro_journal::{Journal, OpenError, Options, Outcome};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::compact::Compactor;
use super::object::Stored;
use super::record::Record;
use super::shelf::Shelf;
use super::space::{Space, WriteFailed};

/// What the log hands back when a record is durable.
pub(super) enum Ticket {
    Write {
        space: Arc<Space>,
        shelf: Arc<Shelf>,
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
    spaces: Arc<Mutex<HashMap<Box<str>, Arc<Space>>>>,
    next: AtomicU64,
    live_bytes: Arc<AtomicU64>,
    history: usize,
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
    #[error("object `{shelf}/{key}` of cluster `{space}` cannot be read back from the log")]
    Unreadable {
        space: String,
        shelf: String,
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
    spaces: BTreeMap<u64, Recovered>,
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
    shelves: HashMap<Box<str>, HashMap<Box<str>, Kept>>,
}

impl Recovery {
    /// What is known about a space so far. Its own record may come later: compaction appends it once more.
    fn space(&mut self, id: u64) -> &mut Recovered {
        self.highest = self.highest.max(id);
        self.spaces.entry(id).or_default()
    }

    fn take(&mut self, bytes: &[u8]) {
        match Record::decode(bytes) {
            Some(Record::Put { space, version, hole, shelf, key, json }) => {
                let space = self.space(space);
                space.version = space.version.max(version);
                let shelf = match space.shelves.get_mut(shelf) {
                    Some(shelf) => shelf,
                    None => space.shelves.entry(shelf.into()).or_default(),
                };
                // Compaction appends what is old and still alive: order in the log is not order of versions.
                if shelf.get(key).is_none_or(|(known, ..)| *known < version) {
                    shelf.insert(key.into(), (version, hole, Bytes::copy_from_slice(json)));
                }
            }
            Some(Record::Delete { space, version, shelf, key }) => {
                let space = self.space(space);
                space.version = space.version.max(version);
                if let Some(shelf) = space.shelves.get_mut(shelf) {
                    shelf.remove(key);
                }
            }
            Some(Record::Mark { space, version }) => {
                let space = self.space(space);
                space.version = space.version.max(version);
            }
            Some(Record::Space { space, name, data }) => {
                let space = self.space(space);
                space.name = name.into();
                space.data = data.to_vec();
            }
            Some(Record::Dropped { space }) => {
                self.highest = self.highest.max(space);
                self.spaces.remove(&space);
            }
            None => self.unknown = true,
        }
    }
}

impl Engine {
    /// Opens or makes the storage in a directory. Blocks on the disk.
    pub fn open(dir: &Path, flush: bool, history: usize) -> Result<Self, EngineError> {
        let mut recovery = Recovery::default();
        let options = Options { flush, ..Options::default() };
        let segment_bytes = options.segment_bytes;
        let replay = |bytes: &[u8]| recovery.take(bytes);
        let failed = watch::Sender::new(false);
        let told = failed.clone();
        let committed = move |tickets: Vec<Ticket>, outcome: Outcome| {
            if outcome == Outcome::Failed {
                told.send_replace(true);
            }
            commit(tickets, outcome);
        };
        let journal = Journal::open(dir, options, replay, committed).map_err(EngineError::Open)?;
        if recovery.unknown {
            journal.close();
            return Err(EngineError::Unknown);
        }
        let live_bytes = Arc::new(AtomicU64::new(0));
        let mut spaces = HashMap::new();
        // Without a record of its own, it is what was left of one that was dropped.
        for (id, found) in recovery.spaces.into_iter().filter(|(_, found)| !found.name.is_empty()) {
            let data = Arc::from(found.data);
            let space = Space::new(
                id,
                &found.name,
                data,
                journal.clone(),
                live_bytes.clone(),
                found.version,
                history,
            );
            for (shelf, objects) in found.shelves {
                for (key, (version, hole, json)) in objects {
                    let object = Stored::recover(&key, version, hole, json).map_err(|source| {
                        let (space, shelf, key) =
                            (found.name.to_string(), shelf.to_string(), key.to_string());
                        EngineError::Unreadable { space, shelf, key, source }
                    })?;
                    space.restore(&shelf, object);
                }
            }
            spaces.insert(found.name, Arc::new(space));
        }
        let spaces = Arc::new(Mutex::new(spaces));
        let compactor = Compactor::start(journal.clone(), spaces.clone(), live_bytes.clone(), segment_bytes)
            .map_err(EngineError::Thread)?;
        let next = AtomicU64::new(recovery.highest + 1);
        Ok(Self { journal, spaces, next, live_bytes, history, compactor, failed })
    }

    /// Returns when the log has failed: nothing can be written until the next start.
    pub async fn failed(&self) {
        // The sender lives as long as we do.
        let _ = self.failed.subscribe().wait_for(|failed| *failed).await;
    }

    /// The spaces there are.
    pub fn spaces(&self) -> Vec<Arc<Space>> {
        self.spaces.lock().values().cloned().collect()
    }

    pub fn space(&self, name: &str) -> Option<Arc<Space>> {
        self.spaces.lock().get(name).cloned()
    }

    /// Makes an empty space; returns when it is durable.
    pub async fn create(&self, name: &str, data: Vec<u8>) -> Result<Arc<Space>, EngineError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let make = || {
            Space::new(id, name, data.into(), self.journal.clone(), self.live_bytes.clone(), 0, self.history)
        };
        let space = {
            let mut spaces = self.spaces.lock();
            if spaces.contains_key(name) {
                return Err(EngineError::Exists(name.to_owned()));
            }
            let space = Arc::new(make());
            spaces.insert(name.into(), space.clone());
            space
        };
        let (sender, durable) = oneshot::channel();
        space.write_self(Ticket::Barrier(sender)).map_err(|_| EngineError::Unavailable)?;
        self.settled(durable).await?;
        Ok(space)
    }

    /// Removes a space and everything in it; returns when that is durable.
    pub async fn drop_space(&self, space: &Arc<Space>) -> Result<(), EngineError> {
        let (sender, durable) = oneshot::channel();
        space.write_end(Ticket::Barrier(sender)).map_err(|_| EngineError::Unavailable)?;
        self.settled(durable).await?;
        // Everything written before is published by now: what it weighed is known.
        self.live_bytes.fetch_sub(space.live(), Ordering::Relaxed);
        self.spaces.lock().remove(&space.name);
        Ok(())
    }

    async fn settled(&self, durable: oneshot::Receiver<Outcome>) -> Result<(), EngineError> {
        match durable.await {
            Ok(Outcome::Durable) => Ok(()),
            _ => Err(EngineError::Unavailable),
        }
    }

    /// Wins space back now, instead of when it pays. Blocks on the disk.
    pub fn compact(&self) {
        self.compactor.run_now();
    }

    /// Bytes of all objects, and bytes of log on disk.
    pub fn usage(&self) -> (u64, u64) {
        let segments = self.journal.segments().len() as u64;
        (self.live_bytes.load(Ordering::Relaxed), segments * Options::default().segment_bytes)
    }

    /// Writes what is queued, and ends. Blocks on the disk.
    pub fn close(&self) {
        self.compactor.stop();
        self.journal.close();
    }
}

/// A batch is durable, or lost: publish in order, then wake everybody once.
fn commit(tickets: Vec<Ticket>, outcome: Outcome) {
    let mut touched: Vec<(Arc<Space>, Arc<Shelf>)> = Vec::new();
    let mut replies = Vec::with_capacity(tickets.len());
    for ticket in tickets {
        match ticket {
            Ticket::Write { space, shelf, key, version, new, reply } => {
                let published = space.publish(&shelf, &key, version, new, outcome);
                replies.push((reply, published));
                if !touched.iter().any(|(_, known)| Arc::ptr_eq(known, &shelf)) {
                    touched.push((space, shelf));
                }
            }
            Ticket::Barrier(reply) => {
                // Whoever waited is gone.
                let _ = reply.send(outcome);
            }
            Ticket::Nothing => {}
        }
    }
    for (space, shelf) in &touched {
        shelf.announce();
        space.announce();
    }
    for (reply, published) in replies {
        // The request was given up; the write stands.
        let _ = reply.send(published);
    }
}
