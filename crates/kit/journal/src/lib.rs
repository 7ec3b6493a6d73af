//! A durable log with group commit, for state that lives in memory.
//!
//! What it is: an ordered sequence of opaque records in segment files. [`Journal::append`] puts a record in the
//! queue and returns; one thread writes whatever has gathered, flushes once, and hands the tickets of all those records
//! to the owner, in order. The more writers, the larger the batch: the flush is paid once for all.
//!
//! What it is not: an index. The owner holds the state; after a start it gets every record back in order.
//! Space is won back by the owner, too: it re-appends what is still alive in the oldest segment, and removes it
//! (see [`Journal::read`] and [`Journal::remove`]).
//!
//! Invariants:
//! - A ticket is handed over as durable only after its record and all before it are flushed.
//! - After a crash, exactly a prefix of what was appended comes back, at least as long as what was handed over.
//! - After a failed write or flush nothing more is accepted: what is on disk is no longer known (ADR 0040). The same holds
//!   after a panic on the writer's thread; tickets that it held are dropped, all others come back as failed.
//! - Damage to records that were acknowledged, or a lost segment, is an error of [`Journal::open`], never an early end.
//! - One process at a time: the directory is locked.

mod error;
mod frame;
mod range;
mod segment;
mod writer;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

pub use error::OpenError;
use range::Range;
pub use segment::SegmentId;
use writer::Writer;

/// How the log is kept.
#[derive(Debug, Clone)]
pub struct Options {
    /// Size of a segment file. A record larger than this gets a segment of its own.
    pub segment_bytes: u64,
    /// Flush to disk before a record counts as durable. Switch off only for data that may be lost.
    pub flush: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { segment_bytes: 32 << 20, flush: true }
    }
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// On disk.
    Durable,
    /// Perhaps on disk, perhaps not: the log is broken and takes nothing more.
    Failed,
}

/// The log takes nothing more: it failed, or it was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the log takes no more records")]
pub struct Closed;

/// A handle to the log; clones share it.
#[derive(Debug)]
pub struct Journal<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Clone for Journal<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

#[derive(Debug)]
struct Shared<T> {
    dir: PathBuf,
    flush: bool,
    queue: Mutex<Queue<T>>,
    wake: Condvar,
    disk: Mutex<Vec<SegmentId>>,
    /// What the file beside the segments names; written by the writer and by the remover.
    range: Mutex<Range>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Held for as long as the log is open.
    lock: File,
}

/// What waits for the writer.
#[derive(Debug)]
struct Queue<T> {
    /// Frames one after another, their headers still to be filled in; [`Queue::lengths`] tells them apart.
    bytes: Vec<u8>,
    /// Of each frame, header included.
    lengths: Vec<usize>,
    tickets: Vec<T>,
    closed: bool,
}

impl<T> Shared<T> {
    /// Changes the range, and returns when the change is on disk.
    fn record_range(&self, change: impl FnOnce(&mut Range)) -> std::io::Result<()> {
        let mut range = self.range.lock();
        change(&mut range);
        range.write(&self.dir)
    }
}

impl<T: Send + 'static> Journal<T> {
    /// Opens or makes a log. `replay` gets every record that survived, in order. From then on `committed` gets the
    /// tickets of each batch, on the writer's thread.
    pub fn open(
        dir: &Path,
        options: Options,
        mut replay: impl FnMut(&[u8]),
        committed: impl FnMut(Vec<T>, Outcome) + Send + 'static,
    ) -> Result<Self, OpenError> {
        segment::make_dir(dir)?;
        let lock = segment::lock(dir)?;
        let found = segment::list(dir)?;
        if let Some(range) = Range::read(dir)? {
            range.check(dir, &found)?;
        }
        for (index, id) in found.iter().enumerate() {
            let last = index + 1 == found.len();
            segment::replay(dir, *id, last, &mut replay)?;
        }
        let next = found.last().map_or(SegmentId::FIRST, |id| id.next());
        let shared = Arc::new(Shared {
            dir: dir.to_owned(),
            flush: options.flush,
            queue: Mutex::new(Queue {
                bytes: Vec::new(),
                lengths: Vec::new(),
                tickets: Vec::new(),
                closed: false,
            }),
            wake: Condvar::new(),
            range: Mutex::new(Range { oldest: found.first().copied().unwrap_or(next), newest: next }),
            disk: Mutex::new(found),
            thread: Mutex::new(None),
            lock,
        });
        let writer = Writer::start(shared.clone(), options, next, committed)?;
        *shared.thread.lock() = Some(writer);
        Ok(Self { shared })
    }

    /// Puts a record (the parts one after another) at the end. The ticket comes back when it is durable.
    ///
    /// Order of calls is order in the log: a caller that needs an order holds a lock of its own around this.
    pub fn append(&self, parts: &[&[u8]], ticket: T) -> Result<(), (Closed, T)> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if length > frame::LONGEST {
            return Err((Closed, ticket));
        }
        let mut queue = self.shared.queue.lock();
        if queue.closed {
            return Err((Closed, ticket));
        }
        queue.bytes.extend_from_slice(&[0; frame::HEADER]);
        for part in parts {
            queue.bytes.extend_from_slice(part);
        }
        queue.lengths.push(frame::HEADER + length);
        queue.tickets.push(ticket);
        drop(queue);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// The segments on disk, oldest first. The last one is being written.
    pub fn segments(&self) -> Vec<SegmentId> {
        self.shared.disk.lock().clone()
    }

    /// Reads the records of a segment that is no longer written. Blocks on the disk.
    pub fn read(&self, id: SegmentId, mut record: impl FnMut(&[u8])) -> Result<(), OpenError> {
        segment::replay(&self.shared.dir, id, false, &mut record)
    }

    /// Removes the oldest segment, which holds nothing alive any more. Blocks on the disk.
    pub fn remove(&self, id: SegmentId) -> Result<(), OpenError> {
        let segments = self.segments();
        // The last one is being written.
        if segments.first() != Some(&id) || segments.len() < 2 {
            return Err(OpenError::NotOldest { dir: self.shared.dir.clone(), number: id.number() });
        }
        // One that could not be removed is still the oldest on disk, and the next start reads it.
        let range = self.shared.record_range(|range| range.oldest = id.next());
        range.map_err(|source| OpenError::io("write the range of", &self.shared.dir, source))?;
        segment::remove(&self.shared.dir, id, self.shared.flush)?;
        self.shared.disk.lock().retain(|known| *known != id);
        Ok(())
    }

    /// Writes what is queued and ends the writer. Blocks.
    pub fn close(&self) {
        self.shared.queue.lock().closed = true;
        self.shared.wake.notify_one();
        let thread = self.shared.thread.lock().take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("journal writer had panicked");
        }
        // Another log may be opened here as soon as this one is closed, however many handles are left.
        if let Err(error) = self.shared.lock.unlock() {
            tracing::warn!(%error, "the log's directory could not be unlocked");
        }
    }
}

#[cfg(test)]
mod tests;
