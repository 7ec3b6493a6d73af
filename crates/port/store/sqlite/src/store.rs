//! The store itself: hands work to its threads.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use aro_base::SharedClock;
use aro_store::adapter::{Place, Signals};
use aro_store::{
    Batch, ChangePage, ChangeSignal, Container, Cursor, DocKey, Document, DocumentStore, Page, Paged, Query,
    Slice, StoreError, Written,
};
use async_trait::async_trait;
use tokio::sync::{Semaphore, oneshot};

use crate::cache::{Cache, Lookup};
use crate::error::{closed, store_error};
use crate::failure::Failure;
use crate::faults::Faults;
use crate::lock::DirLock;
use crate::names::Names;
use crate::readers::Readers;
use crate::stats::{Counters, StoreStats};
use crate::tail::Tail;
use crate::writer::{Job, Shared, Writer};
use crate::{OpenError, SqliteOptions, read, schema, slices};

/// Wake-ups are never lost here; looking now and then keeps consumers honest about spurious ones.
const NOW_AND_THEN: Duration = Duration::from_secs(30);

/// A document store in one directory. Share it as `Arc`; dropping the last one stops its threads.
pub struct SqliteStore {
    shared: Arc<Shared>,
    clock: SharedClock,
    life: Arc<str>,
    writes: Sender<Job>,
    write_places: Arc<Semaphore>,
    queue: usize,
    readers: Readers,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl SqliteStore {
    /// Takes the directory, brings the schema up to date and starts the threads. Blocks for the time of a few
    /// file operations.
    pub fn open(options: SqliteOptions, clock: SharedClock) -> Result<Arc<Self>, OpenError> {
        let lock = DirLock::take(&options.path)?;
        let file = options.path.join("store.db");
        let connection = schema::open_writer(&file)?;
        let life: String = connection.query_row("SELECT id FROM life", [], |row| row.get(0))?;
        let shared = Arc::new(Shared {
            cache: Cache::new(options.cache_bytes),
            tail: Tail::default(),
            signals: Signals::new(NOW_AND_THEN),
            counters: Counters::default(),
            checkpoints: Arc::default(),
            failure: Failure::default(),
            faults: Faults::default(),
        });
        let queue = options.queue.max(1);
        let (readers, mut threads) = Readers::start(&file, options.readers, queue)?;
        let (writes, jobs) = std::sync::mpsc::channel();
        let writer = Writer {
            connection,
            names: Names::default(),
            shared: Arc::clone(&shared),
            clock: Arc::clone(&clock),
            options,
            _lock: lock,
        };
        threads.push(writer.start(jobs)?);
        threads.push(shared.checkpoints.start(&file, Arc::clone(&shared))?);
        Ok(Arc::new(Self {
            shared,
            clock,
            life: life.into(),
            writes,
            write_places: Arc::new(Semaphore::new(queue)),
            queue,
            readers,
            threads: Mutex::new(threads),
        }))
    }

    /// What it did so far; for metrics.
    pub fn stats(&self) -> StoreStats {
        StoreStats {
            write_queue: (self.queue - self.write_places.available_permits()) as u64,
            read_queue: self.readers.waiting() as u64,
            cache_bytes: self.shared.cache.bytes() as u64,
            ..self.shared.counters.snapshot()
        }
    }

    /// Removes everything expired, and tombstones past their time, now. Returns how many rows went.
    pub async fn sweep(&self) -> Result<usize, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.shared.failure.check()?;
        self.writes.send(Job::Sweep { reply }).map_err(|_| self.gone())?;
        answer.await.map_err(|_| self.gone())?
    }

    /// Returns when the store takes no more writes until the process starts again, with the reason.
    pub async fn failed(&self) -> String {
        self.shared.failure.wait().await.to_string()
    }

    /// The error for a call whose thread has ended.
    fn gone(&self) -> StoreError {
        self.shared.failure.check().err().unwrap_or_else(closed)
    }

