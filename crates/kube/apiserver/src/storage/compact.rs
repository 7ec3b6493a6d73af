//! Winning back the log's dead space: what is alive in the oldest segment is appended once more, then the segment goes.
//!
//! Oldest first, always: then nothing older can come back when the record of its deletion goes.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use aro_base::chain;
use aro_journal::{Journal, OpenError, Outcome, SegmentId};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::engine::Ticket;
use super::record::Record;
use super::space::Space;

type Spaces = Arc<Mutex<HashMap<Box<str>, Arc<Space>>>>;

/// A thread that looks after the log now and then.
#[derive(Debug)]
pub(super) struct Compactor {
    orders: SyncSender<Order>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Order {
    RunNow(SyncSender<()>),
    Stop,
}

/// Segments that may be dead before compaction is worth it.
const SPARE: u64 = 4;

/// One look for the whole process, not one per cluster.
const EVERY: Duration = Duration::from_secs(5);

struct Worker {
    journal: Journal<Ticket>,
    spaces: Spaces,
    live_bytes: Arc<AtomicU64>,
    segment_bytes: u64,
}

impl Compactor {
    pub(super) fn start(
        journal: Journal<Ticket>,
        spaces: Spaces,
        live_bytes: Arc<AtomicU64>,
        segment_bytes: u64,
    ) -> io::Result<Self> {
        let (orders, inbox) = sync_channel(1);
        let worker = Worker { journal, spaces, live_bytes, segment_bytes };
        let thread =
            std::thread::Builder::new().name("compact".to_owned()).spawn(move || worker.run(&inbox))?;
        Ok(Self { orders, thread: Mutex::new(Some(thread)) })
    }

    pub(super) fn run_now(&self) {
        let (done, wait) = sync_channel(1);
        // A compactor that has stopped has nothing to do.
        if self.orders.send(Order::RunNow(done)).is_ok() {
            let _ = wait.recv();
        }
    }

    pub(super) fn stop(&self) {
        let _ = self.orders.send(Order::Stop);
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

impl Worker {
    fn run(&self, inbox: &Receiver<Order>) {
        loop {
            match inbox.recv_timeout(EVERY) {
                Ok(Order::RunNow(done)) => {
                    let segments = self.journal.segments();
                    for id in segments.iter().take(segments.len().saturating_sub(1)) {
                        if !self.clean_or_log(*id) {
                            break;
                        }
                    }
                    // Whoever asked has gone.
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => {
                    while let Some(oldest) = self.worth_it() {
                        if !self.clean_or_log(oldest) {
                            break;
                        }
                    }
                }
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn worth_it(&self) -> Option<SegmentId> {
        let segments = self.journal.segments();
        let live = self.live_bytes.load(Ordering::Relaxed) / self.segment_bytes + 1;
        let oldest = segments.first().copied()?;
        (segments.len() as u64 > live * 2 + SPARE).then_some(oldest)
    }

    fn clean_or_log(&self, id: SegmentId) -> bool {
        match self.clean(id) {
            Ok(done) => done,
            Err(error) => {
                tracing::error!(error = %chain(&error), "the log's oldest segment could not be cleaned");
                false
            }
        }
    }

    fn clean(&self, id: SegmentId) -> Result<bool, OpenError> {
        let spaces: HashMap<u64, Arc<Space>> =
            self.spaces.lock().values().map(|space| (space.id, space.clone())).collect();
        // The segment may hold what is known about spaces themselves.
        for space in spaces.values() {
            if space.write_self(Ticket::Nothing).is_err() {
                return Ok(false);
            }
            space.mark();
        }
        self.journal.read(id, |bytes| {
            if let Some(Record::Put { space, version, shelf, key, .. }) = Record::decode(bytes)
                && let Some(space) = spaces.get(&space)
            {
                space.rewrite(shelf, key, version);
            }
        })?;
        let (sender, durable) = oneshot::channel();
        // No space has this number: the record says nothing, it only marks the place.
        let (head, body) = Record::Mark { space: 0, version: 0 }.encode();
        if self.journal.append(&[&head, body], Ticket::Barrier(sender)).is_err() {
            return Ok(false);
        }
        if durable.blocking_recv() != Ok(Outcome::Durable) {
            return Ok(false);
        }
        self.journal.remove(id)?;
        Ok(true)
    }
}
