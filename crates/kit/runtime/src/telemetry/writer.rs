//! Log lines leave through a thread of their own.
//!
//! Writing to stderr blocks when the reader is slow, and a request must never wait for the reader of the logs. So
//! lines are queued, and written many at a time; when the queue is full they are dropped, and the log says how many.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// How many lines may wait.
const QUEUE: usize = 16 * 1024;
/// About how many bytes are written at once.
const CHUNK: usize = 64 * 1024;

enum Message {
    Line(Vec<u8>),
    Flush(SyncSender<()>),
}

/// The queue's entrance; cloning shares it.
#[derive(Debug, Clone)]
pub(super) struct LogWriter {
    queue: SyncSender<Message>,
    lost: Arc<AtomicU64>,
}

impl LogWriter {
    /// Starts the thread. It ends when the last clone is gone.
    pub(super) fn start(to: impl Write + Send + 'static) -> io::Result<Self> {
        let (queue, messages) = sync_channel(QUEUE);
        let lost = Arc::new(AtomicU64::new(0));
        let counter = lost.clone();
        std::thread::Builder::new().name("log".to_owned()).spawn(move || drain(&messages, &counter, to))?;
        Ok(Self { queue, lost })
    }

    /// Waits until everything queued so far is written, but not longer than `limit`.
    pub(super) fn flush(&self, limit: Duration) {
        let (done, written) = sync_channel(1);
        // A full queue or a stuck reader: lines that cannot be written in time are lost without a report.
        if self.queue.try_send(Message::Flush(done)).is_ok() {
            let _ = written.recv_timeout(limit);
        }
    }
}

impl Write for LogWriter {
    /// Takes one whole event: the formatter writes each with one call.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(TrySendError::Full(_)) = self.queue.try_send(Message::Line(line.to_vec())) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for LogWriter {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

fn drain(messages: &Receiver<Message>, lost: &AtomicU64, mut to: impl Write) {
    let mut chunk = Vec::with_capacity(CHUNK);
    while let Ok(first) = messages.recv() {
        let mut flushed = Vec::new();
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Line(line) => chunk.extend_from_slice(&line),
                Message::Flush(done) => flushed.push(done),
            }
            next = if chunk.len() < CHUNK { messages.try_recv().ok() } else { None };
        }
        let missing = lost.swap(0, Ordering::Relaxed);
        if missing > 0 {
            // Writing to a Vec cannot fail.
            let _ =
                writeln!(chunk, "{{\"level\":\"WARN\",\"message\":\"{missing} log lines were lost here\"}}");
        }
        // Without stderr there is no place to report to.
        let _ = to.write_all(&chunk).and_then(|()| to.flush());
        chunk.clear();
        for done in flushed {
            let _ = done.try_send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_come_out_whole_and_in_order() {
        let sink = Sink::default();
        let mut writer = LogWriter::start(sink.clone()).unwrap();
        let lines: Vec<String> = (0..1000).map(|number| format!("line {number}\n")).collect();
        for line in &lines {
            writer.write_all(line.as_bytes()).unwrap();
        }
        LogWriter::flush(&writer, PATIENCE);
        assert_eq!(String::from_utf8(sink.0.lock().unwrap().clone()).unwrap(), lines.concat());
    }

    #[test]
    fn a_stuck_reader_costs_lines_and_never_time() {
        let sink = Sink::default();
        let stuck = sink.0.lock().unwrap();
        let mut writer = LogWriter::start(sink.clone()).unwrap();
        // More than the queue and the chunk being written can hold. If writing could block, this would hang.
        let count = QUEUE + CHUNK;
        for _ in 0..count {
            writer.write_all(b"x\n").unwrap();
        }
        drop(stuck);
        // The queue may still be full; once there is room for the question, it is answered in order.
        let (done, written) = sync_channel(1);
        writer.queue.send(Message::Flush(done)).unwrap();
        written.recv_timeout(PATIENCE).unwrap();
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        let kept = text.lines().filter(|line| *line == "x").count();
        assert!(kept < count);
        assert!(text.contains("log lines were lost here"), "the loss is reported");
    }
}