    /// Finishes what is queued, stops the threads and lets go of the directory. Calls after it fail with
    /// `Unavailable`. Blocks until the last commit is done; dropping the store does the same.
    pub fn close(&self) {
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        if threads.is_empty() {
            return;
        }
        self.readers.stop();
        // An error means that the writer is gone already.
        let _ = self.writes.send(Job::Stop);
        self.shared.checkpoints.stop();
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a store thread panicked");
            }
        }
    }
}

#[cfg(test)]
impl SqliteStore {
    pub(crate) fn faults(&self) -> &crate::faults::planned::Planned {
        &self.shared.faults.planned
    }

    pub(crate) async fn read_that_panics(&self) -> Result<(), StoreError> {
        self.readers.run(|_| -> Result<(), StoreError> { panic!("a bug of a read") }).await
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.close();
    }
}

#[async_trait]
impl DocumentStore for SqliteStore {
    async fn get(&self, key: &DocKey) -> Result<Option<Document>, StoreError> {
        let now = self.clock.now();
        let ticket = match self.shared.cache.get(key, now) {
            Lookup::Hit(found) => {
                Counters::add(&self.shared.counters.cache_hits, 1);
                // A hit waits for nothing; a loop of them must still let other tasks run.
                tokio::task::coop::consume_budget().await;
                return Ok(found);
            }
            Lookup::Miss(ticket) => ticket,
        };
        Counters::add(&self.shared.counters.cache_misses, 1);
        let (shared, key) = (Arc::clone(&self.shared), key.clone());
        self.readers
            .run(move |connection| {
                let found = read::get(connection, &key, now)?;
                shared.cache.offer(&key, found.as_ref(), ticket);
                Ok(found)
            })
            .await
    }

    async fn write(&self, batch: Batch) -> Result<Vec<Written>, StoreError> {
        batch.check().map_err(StoreError::Batch)?;
        let place = Arc::clone(&self.write_places).acquire_owned().await.map_err(|_| closed())?;
        self.shared.failure.check()?;
        let (reply, answer) = oneshot::channel();
        self.writes.send(Job::Write { batch, reply, _place: place }).map_err(|_| self.gone())?;
        answer.await.map_err(|_| self.gone())?
    }

    async fn query(&self, query: &Query, page: Page) -> Result<Paged, StoreError> {
        let (query, now) = (query.clone(), self.clock.now());
        self.readers.run(move |connection| read::query(connection, &query, &page, now)).await
    }

    async fn slice(&self, query: &Query, slice: &Slice) -> Result<Vec<Document>, StoreError> {
        let (query, slice, now) = (query.clone(), slice.clone(), self.clock.now());
        self.readers.run(move |connection| slices::slice(connection, &query, &slice, now)).await
    }

    async fn count(&self, query: &Query) -> Result<u64, StoreError> {
        let (query, now) = (query.clone(), self.clock.now());
        self.readers.run(move |connection| slices::count(connection, &query, now)).await
    }

    async fn changes(
        &self,
        container: Container,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<ChangePage, StoreError> {
        let now = self.clock.now();
        if let Some(cursor) = after {
            let place = Place::read(cursor, &self.life, container)?;
            if let Some(page) = self.shared.tail.after(container, place, limit, now) {
                // Waits for nothing, as a hit of the cache does.
                tokio::task::coop::consume_budget().await;
                return Ok(page.into_change_page(cursor, &self.life, container));
            }
        }
        let (after, life) = (after.cloned(), Arc::clone(&self.life));
        self.readers
            .run(move |connection| read::changes(connection, container, after.as_ref(), limit, &life, now))
            .await
    }

    async fn latest_cursor(&self, container: Container) -> Result<Cursor, StoreError> {
        let life = Arc::clone(&self.life);
        self.readers.run(move |connection| read::latest(connection, container, &life)).await
    }

    fn subscribe(&self, container: Container) -> Box<dyn ChangeSignal> {
        self.shared.signals.subscribe(container)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.shared.failure.check()?;
        self.readers
            .run(|connection| connection.query_row("SELECT 1", [], |_| Ok(())).map_err(store_error))
            .await
    }
}
