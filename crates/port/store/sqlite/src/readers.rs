//! The reader threads: each owns a read-only connection and runs whatever read comes next.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use aro_store::StoreError;
use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use crate::OpenError;
use crate::error::closed;
use crate::schema::open_reader;

type Read = Box<dyn FnOnce(&mut Connection) + Send>;

/// Reads waiting for a thread. A busy thread takes the next one without ever sleeping, so under load no thread has
/// to be woken.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Default)]
struct State {
    reads: VecDeque<Read>,
    idle: usize,
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, read: Read) -> Result<(), StoreError> {
        let mut state = self.lock();
        if state.closed {
            return Err(closed());
        }
        state.reads.push_back(read);
        if state.idle > 0 {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// The next read; `None` when closed and empty.
    fn pop(&self) -> Option<Read> {
        let mut state = self.lock();
        loop {
            if let Some(read) = state.reads.pop_front() {
                return Some(read);
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

/// Hands reads to the threads.
pub(crate) struct Readers {
    queue: Arc<Queue>,
    places: Arc<Semaphore>,
    limit: usize,
}

impl Readers {
    pub(crate) fn start(
        file: &Path,
        threads: usize,
        limit: usize,
    ) -> Result<(Self, Vec<JoinHandle<()>>), OpenError> {
        let queue = Arc::new(Queue::default());
        let mut handles = Vec::new();
        for n in 0..threads.max(1) {
            let mut connection = open_reader(file)?;
            let queue = Arc::clone(&queue);
            let serve = move || {
                while let Some(read) = queue.pop() {
                    // Its caller is answered by the reply that is dropped. The others need the thread: without threads
                    // they would wait for ever.
                    if catch_unwind(AssertUnwindSafe(|| read(&mut connection))).is_err() {
                        tracing::error!("a read of the store panicked");
                    }
                }
            };
            let thread = std::thread::Builder::new().name(format!("store-reader-{n}")).spawn(serve);
            handles.push(thread.map_err(OpenError::Thread)?);
        }
        Ok((Self { queue, places: Arc::new(Semaphore::new(limit)), limit }, handles))
    }

    /// Runs a read on some thread.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| closed())?;
        let (reply, answer) = oneshot::channel();
        self.queue.push(Box::new(move |connection| {
            drop(place);
            // The caller of the read may be gone.
            if !reply.is_closed() {
                let _ = reply.send(read(connection));
            }
        }))?;
        answer.await.map_err(|_| closed())?
    }

    pub(crate) fn waiting(&self) -> usize {
        self.limit - self.places.available_permits()
    }

    /// Lets the threads finish what is queued, then end.
    pub(crate) fn stop(&self) {
        self.queue.lock().closed = true;
        self.queue.filled.notify_all();
    }
}
