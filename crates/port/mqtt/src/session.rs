//! What one connection has in flight, shared by publishers and the task that owns the socket.
//!
//! It does no I/O: publishers append packets to a buffer, the connection takes the whole buffer.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

use crate::wire;

/// The outgoing half of one connection.
#[derive(Debug)]
pub(crate) struct Session {
    /// The largest packet the broker accepts.
    pub largest: usize,
    slots: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    max_bytes: u32,
    state: Mutex<State>,
    /// Notified when the buffer is no longer empty.
    pub wake: Notify,
}

#[derive(Debug, Default)]
struct State {
    out: BytesMut,
    waiting: HashMap<u16, Waiting>,
    last: u16,
    closed: bool,
}

/// A publisher that waits for a PUBACK, and its slot.
#[derive(Debug)]
struct Waiting {
    puback: oneshot::Sender<u8>,
    _slot: Slot,
}

/// A slot in the window: one message and its bytes.
#[derive(Debug)]
pub(crate) struct Slot {
    _message: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
}

/// The connection has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Closed;

impl Session {
    pub fn new(window: u16, in_flight_bytes: usize, largest: usize) -> Self {
        let max_bytes = u32::try_from(in_flight_bytes).unwrap_or(u32::MAX / 8).min(u32::MAX / 8);
        Self {
            largest,
            slots: Arc::new(Semaphore::new(usize::from(window.max(1)))),
            bytes: Arc::new(Semaphore::new(max_bytes as usize)),
            max_bytes,
            state: Mutex::default(),
            wake: Notify::new(),
        }
    }

    /// Waits for a slot for a packet of this size.
    pub async fn reserve(&self, size: usize) -> Result<Slot, Closed> {
        let bytes = u32::try_from(size).unwrap_or(u32::MAX).min(self.max_bytes);
        let message = self.slots.clone().acquire_owned().await.map_err(|_| Closed)?;
        let bytes = self.bytes.clone().acquire_many_owned(bytes).await.map_err(|_| Closed)?;
        Ok(Slot { _message: message, _bytes: bytes })
    }

    /// Appends a PUBLISH to the buffer. The receiver gets the broker's reason, or an error when the connection is lost.
    pub fn publish(&self, topic: &str, body: &[u8], slot: Slot) -> Result<oneshot::Receiver<u8>, Closed> {
        let (puback, received) = oneshot::channel();
        let mut state = self.state.lock();
        if state.closed {
            return Err(Closed);
        }
        let id = state.free_id();
        state.waiting.insert(id, Waiting { puback, _slot: slot });
        let first = state.out.is_empty();
        wire::put_publish(&mut state.out, id, topic, body);
        drop(state);
        if first {
            self.wake.notify_one();
        }
        Ok(received)
    }

    /// Handles a PUBACK. Returns whether its packet id was in flight.
    pub fn handle_puback(&self, packet_id: u16, reason: u8) -> bool {
        let waiting = self.state.lock().waiting.remove(&packet_id);
        // The publisher may have timed out.
        waiting.map(|waiting| waiting.puback.send(reason)).is_some()
    }

    /// Acknowledges a received message.
    pub fn acknowledge(&self, packet_id: u16) {
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        let first = state.out.is_empty();
        wire::put_ack(&mut state.out, packet_id);
        drop(state);
        if first {
            self.wake.notify_one();
        }
    }

    /// Swaps the buffer for an empty one. Returns false when there is nothing to write.
    pub fn swap(&self, empty: &mut BytesMut) -> bool {
        let mut state = self.state.lock();
        std::mem::swap(&mut state.out, empty);
        !empty.is_empty()
    }

    /// Ends the session: every publish in flight fails, and later ones too.
    pub fn close(&self) {
        self.slots.close();
        self.bytes.close();
        let mut state = self.state.lock();
        state.closed = true;
        state.waiting.clear();
        state.out = BytesMut::new();
    }
}

impl State {
    /// The next unused packet id. There is one: the window is smaller than the number of ids.
    fn free_id(&mut self) -> u16 {
        loop {
            self.last = self.last.checked_add(1).unwrap_or(1);
            if !self.waiting.contains_key(&self.last) {
                return self.last;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pubacks_resolve_their_publishes_in_any_order() {
        let session = Session::new(10, 1000, 1000);
        let one = session.publish("a", b"", session.reserve(10).await.unwrap()).unwrap();
        let two = session.publish("a", b"", session.reserve(10).await.unwrap()).unwrap();
        assert!(session.handle_puback(2, 0x87));
        assert!(session.handle_puback(1, 0));
        assert!(!session.handle_puback(1, 0), "each packet id is acknowledged once");
        assert_eq!((one.await, two.await), (Ok(0), Ok(0x87)));
    }

    #[tokio::test]
    async fn packet_ids_in_flight_are_not_reused() {
        let session = Session::new(10, 1000, 1000);
        let first = session.publish("a", b"", session.reserve(1).await.unwrap()).unwrap();
        for _ in 0..u32::from(u16::MAX) + 5 {
            let answer = session.publish("a", b"", session.reserve(1).await.unwrap()).unwrap();
            let last = session.state.lock().last;
            assert_ne!(last, 1);
            session.handle_puback(last, 0);
            assert_eq!(answer.await, Ok(0));
            session.swap(&mut BytesMut::new());
        }
        session.handle_puback(1, 0);
        assert_eq!(first.await, Ok(0));
    }

    #[tokio::test]
    async fn window_bounds_what_is_in_flight_and_closing_fails_all_waiters() {
        let session = Arc::new(Session::new(2, 1000, 1000));
        let one = session.publish("a", b"", session.reserve(1).await.unwrap()).unwrap();
        let _two = session.publish("a", b"", session.reserve(1).await.unwrap()).unwrap();
        let third = session.reserve(1);
        tokio::pin!(third);
        assert!(poll_once(third.as_mut()).await.is_none(), "the window is full");
        session.close();
        assert!(third.await.is_err());
        assert!(one.await.is_err());
    }

    async fn poll_once<F: Future>(future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = std::future::ready(()) => None,
        }
    }

    #[tokio::test]
    async fn packet_larger_than_the_byte_window_takes_all_of_it() {
        let session = Session::new(10, 100, 1000);
        let slot = session.reserve(500).await.unwrap();
        drop(slot);
        assert!(session.reserve(100).await.is_ok());
    }
}
