//! aro-journal with an owner as our storage of objects is one: all state in memory, compaction by writing again what is
//! alive in the oldest segment.

use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};

use aro_journal::{Journal, Options, Outcome};

use super::{Engine, Failure, Found, Write};

/// Who waits for a record, if anybody does.
type Ticket = Option<Sender<bool>>;

const HEAD: usize = 16;

#[derive(Default)]
struct State {
    objects: HashMap<u64, (u64, Vec<u8>)>,
    version: u64,
    live: u64,
    written: u64,
}

impl State {
    fn put(&mut self, key: u64, version: u64, value: &[u8]) {
        self.version = self.version.max(version);
        match self.objects.get_mut(&key) {
            Some((known, _)) if *known > version => {}
            Some(old) => *old = (version, value.to_vec()),
            None => {
                self.live += (value.len() + HEAD) as u64;
                self.objects.insert(key, (version, value.to_vec()));
            }
        }
    }
}

pub struct Owner {
    journal: Journal<Ticket>,
    state: Arc<Mutex<State>>,
    compacting: Mutex<()>,
    segment: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, Failure> {
    mutex.lock().map_err(|_| "another writer had panicked".into())
}

fn parts(record: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (key, rest) = record.split_first_chunk::<8>()?;
    let (version, value) = rest.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*key), u64::from_be_bytes(*version), value))
}

impl Owner {
    pub fn open(dir: &Path) -> Result<Self, Failure> {
        let mut state = State::default();
        let options = Options::default();
        let segment = options.segment_bytes;
        let replay = |record: &[u8]| {
            if let Some((key, version, value)) = parts(record) {
                state.written += record.len() as u64;
                state.put(key, version, value);
            }
        };
        let committed = |tickets: Vec<Ticket>, outcome: Outcome| {
            for ticket in tickets.into_iter().flatten() {
                // A caller that has gone away needs no answer.
                let _ = ticket.send(outcome == Outcome::Durable);
            }
        };
        let journal = Journal::open(&dir.join("journal"), options, replay, committed)?;
        Ok(Self { journal, state: Arc::new(Mutex::new(state)), compacting: Mutex::new(()), segment })
    }

    fn append(&self, state: &mut State, key: u64, version: u64, value: &[u8], ticket: Ticket) -> Result<(), Failure> {
        state.written += (value.len() + HEAD) as u64;
        let appended = self.journal.append(&[&key.to_be_bytes(), &version.to_be_bytes(), value], ticket);
        appended.map_err(|(closed, _)| closed.into())
    }

    /// Twice what is alive, and a segment that is being filled.
    fn due(&self) -> Result<bool, Failure> {
        let state = lock(&self.state)?;
        Ok(state.written > 2 * state.live + self.segment)
    }

    fn compact(&self) -> Result<(), Failure> {
        let Ok(_alone) = self.compacting.try_lock() else { return Ok(()) };
        while self.due()? {
            let segments = self.journal.segments();
            let [oldest, _, ..] = segments.as_slice() else { return Ok(()) };
            let mut old = Vec::new();
            let mut size = 0;
            self.journal.read(*oldest, |record| {
                size += record.len() as u64;
                old.extend(parts(record).map(|(key, version, _)| (key, version)));
            })?;
            // A few at a time, so that writers get their turn.
            for some in old.chunks(256) {
                let mut state = lock(&self.state)?;
                for (key, version) in some {
                    if let Some((current, value)) = state.objects.get(key)
                        && current == version
                    {
                        let value = value.clone();
                        self.append(&mut state, *key, *version, &value, None)?;
                    }
                }
            }
            self.flushed()?;
            self.journal.remove(*oldest)?;
            lock(&self.state)?.written -= size;
        }
        Ok(())
    }

    /// Waits until everything up to here is durable.
    fn flushed(&self) -> Result<(), Failure> {
        let (ticket, waiting) = channel();
        self.journal.append(&[b"-"], Some(ticket)).map_err(|(closed, _)| closed)?;
        wait(&waiting, 1)
    }
}

fn wait(waiting: &Receiver<bool>, count: usize) -> Result<(), Failure> {
    for _ in 0..count {
        if !waiting.recv()? {
            return Err("the log failed".into());
        }
    }
    Ok(())
}

impl Engine for Owner {
    fn commit(&self, batch: &[Write]) -> Result<(), Failure> {
        let (ticket, waiting) = channel();
        {
            let mut state = lock(&self.state)?;
            for write in batch {
                let version = state.version + 1;
                state.put(write.key, version, &write.value);
                self.append(&mut state, write.key, version, &write.value, Some(ticket.clone()))?;
            }
        }
        wait(&waiting, batch.len())?;
        if self.due()? {
            self.compact()?;
        }
        Ok(())
    }

    fn scan(&self) -> Result<Found, Failure> {
        let state = lock(&self.state)?;
        let bytes = state.objects.values().map(|(_, value)| value.len()).sum();
        Ok(Found { records: state.objects.len(), bytes })
    }
}
