//! What one connection has in flight, shared by publishers and by the task that owns the socket.
//!
//! It does no I/O: publishers put packets into a buffer, the connection takes the buffer as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

use crate::wire;

/// The state of one connection's outgoing half.
#[derive(Debug)]
pub(crate) struct Session {
    /// How large a packet the broker takes.
    pub largest: usize,
    places: Arc<Semaphore>,
    room: Arc<Semaphore>,
    all_room: u32,
    state: Mutex<State>,
    /// Told when the buffer is no longer empty.
    pub wake: Notify,
}

#[derive(Debug, Default)]
struct State {
    out: BytesMut,
    waiting: HashMap<u16, Waiting>,
    last: u16,
    closed: bool,
}

/// Somebody who waits for a PUBACK, and the places taken meanwhile.
#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<u8>,
    _taken: Taken,
}

/// A place in the window.
#[derive(Debug)]
pub(crate) struct Taken {
    _place: OwnedSemaphorePermit,
    _room: OwnedSemaphorePermit,
}

/// The connection is gone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone;

impl Session {
    pub fn new(window: u16, in_flight_bytes: usize, largest: usize) -> Self {
        let all_room = u32::try_from(in_flight_bytes).unwrap_or(u32::MAX / 8).min(u32::MAX / 8);
        Self {
            largest,
            places: Arc::new(Semaphore::new(usize::from(window.max(1)))),
            room: Arc::new(Semaphore::new(all_room as usize)),
            all_room,
            state: Mutex::default(),
            wake: Notify::new(),
        }
    }

    /// Waits for a place for a packet of this size.
    pub async fn take_place(&self, size: usize) -> Result<Taken, Gone> {
        let room = u32::try_from(size).unwrap_or(u32::MAX).min(self.all_room);
        let place = self.places.clone().acquire_owned().await.map_err(|_| Gone)?;
        let room = self.room.clone().acquire_many_owned(room).await.map_err(|_| Gone)?;
        Ok(Taken { _place: place, _room: room })
    }

    /// Puts a PUBLISH into the buffer; the receiver gets the broker's reason, or nothing when the connection is lost.
    pub fn publish(&self, topic: &str, body: &[u8], taken: Taken) -> Result<oneshot::Receiver<u8>, Gone> {
        let (answer, answered) = oneshot::channel();
        let mut state = self.state.lock();
        if state.closed {
            return Err(Gone);
        }
        let id = state.free_id();
        state.waiting.insert(id, Waiting { answer, _taken: taken });
        let first = state.out.is_empty();
        wire::put_publish(&mut state.out, id, topic, body);
        drop(state);
        if first {
            self.wake.notify_one();
        }
        Ok(answered)
    }

    /// The broker answered. Tells whether anybody had asked.
    pub fn answered(&self, packet_id: u16, reason: u8) -> bool {
        let waiting = self.state.lock().waiting.remove(&packet_id);
        // Whoever gave up waiting does not mind.
        waiting.map(|waiting| waiting.answer.send(reason)).is_some()
    }

    /// A message is dealt with.
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

    /// Swaps the buffer for an empty one. Nothing when there is nothing to write.
    pub fn swap(&self, empty: &mut BytesMut) -> bool {
        let mut state = self.state.lock();
        std::mem::swap(&mut state.out, empty);
        !empty.is_empty()
    }

    /// The connection is lost: whoever waits is told, nobody can publish any more.
    pub fn close(&self) {
        self.places.close();
        self.room.close();
        let mut state = self.state.lock();
        state.closed = true;
        state.waiting.clear();
        state.out = BytesMut::new();
    }
}

impl State {
    /// The next packet id that nobody waits for. There is one: the window is smaller than the number of ids.
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
    async fn answers_reach_who_asked_in_any_order() {
        let session = Session::new(10, 1000, 1000);
        let one = session.publish("a", b"", session.take_place(10).await.unwrap()).unwrap();
        let two = session.publish("a", b"", session.take_place(10).await.unwrap()).unwrap();
        assert!(session.answered(2, 0x87));
        assert!(session.answered(1, 0));
        assert!(!session.answered(1, 0), "nobody asked twice");
        assert_eq!((one.await, two.await), (Ok(0), Ok(0x87)));
    }

    #[tokio::test]
    async fn ids_in_use_are_not_given_out_again() {
        let session = Session::new(10, 1000, 1000);
        let first = session.publish("a", b"", session.take_place(1).await.unwrap()).unwrap();
        for _ in 0..u32::from(u16::MAX) + 5 {
            let answer = session.publish("a", b"", session.take_place(1).await.unwrap()).unwrap();
            let last = session.state.lock().last;
            assert_ne!(last, 1);
            session.answered(last, 0);
            assert_eq!(answer.await, Ok(0));
            session.swap(&mut BytesMut::new());
        }
        session.answered(1, 0);
        assert_eq!(first.await, Ok(0));
    }

    #[tokio::test]
    async fn the_window_bounds_what_is_in_flight_and_closing_frees_everybody() {
        let session = Arc::new(Session::new(2, 1000, 1000));
        let one = session.publish("a", b"", session.take_place(1).await.unwrap()).unwrap();
        let _two = session.publish("a", b"", session.take_place(1).await.unwrap()).unwrap();
        let third = session.take_place(1);
        tokio::pin!(third);
        assert!(futures_poll(third.as_mut()).await.is_none(), "the window is full");
        session.close();
        assert!(third.await.is_err());
        assert!(one.await.is_err());
    }

    async fn futures_poll<F: Future>(future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = std::future::ready(()) => None,
        }
    }

    #[tokio::test]
    async fn a_packet_larger_than_the_room_takes_all_of_it() {
        let session = Session::new(10, 100, 1000);
        let taken = session.take_place(500).await.unwrap();
        drop(taken);
        assert!(session.take_place(100).await.is_ok());
    }
}
