//! Compaction of the log: live records of the oldest segment are appended again, then the segment is removed.
//!
//! Oldest first, always: then nothing older can come back when the record of its deletion goes.

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use aro_base::chain;
use aro_journal::{Journal, OpenError, Outcome, SegmentId};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::cluster_store::ClusterStore;
use super::engine::Ticket;
use super::history::HistoryBudget;
use super::record::Record;

type Spaces = Arc<Mutex<HashMap<Box<str>, Arc<ClusterStore>>>>;

/// A thread that compacts the log and expires watch history now and then.
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
    stores: Spaces,
    live_bytes: Arc<AtomicU64>,
    history: Arc<HistoryBudget>,
    segment_bytes: u64,
}

impl Compactor {
    pub(super) fn start(
        journal: Journal<Ticket>,
        stores: Spaces,
        live_bytes: Arc<AtomicU64>,
        history: Arc<HistoryBudget>,
        segment_bytes: u64,
        failed: watch::Sender<bool>,
    ) -> io::Result<Self> {
        let (orders, inbox) = sync_channel(1);
        let worker = Worker { journal, stores, live_bytes, history, segment_bytes };
        let run = move || fail_on_panic(&failed, || worker.run(&inbox));
        let thread = std::thread::Builder::new().name("compact".to_owned()).spawn(run)?;
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

/// Without compaction the log only grows until the disk is full: the process stops instead, and starts over.
fn fail_on_panic(failed: &watch::Sender<bool>, work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        tracing::error!("the compaction of the log panicked");
        failed.send_replace(true);
    }
}

impl Worker {
    fn run(&self, inbox: &Receiver<Order>) {
        loop {
            match inbox.recv_timeout(EVERY) {
                Ok(Order::RunNow(done)) => {
                    self.history.expire();
                    let segments = self.journal.segments();
                    for id in segments.iter().take(segments.len().saturating_sub(1)) {
                        if !self.clean_or_log(*id) {
                            break;
                        }
                    }
                    // The caller is gone.
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.history.expire();
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
                tracing::error!(error = %chain(&error), "journal compaction failed");
                false
            }
        }
    }

    fn clean(&self, id: SegmentId) -> Result<bool, OpenError> {
        let stores: HashMap<u64, Arc<ClusterStore>> =
            self.stores.lock().values().map(|store| (store.id, store.clone())).collect();
        // The segment may hold what is known about cluster stores themselves.
        for store in stores.values() {
            if store.write_self(Ticket::Nothing).is_err() {
                return Ok(false);
            }
            store.mark();
        }
        self.journal.read(id, |bytes| {
            if let Some(Record::Put { store, version, watch_cache, key, .. }) = Record::decode(bytes)
                && let Some(store) = stores.get(&store)
            {
                store.rewrite(watch_cache, key, version);
            }
        })?;
        let (sender, durable) = oneshot::channel();
        // No cluster store has this number: the record says nothing, it only marks the place.
        let (head, body) = Record::Mark { store: 0, version: 0 }.encode();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_compaction_fails_the_storage() {
        let failed = watch::Sender::new(false);
        fail_on_panic(&failed, || ());
        assert!(!*failed.borrow());
        fail_on_panic(&failed, || panic!("a bug"));
        assert!(*failed.borrow());
    }
}
