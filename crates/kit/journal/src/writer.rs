//! The writer's thread: take what has gathered, write it, flush once, hand over the tickets.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::error::OpenError;
use crate::frame::{self, HEADER};
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
        shared.disk.lock().push(first);
        let prepared = keep_one_ready(&shared, &options, first.next()).map_err(failed)?;
        let current = Current { id: first, file, offset: 0, size: small };
        let writer = Self { shared: shared.clone(), options, committed, current, prepared };
        std::thread::Builder::new().name("journal".to_owned()).spawn(move || writer.run()).map_err(failed)
    }

    fn run(mut self) {
        let mut out = Vec::new();
        loop {
            let (bytes, lengths, tickets, closed) = {
                let mut queue = self.shared.queue.lock();
                while queue.tickets.is_empty() && !queue.closed {
                    self.shared.wake.wait(&mut queue);
                }
                let taken = (
                    std::mem::take(&mut queue.bytes),
                    std::mem::take(&mut queue.lengths),
                    std::mem::take(&mut queue.tickets),
                );
                (taken.0, taken.1, taken.2, queue.closed)
            };
            if tickets.is_empty() && closed {
                return;
            }
            match self.write(&bytes, &lengths, &mut out) {
                Ok(()) => (self.committed)(tickets, Outcome::Durable),
                Err(error) => {
                    tracing::error!(%error, dir = %self.shared.dir.display(), "the log cannot be written; no write is accepted any more");
                    let late = {
                        let mut queue = self.shared.queue.lock();
                        queue.closed = true;
                        std::mem::take(&mut queue.tickets)
                    };
                    (self.committed)(tickets, Outcome::Failed);
                    (self.committed)(late, Outcome::Failed);
                    return;
                }
            }
        }
    }

    fn write(&mut self, bytes: &[u8], lengths: &[u32], out: &mut Vec<u8>) -> io::Result<()> {
        out.clear();
        let mut at = 0;
        for length in lengths {
            let end = at + *length as usize;
            let payload = bytes.get(at..end).unwrap_or_default();
            at = end;
            let room = self.current.size.saturating_sub(self.current.offset + out.len() as u64);
            if room < (payload.len() + HEADER) as u64 {
                self.put(out)?;
                self.turn(payload.len())?;
            }
            frame::write(out, self.current.id, payload);
        }
        self.put(out)
    }

    fn put(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        if !out.is_empty() {
            self.current.file.write_all_at(out, self.current.offset)?;
            if self.options.flush {
                self.current.file.sync_data()?;
            }
            self.current.offset += out.len() as u64;
            out.clear();
        }
        Ok(())
    }

    /// Goes on in the next segment.
    fn turn(&mut self, payload: usize) -> io::Result<()> {
        let gone = || io::Error::other("nobody prepares segments any more");
        let (id, file) = self.prepared.recv().map_err(|_| gone())??;
        segment::adopt(&self.shared.dir, id, self.options.flush)?;
        self.shared.disk.lock().push(id);
        let size = self.options.segment_bytes.max((payload + HEADER) as u64);
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
            // Nobody waits any more: the writer has ended.
            if ready.send(file).is_err() || failed {
                return;
            }
            id = id.next();
        }
    };
    std::thread::Builder::new().name("journal-ahead".to_owned()).spawn(prepare)?;
    Ok(prepared)
}
