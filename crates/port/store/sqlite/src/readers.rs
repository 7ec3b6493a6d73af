//! The reader threads: each owns a read-only connection and runs whatever read comes next.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use aro_store::StoreError;
use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use crate::OpenError;
use crate::error::{closed, store_error};
use crate::schema::open_reader;

/// A read, or the word to stop.
pub(crate) enum Read {
    Run(Box<dyn FnOnce(&mut Connection) + Send>),
    Stop,
}

/// Hands reads to the threads.
pub(crate) struct Readers {
    jobs: Sender<Read>,
    places: Arc<Semaphore>,
    limit: usize,
}

impl Readers {
    pub(crate) fn start(
        file: &Path,
        threads: usize,
        queue: usize,
    ) -> Result<(Self, Vec<JoinHandle<()>>), OpenError> {
        let (jobs, queued) = std::sync::mpsc::channel();
        let queued = Arc::new(Mutex::new(queued));
        let mut handles = Vec::new();
        for n in 0..threads.max(1) {
            let connection = open_reader(file)?;
            let queued = Arc::clone(&queued);
            let thread = std::thread::Builder::new()
                .name(format!("store-reader-{n}"))
                .spawn(move || run(connection, &queued))
                .map_err(OpenError::Thread)?;
            handles.push(thread);
        }
        Ok((Self { jobs, places: Arc::new(Semaphore::new(queue)), limit: queue }, handles))
    }

    /// Runs a read on some thread, inside one read transaction: it sees a single commit.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| closed())?;
        let (reply, answer) = oneshot::channel();
        let job = move |connection: &mut Connection| {
            drop(place);
            let result = connection.transaction().map_err(store_error).and_then(|snapshot| read(&snapshot));
            let _ = reply.send(result);
        };
        self.jobs.send(Read::Run(Box::new(job))).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    pub(crate) fn waiting(&self) -> usize {
        self.limit - self.places.available_permits()
    }

    pub(crate) fn stop(&self, threads: usize) {
        for _ in 0..threads {
            // An error means that they are gone already.
            let _ = self.jobs.send(Read::Stop);
        }
    }
}

fn run(mut connection: Connection, queued: &Mutex<Receiver<Read>>) {
    loop {
        let next = queued.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(Read::Run(read)) => read(&mut connection),
            Ok(Read::Stop) | Err(_) => return,
        }
    }
}
