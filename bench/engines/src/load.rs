//! The load: writers that wait for each of their writes, alone or through one committer.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::engine::{Engine, Failure, Write};

pub const VALUE: usize = 1024;
/// How many writes a committer takes together.
const GROUP: usize = 1024;

/// Numbers that look random and are the same in every run. Compression gains nothing on them.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn value(&mut self) -> Vec<u8> {
        (0..VALUE / 8).flat_map(|_| self.next().to_be_bytes()).collect()
    }
}

/// Writes all keys in order, `rounds` times, many together. Stops at the limit; returns how many it wrote.
pub fn fill(engine: &dyn Engine, keys: u64, rounds: u64, limit: Duration) -> Result<u64, Failure> {
    let started = Instant::now();
    let mut numbers = Numbers::new(7);
    let mut written = 0;
    for _ in 0..rounds {
        let mut key = 0;
        while key < keys && started.elapsed() < limit {
            let until = keys.min(key + 500);
            let batch: Vec<Write> = (key..until).map(|key| Write { key, value: numbers.value() }).collect();
            engine.commit(&batch)?;
            written += until - key;
            key = until;
        }
    }
    Ok(written)
}

/// What writers saw.
pub struct Seen {
    pub writes: usize,
    pub seconds: f64,
    /// How long each write took, sorted.
    pub waits: Vec<Duration>,
}

impl Seen {
    pub fn quantile(&self, part: f64) -> Duration {
        let index = ((self.waits.len() as f64 * part) as usize).min(self.waits.len().saturating_sub(1));
        self.waits.get(index).copied().unwrap_or_default()
    }
}

type Asked = (Write, SyncSender<()>);

/// Overwrites random keys for some time.
pub fn overwrite(
    engine: &Arc<dyn Engine>,
    keys: u64,
    writers: u64,
    batched: bool,
    length: Duration,
) -> Result<Seen, Failure> {
    let (ask, asked) = channel::<Asked>();
    let committer = batched.then(|| {
        let engine = engine.clone();
        thread::spawn(move || commit(&*engine, &asked))
    });
    let started = Instant::now();
    let threads: Vec<_> = (0..writers)
        .map(|seed| {
            let (engine, ask) = (engine.clone(), ask.clone());
            thread::spawn(move || writer(&*engine, batched.then_some(ask), keys, seed, started + length))
        })
        .collect();
    drop(ask);
    let mut waits = Vec::new();
    for thread in threads {
        waits.extend(thread.join().map_err(|_| "a writer panicked")??);
    }
    let seconds = started.elapsed().as_secs_f64();
    if let Some(committer) = committer {
        committer.join().map_err(|_| "the committer panicked")??;
    }
    waits.sort_unstable();
    Ok(Seen { writes: waits.len(), seconds, waits })
}

fn writer(
    engine: &dyn Engine,
    ask: Option<Sender<Asked>>,
    keys: u64,
    seed: u64,
    until: Instant,
) -> Result<Vec<Duration>, Failure> {
    let mut numbers = Numbers::new(seed + 100);
    let (done, waiting) = sync_channel(1);
    let mut waits = Vec::new();
    loop {
        let write = Write { key: numbers.next() % keys, value: numbers.value() };
        let started = Instant::now();
        if started >= until {
            return Ok(waits);
        }
        match &ask {
            Some(ask) => {
                ask.send((write, done.clone())).map_err(|_| "the committer ended")?;
                waiting.recv()?;
            }
            None => engine.commit(&[write])?,
        }
        waits.push(started.elapsed());
    }
}

/// Takes what waits, commits once, answers all; meanwhile the next group gathers.
fn commit(engine: &dyn Engine, asked: &Receiver<Asked>) -> Result<(), Failure> {
    while let Ok((first, done)) = asked.recv() {
        let (mut batch, mut waiting) = (vec![first], vec![done]);
        while batch.len() < GROUP
            && let Ok((write, done)) = asked.try_recv()
        {
            batch.push(write);
            waiting.push(done);
        }
        engine.commit(&batch)?;
        for done in waiting {
            // A writer that failed does not wait.
            let _ = done.send(());
        }
    }
    Ok(())
}
