//! The writer's thread: take what has gathered, write it, flush once, hand over the tickets.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::error::OpenError;
use crate::frame;
use crate::segment::{self, SegmentId};
use crate::{Options, Outcome, Shared};

pub(crate) struct Writer<T, C> {
    shared: Arc<Shared<T>>,
    options: Options,
    committed: C,
    current: Current,
    prepared: Receiver<io::Result<(SegmentId, File)>>,
}

struct Current {
    id: SegmentId,
    file: File,
    offset: u64,
    /// Files have zeros up to here.
    size: u64,
}

/// A buffer that has grown larger than this gives the rest back.
const KEPT: usize = 1 << 20;

impl<T: Send + 'static, C: FnMut(Vec<T>, Outcome) + Send + 'static> Writer<T, C> {
    pub(crate) fn start(
        shared: Arc<Shared<T>>,
        options: Options,
        first: SegmentId,
        committed: C,
    ) -> Result<JoinHandle<()>, OpenError> {
        let failed = |source| OpenError::io("make a segment in", &shared.dir, source);
        let size = options.segment_bytes;
        // The first one is small, so that starting does not wait for megabytes of zeros.
        let small = size.min(1 << 20);
        let file = segment::prepare(&shared.dir, first, small, options.flush).map_err(failed)?;
        segment::adopt(&shared.dir, first, options.flush).map_err(failed)?;
        shared.record_range(|range| range.newest = first).map_err(failed)?;
        shared.disk.lock().push(first);
        let prepared = keep_one_ready(&shared, &options, first.next()).map_err(failed)?;
        let current = Current { id: first, file, offset: 0, size: small };
        let writer = Self { shared: shared.clone(), options, committed, current, prepared };
        std::thread::Builder::new().name("journal".to_owned()).spawn(move || writer.run()).map_err(failed)
    }

    /// Whatever ends the thread, no writer waits for it afterwards.
    fn run(mut self) {
        // The owner's callback or this code has panicked: what was written is not known to be consistent, so nothing of
        // this is used again but the queue and the callback.
        if catch_unwind(AssertUnwindSafe(|| self.serve())).is_err() {
            tracing::error!(dir = %self.shared.dir.display(), "journal writer panicked; all writes are rejected until restart");
            let failed = catch_unwind(AssertUnwindSafe(|| self.fail(Vec::new())));
            if failed.is_err() {
                tracing::error!("failure callback panicked");
            }
        }
    }

    /// Accepts nothing more, and gives back every ticket as failed.
    fn fail(&mut self, tickets: Vec<T>) {
        let late = {
            let mut queue = self.shared.queue.lock();
            queue.closed = true;
            std::mem::take(&mut queue.tickets)
        };
        (self.committed)(tickets, Outcome::Failed);
        (self.committed)(late, Outcome::Failed);
    }

    fn serve(&mut self) {
        // Two pairs of buffers take turns: one is filled while the other is written.
        let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
        loop {
            bytes.clear();
            bytes.shrink_to(KEPT);
            lengths.clear();
            let (tickets, closed) = {
                let mut queue = self.shared.queue.lock();
                while queue.tickets.is_empty() && !queue.closed {
                    self.shared.wake.wait(&mut queue);
                }
                std::mem::swap(&mut queue.bytes, &mut bytes);
                std::mem::swap(&mut queue.lengths, &mut lengths);
                (std::mem::take(&mut queue.tickets), queue.closed)
            };
            if tickets.is_empty() && closed {
                return;
            }
            match self.write(&mut bytes, &lengths) {
                Ok(()) => (self.committed)(tickets, Outcome::Durable),
                Err(error) => {
                    tracing::error!(%error, dir = %self.shared.dir.display(), "journal write failed; all writes are rejected until restart");
                    self.fail(tickets);
                    return;
                }
            }
        }
    }

    /// Writes frames, as many as fit the segment at once.
    fn write(&mut self, frames: &mut [u8], lengths: &[usize]) -> io::Result<()> {
        let (mut from, mut to) = (0, 0);
        for length in lengths {
            let room = self.current.size.saturating_sub(self.current.offset + (to - from) as u64);
            if room < *length as u64 {
                self.put(frames.get(from..to).unwrap_or_default())?;
                self.turn(*length)?;
                from = to;
            }
            if let Some(frame) = frames.get_mut(to..to + length) {
                frame::seal(frame, self.current.id, from == to);
            }
            to += length;
        }
        self.put(frames.get(from..to).unwrap_or_default())
    }

    fn put(&mut self, frames: &[u8]) -> io::Result<()> {
        if !frames.is_empty() {
            self.current.file.write_all_at(frames, self.current.offset)?;
            if self.options.flush {
                self.current.file.sync_data()?;
            }
            self.current.offset += frames.len() as u64;
        }
        Ok(())
    }

    /// Goes on in the next segment.
    fn turn(&mut self, frame: usize) -> io::Result<()> {
        let gone = || io::Error::other("the thread that prepares segments has ended");
        let (id, file) = self.prepared.recv().map_err(|_| gone())??;
        segment::adopt(&self.shared.dir, id, self.options.flush)?;
        self.shared.record_range(|range| range.newest = id)?;
        self.shared.disk.lock().push(id);
        let size = self.options.segment_bytes.max(frame as u64);
        self.current = Current { id, file, offset: 0, size };
        Ok(())
    }
}

/// Prepares segments ahead on a thread of its own, one at a time: zeros are not written while writers wait.
fn keep_one_ready<T: Send + 'static>(
    shared: &Arc<Shared<T>>,
    options: &Options,
    first: SegmentId,
) -> io::Result<Receiver<io::Result<(SegmentId, File)>>> {
    let (ready, prepared): (SyncSender<_>, _) = sync_channel(0);
    let dir = shared.dir.clone();
    let options = options.clone();
    let prepare = move || {
        let mut id = first;
        loop {
            let file =
                segment::prepare(&dir, id, options.segment_bytes, options.flush).map(|file| (id, file));
            let failed = file.is_err();
            // The writer has ended; no segment is needed.
            if ready.send(file).is_err() || failed {
                return;
            }
            id = id.next();
        }
    };
    std::thread::Builder::new().name("journal-ahead".to_owned()).spawn(prepare)?;
    Ok(prepared)
}
