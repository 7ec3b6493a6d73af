//! The queue of packets to one client.
//!
//! It does no I/O. The hub adds messages, the connection's writer takes them as bytes, as far as the client's window
//! allows. It is bounded: when it is full, the client is too slow, and the outbox ends with a reason; from then on it
//! accepts nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::sync::Notify;

use aro_mqtt::wire;

/// Reasons to disconnect.
pub const QUOTA_EXCEEDED: u8 = 0x97;
const TOO_MANY_UNACKNOWLEDGED: u8 = 0x93;

/// Bytes of one write.
const ONE_WRITE: usize = 256 * 1024;

/// Bytes of queued responses: a client within its window has far fewer.
const MOST_ANSWERS: usize = 64 * 1024;

/// A message, shared by all its subscribers.
#[derive(Debug, PartialEq, Eq)]
pub struct Publication {
    pub topic: String,
    /// Properties and payload as received.
    pub body: Bytes,
    /// 0 or 1.
    pub qos: u8,
}

impl Publication {
    fn size(&self) -> usize {
        wire::publish_size(self.qos, &self.topic, &self.body)
    }
}

/// A message in an outbox.
#[derive(Debug, Clone)]
pub struct Entry {
    pub publication: Arc<Publication>,
    /// The lower QoS of the publisher's and the subscriber's.
    pub qos: u8,
    /// The share it was routed by: if this client disconnects, another member gets it.
    pub share: Option<u64>,
}

/// Limits of an outbox.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub messages: usize,
    pub bytes: usize,
    /// Messages the client accepts unacknowledged.
    pub window: u16,
    /// The largest packet the client accepts.
    pub largest: usize,
}

/// The outbox of one connection.
#[derive(Debug)]
pub struct Outbox {
    /// Unique over the broker's lifetime.
    pub id: u64,
    bounds: Bounds,
    state: Mutex<State>,
    /// Notified when there is something to write.
    pub wake: Notify,
    /// Notified when it has ended.
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    answers: BytesMut,
    queue: VecDeque<Entry>,
    /// Bytes of the queue and of what is in flight.
    bytes: usize,
    in_flight: HashMap<u16, Entry>,
    last_id: u16,
    ending: Option<u8>,
}

/// The outcome of adding a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    Queued,
    /// The packet is larger than the client accepts.
    TooLarge,
    /// The outbox has ended, now or before.
    Ended,
}

impl Outbox {
    pub fn new(id: u64, bounds: Bounds) -> Self {
        Self { id, bounds, state: Mutex::default(), wake: Notify::new(), ended: Notify::new() }
    }

    /// Adds a message.
    pub fn put(&self, entry: Entry) -> Put {
        let size = entry.publication.size();
        if size > self.bounds.largest {
            return Put::TooLarge;
        }
        let mut state = self.state.lock();
        if state.ending.is_some() {
            return Put::Ended;
        }
        let held = state.queue.len() + state.in_flight.len();
        if held >= self.bounds.messages || state.bytes + size > self.bounds.bytes {
            state.ending = Some(QUOTA_EXCEEDED);
            drop(state);
            self.ended.notify_one();
            return Put::Ended;
        }
        let idle = state.queue.is_empty();
        state.bytes += size;
        state.queue.push_back(entry);
        drop(state);
        if idle {
            self.wake.notify_one();
        }
        Put::Queued
    }

    /// Adds a response.
    pub fn answer(&self, write: impl FnOnce(&mut BytesMut)) {
        let mut state = self.state.lock();
        if state.ending.is_some() {
            return;
        }
        if state.answers.len() > MOST_ANSWERS {
            state.ending = Some(TOO_MANY_UNACKNOWLEDGED);
            drop(state);
            self.ended.notify_one();
            return;
        }
        write(&mut state.answers);
    }

    /// Handles a PUBACK of the client. Returns whether the packet id was in flight.
    pub fn acknowledged(&self, packet_id: u16) -> bool {
        let mut state = self.state.lock();
        let Some(entry) = state.in_flight.remove(&packet_id) else { return false };
        state.bytes = state.bytes.saturating_sub(entry.publication.size());
        let waiting = !state.queue.is_empty();
        drop(state);
        if waiting {
            self.wake.notify_one();
        }
        true
    }

    /// Moves what may be written now into `out`.
    pub fn take(&self, out: &mut BytesMut) {
        let mut state = self.state.lock();
        let state = &mut *state;
        out.extend_from_slice(&state.answers.split());
        while out.len() < ONE_WRITE {
            let Some(entry) = state.queue.front() else { break };
            if entry.qos > 0 && state.in_flight.len() >= usize::from(self.bounds.window) {
                break;
            }
            let Some(entry) = state.queue.pop_front() else { break };
            if entry.qos == 0 {
                wire::put_publish(out, 0, &entry.publication.topic, &entry.publication.body);
                state.bytes = state.bytes.saturating_sub(entry.publication.size());
                continue;
            }
            loop {
                state.last_id = state.last_id.checked_add(1).unwrap_or(1);
                if !state.in_flight.contains_key(&state.last_id) {
                    break;
                }
            }
            wire::put_publish(out, state.last_id, &entry.publication.topic, &entry.publication.body);
            state.in_flight.insert(state.last_id, entry);
        }
    }

    /// Whether it is more than half full.
    pub fn is_crowded(&self) -> bool {
        let state = self.state.lock();
        let held = state.queue.len() + state.in_flight.len();
        state.ending.is_none() && (held > self.bounds.messages / 2 || state.bytes > self.bounds.bytes / 2)
    }

    /// Whether it accepts messages.
    pub fn is_open(&self) -> bool {
        self.state.lock().ending.is_none()
    }

    /// Ends it; the first reason counts.
    pub fn end(&self, reason: u8) {
        self.state.lock().ending.get_or_insert(reason);
        self.ended.notify_one();
    }

    /// Returns when it has ended, with the reason.
    pub async fn ended(&self) -> u8 {
        loop {
            let ended = self.ended.notified();
            if let Some(reason) = self.state.lock().ending {
                return reason;
            }
            ended.await;
        }
    }

    /// Ends it and returns what was not acknowledged.
    pub fn drain(&self) -> Vec<Entry> {
        let mut state = self.state.lock();
        state.ending.get_or_insert(0);
        state.bytes = 0;
        let mut left: Vec<(u16, Entry)> = state.in_flight.drain().collect();
        // Packet ids rise in the order of sending, except where they wrap around.
        left.sort_by_key(|(id, _)| *id);
        let queue = std::mem::take(&mut state.queue);
        left.into_iter().map(|(_, entry)| entry).chain(queue).collect()
    }
}

#[cfg(test)]
mod tests;
