//! What containers say: a bounded number of the last lines of each run, kept in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use aro_base::{SharedClock, Timestamp};
use aro_kube_node_api::LogOptions;
use aro_runtime::telemetry::capture::LogSink;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The log of one run of a container.
pub struct Log {
    clock: SharedClock,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    lines: VecDeque<Line>,
    /// How many lines were dropped from the front.
    dropped: u64,
    bytes: usize,
    closed: bool,
}

#[derive(Clone)]
struct Line {
    at: Timestamp,
    text: Arc<str>,
}

/// What is kept of one run.
const KEPT: usize = 1 << 20;
/// Lines in one chunk of an answer.
const CHUNK: usize = 256;

impl LogSink for Log {
    fn line(&self, text: &str) {
        let at = self.clock.now();
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        // The time is part of the line: a collector of log files has nothing else.
        let text: Arc<str> = format!("{} {text}", stamp(at)).into();
        state.bytes += text.len();
        state.lines.push_back(Line { at, text });
        while state.bytes > KEPT {
            let Some(line) = state.lines.pop_front() else { break };
            state.bytes -= line.text.len();
            state.dropped += 1;
        }
        drop(state);
        self.changed.notify_waiters();
    }
}

fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

impl Log {
    pub fn new(clock: SharedClock) -> Arc<Self> {
        Arc::new(Self { clock, state: Mutex::default(), changed: Notify::new() })
    }

    /// The run is over: nothing more comes.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_waiters();
    }

    /// The lines that are asked for, and, when following, those that come.
    pub fn read(self: &Arc<Self>, options: &LogOptions) -> BoxStream<'static, Bytes> {
        let cursor = Cursor {
            log: self.clone(),
            next: self.first(options),
            options: options.clone(),
            left: options.limit,
        };
        stream::unfold(cursor, |mut cursor| async move { cursor.next().await.map(|bytes| (bytes, cursor)) })
            .boxed()
    }

    /// The number of the first line that is asked for.
    fn first(&self, options: &LogOptions) -> u64 {
        let state = self.state.lock();
        let wanted = |line: &Line| options.since.is_none_or(|since| line.at >= since);
        let since = state.lines.iter().position(wanted).unwrap_or(state.lines.len());
        let tail = options.tail.map_or(0, |tail| state.lines.len().saturating_sub(tail));
        state.dropped + since.max(tail) as u64
    }
}

struct Cursor {
    log: Arc<Log>,
    next: u64,
    options: LogOptions,
    left: Option<usize>,
}

impl Cursor {
    async fn next(&mut self) -> Option<Bytes> {
        if self.left == Some(0) {
            return None;
        }
        loop {
            let log = self.log.clone();
            let changed = log.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (lines, closed) = self.take();
            if !lines.is_empty() {
                return Some(self.cut(self.show(&lines)));
            }
            if closed || !self.options.follow {
                return None;
            }
            changed.await;
        }
    }

    fn take(&mut self) -> (Vec<Line>, bool) {
        let state = self.log.state.lock();
        // A reader that is too slow misses lines and goes on with what is there.
        let next = self.next.max(state.dropped);
        let skip = usize::try_from(next - state.dropped).unwrap_or(usize::MAX);
        let lines: Vec<Line> = state.lines.iter().skip(skip).take(CHUNK).cloned().collect();
        self.next = next + lines.len() as u64;
        (lines, state.closed)
    }

    fn show(&self, lines: &[Line]) -> Vec<u8> {
        let mut text = String::new();
        for line in lines {
            if self.options.timestamps {
                text.push_str(&line.at.strftime("%Y-%m-%dT%H:%M:%S%.9fZ ").to_string());
            }
            text.push_str(&line.text);
            text.push('\n');
        }
        text.into_bytes()
    }

    fn cut(&mut self, mut bytes: Vec<u8>) -> Bytes {
        if let Some(left) = &mut self.left {
            bytes.truncate(*left);
            *left -= bytes.len();
        }
        bytes.into()
    }
}

/// The log of a container that only pretends: what there is to say about it.
pub fn pretended(
    lines: &[(Timestamp, String)],
    options: &LogOptions,
    clock: &SharedClock,
) -> BoxStream<'static, Bytes> {
    let log = Log::new(clock.clone());
    let mut state = log.state.lock();
    for (at, text) in lines {
        state.lines.push_back(Line { at: *at, text: format!("{} {text}", stamp(*at)).into() });
    }
    drop(state);
    log.read(options)
}

#[cfg(test)]
mod tests {
    use aro_base::{ManualClock, SignedDuration};

    use super::*;

    async fn all(stream: BoxStream<'static, Bytes>) -> Vec<String> {
        let bytes: Vec<Bytes> = stream.collect().await;
        String::from_utf8(bytes.concat()).unwrap().lines().map(|line| line[28..].to_owned()).collect()
    }

    fn log() -> (Arc<Log>, Arc<ManualClock>) {
        let clock = ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
        let log = Log::new(clock.clone());
        for number in 0..5 {
            log.line(&number.to_string());
            clock.advance(SignedDuration::from_secs(1));
        }
        (log, clock)
    }

    #[tokio::test]
    async fn only_what_is_asked_for_is_shown() {
        let (log, _) = log();
        let read = |options: LogOptions| all(log.read(&options));
        assert_eq!(read(LogOptions::default()).await, ["0", "1", "2", "3", "4"]);
        assert_eq!(read(LogOptions { tail: Some(2), ..Default::default() }).await, ["3", "4"]);
        assert!(read(LogOptions { tail: Some(0), ..Default::default() }).await.is_empty());
        let since = Some("2026-01-01T00:00:02Z".parse().unwrap());
        assert_eq!(read(LogOptions { since, ..Default::default() }).await, ["2", "3", "4"]);
        assert_eq!(read(LogOptions { since, tail: Some(9), ..Default::default() }).await, ["2", "3", "4"]);
        let cut: Vec<Bytes> = log.read(&LogOptions { limit: Some(10), ..Default::default() }).collect().await;
        assert_eq!(cut.concat(), b"2026-01-01");
        let stamped: Vec<Bytes> =
            log.read(&LogOptions { tail: Some(1), timestamps: true, ..Default::default() }).collect().await;
        assert_eq!(stamped.concat(), b"2026-01-01T00:00:04.000000000Z 2026-01-01T00:00:04.000000Z 4\n");
    }

    #[tokio::test]
    async fn following_goes_on_until_the_run_ends() {
        let (log, _) = log();
        let mut following = log.read(&LogOptions { follow: true, tail: Some(1), ..Default::default() });
        assert!(following.next().await.unwrap().ends_with(b"4\n"));
        let later = {
            let log = log.clone();
            async move {
                log.line("5");
                log.close();
            }
        };
        let (line, ()) = tokio::join!(following.next(), later);
        assert!(line.unwrap().ends_with(b"5\n"));
        assert!(following.next().await.is_none());
        log.line("after the end");
        assert_eq!(all(log.read(&LogOptions::default())).await.len(), 6);
    }

    #[tokio::test]
    async fn old_lines_are_dropped_and_slow_readers_go_on() {
        let (log, _) = log();
        let mut slow = log.read(&LogOptions::default());
        for _ in 0..3000 {
            log.line(&"x".repeat(1000));
        }
        assert!(log.state.lock().bytes <= KEPT);
        assert!(slow.next().await.unwrap().ends_with(b"x\n"));
    }
}
