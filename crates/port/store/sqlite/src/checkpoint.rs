//! Moves pages from the write-ahead log into the database, beside the writer.
//!
//! Left to SQLite this happens inside a commit, which then takes a hundred milliseconds for everybody waiting. A
//! thread of its own copies all along; but under steady load the log's end runs ahead of it, and only a log that was
//! copied to its end can be started over. So when the log gets long the writer copies the short rest itself.
//!
//! SQLite flushes the database file only after a copy that reached the end. The thread therefore flushes it after
//! each of its own, or the writer's short rest would have to wait for everything copied since the last time.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use aro_base::chain;
use rusqlite::{Connection, OpenFlags};

use crate::failure::{Failure, is_fatal};
use crate::faults::Point;
use crate::writer::Shared;
use crate::{OpenError, schema};

/// How long commits gather before the thread copies: pages written several times are then copied once.
const PAUSE: Duration = Duration::from_millis(300);

/// How many pages of 4 KiB the log may have before the writer sees to it that it starts over.
const LONG: i64 = 48_000;

#[derive(Default)]
struct State {
    dirty: bool,
    stop: bool,
}

/// Shared by the writer and the thread.
#[derive(Default)]
pub(crate) struct Checkpoints {
    state: Mutex<State>,
    bell: Condvar,
    /// The length of the log when last looked at.
    pages: AtomicI64,
}

impl Checkpoints {
    /// Starts the thread.
    pub(crate) fn start(
        self: &Arc<Self>,
        file: &Path,
        store: Arc<Shared>,
    ) -> Result<JoinHandle<()>, OpenError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags)?;
        connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA cache_size = -256;")?;
        // Lives as long as the thread: closing any handle of a file drops the locks that SQLite holds on it.
        let database = File::open(file).map_err(OpenError::Thread)?;
        let shared = Arc::clone(self);
        std::thread::Builder::new()
            .name("store-checkpoint".to_owned())
            .spawn(move || {
                if catch_unwind(AssertUnwindSafe(|| shared.run(&connection, &database, &store))).is_err() {
                    store.failure.report("its checkpoint thread panicked");
                }
                if store.failure.has_failed() {
                    schema::keep_log(&connection);
                }
            })
            .map_err(OpenError::Thread)
    }

    /// Tells that something was committed.
    pub(crate) fn committed(&self) {
        let mut state = self.lock();
        if !state.dirty {
            state.dirty = true;
            self.bell.notify_one();
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.bell.notify_one();
    }

    /// Called by the writer between transactions.
    pub(crate) fn keep_short(&self, connection: &Connection, failure: &Failure) {
        if self.pages.load(Relaxed) > LONG {
            // Not worth failing a write for; the next look at the log brings us here again.
            self.pages.store(0, Relaxed);
            let _ = copy(connection, "PRAGMA wal_checkpoint(RESTART)", failure);
        }
    }

    fn run(&self, connection: &Connection, database: &File, store: &Shared) {
        loop {
            let mut state = self.lock();
            while !state.dirty && !state.stop {
                state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let pause = self.bell.wait_timeout_while(state, PAUSE, |state| !state.stop);
            let (mut state, _) = pause.unwrap_or_else(PoisonError::into_inner);
            if state.stop {
                return;
            }
            state.dirty = false;
            drop(state);
            if store.failure.has_failed() {
                return;
            }
            let copied = copy(connection, "PRAGMA wal_checkpoint(PASSIVE)", &store.failure);
            let flushed = if store.faults.hit(Point::CheckpointFlush) {
                Err(io::Error::other("injected by a test"))
            } else {
                database.sync_data()
            };
            if let Err(error) = flushed {
                // A later flush may succeed without these pages. The log, which still has them, must not start over.
                store.failure.report(&format!("flush the database file: {}", chain(&error)));
                return;
            }
            // Reported last: now the rest is short, and the writer's copy does not have to wait for this one.
            if let Ok(pages) = copied {
                self.pages.store(pages, Relaxed);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Copies what can be copied; returns the length of the log.
fn copy(connection: &Connection, sql: &str, failure: &Failure) -> rusqlite::Result<i64> {
    connection.query_row(sql, [], |row| row.get(1)).inspect_err(|error| {
        tracing::warn!(error = %chain(error), "a checkpoint of the store failed");
        if is_fatal(error) {
            failure.report(&format!("copy the write-ahead log: {}", chain(error)));
        }
    })
}
