//! One connection: its streams, and how much may be sent on each.
//!
//! Windows: SPDY lets each side say how much it takes. The clients of Kubernetes that are written in Go never say so,
//! and send as much as the transport takes. So windows bind us only once the other side has shown that it moves them;
//! ours are moved as data is consumed, and data beyond them is taken: the driver of the connection stops reading.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use bytes::Bytes;

use crate::decoder::{Decoder, Frame};
use crate::encoder::Encoder;
use crate::frame::{Control, Error, INITIAL_WINDOW_SIZE, ResetCode};
use crate::headers::Headers;

/// Which end of the connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// What a connection holds at most.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Streams at once; further ones are refused.
    pub streams: usize,
    /// Bytes of a control frame.
    pub control: usize,
    /// Bytes of a header block, inflated.
    pub headers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { streams: 512, control: 64 << 10, headers: 64 << 10 }
    }
}

/// What the other side did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It opened a stream. Answer with [`Connection::reply`] or [`Connection::reset`].
    Opened { stream: u32, headers: Headers, fin: bool },
    /// It accepted a stream of ours.
    Replied { stream: u32 },
    /// It sent data. `fin`: it will send no more on this stream. Tell [`Connection::consumed`] when the bytes are used.
    Data { stream: u32, bytes: Bytes, fin: bool },
    /// It ended a stream at once, both ways.
    Reset { stream: u32 },
    /// It moved a window: [`Connection::capacity`] may have grown.
    Window,
    /// It will open no more streams.
    GoAway,
}

/// What may be sent before the first window update.
const WINDOW: i64 = 64 << 10;

#[derive(Debug)]
struct Stream {
    /// What we may still send; below zero when the window shrank afterwards.
    window: i64,
    /// What was consumed since the last window update.
    consumed: u32,
    /// We will send no more.
    done: bool,
    /// The other side will send no more.
    ended: bool,
}

/// The state of one connection.
#[derive(Debug)]
pub struct Connection {
    side: Side,
    limits: Limits,
    decoder: Decoder,
    encoder: Encoder,
    streams: HashMap<u32, Stream>,
    /// The next stream of ours.
    next: u32,
    /// The last stream of theirs.
    last: u32,
    window: i64,
    /// Whether the other side moves windows at all.
    windows: bool,
    leaving: bool,
}

impl Connection {
    pub fn new(side: Side, limits: Limits) -> Self {
        Self {
            side,
            limits,
            decoder: Decoder::new(limits.control, limits.headers),
            encoder: Encoder::new(),
            streams: HashMap::new(),
            next: if side == Side::Client { 1 } else { 2 },
            last: 0,
            window: WINDOW,
            windows: false,
            leaving: false,
        }
    }

    /// Takes what was read. After an error the connection is over; its output reports that to the peer.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Vec<Event>, Error> {
        self.decoder.push(bytes);
        let mut events = Vec::new();
        loop {
            match self.decoder.next() {
                Ok(Some(Frame::Data { stream, bytes, fin })) => {
                    self.take_data(stream, bytes, fin, &mut events);
                }
                Ok(Some(Frame::Control(frame))) => self.take_control(frame, &mut events),
                Ok(None) => return Ok(events),
                Err(error) => {
                    self.goodbye(1);
                    return Err(error);
                }
            }
        }
    }

    fn take_data(&mut self, id: u32, bytes: Bytes, fin: bool, events: &mut Vec<Event>) {
        // Data may be on its way to a stream that has just ended.
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.ended {
            self.reset(id, ResetCode::StreamAlreadyClosed);
            events.push(Event::Reset { stream: id });
            return;
        }
        self.finish(id, fin);
        if !bytes.is_empty() || fin {
            events.push(Event::Data { stream: id, bytes, fin });
        }
    }

    fn take_control(&mut self, frame: Control, events: &mut Vec<Event>) {
        match frame {
            Control::SynStream { stream, headers, fin, unidirectional } => {
                if let Err(code) = self.admit(stream) {
                    self.encoder.control(&Control::Reset { stream, code: code as u32 });
                } else if !self.leaving {
                    let window = self.window;
                    self.streams
                        .insert(stream, Stream { window, consumed: 0, done: unidirectional, ended: fin });
                    events.push(Event::Opened { stream, headers, fin });
                }
            }
            Control::SynReply { stream, fin, .. } => {
                if self.streams.contains_key(&stream) {
                    events.push(Event::Replied { stream });
                    self.half_close(stream, fin, events);
                }
            }
            Control::Headers { stream, fin, .. } => self.half_close(stream, fin, events),
            Control::Reset { stream, .. } => {
                if self.streams.remove(&stream).is_some() {
                    events.push(Event::Reset { stream });
                }
            }
            Control::Settings(settings) => {
                let size = settings.iter().rev().find(|(id, _)| *id == INITIAL_WINDOW_SIZE);
                if let Some((_, size)) = size {
                    let change = i64::from(*size) - self.window;
                    self.window += change;
                    self.windows = true;
                    for stream in self.streams.values_mut() {
                        stream.window += change;
                    }
                    events.push(Event::Window);
                }
            }
            // Those who asked first have numbers of their own kind; an answer to us needs no answer.
            Control::Ping(id) => {
                if (id % 2 == 1) == (self.side == Side::Server) {
                    self.encoder.control(&Control::Ping(id));
                }
            }
            Control::GoAway { .. } => events.push(Event::GoAway),
            Control::WindowUpdate { stream: id, delta } => {
                let Some(stream) = self.streams.get_mut(&id) else { return };
                self.windows = true;
                stream.window += i64::from(delta);
                if stream.window > i64::from(i32::MAX) {
                    self.reset(id, ResetCode::FlowControl);
                    events.push(Event::Reset { stream: id });
                } else {
                    events.push(Event::Window);
                }
            }
            Control::Other => {}
        }
    }

    /// Whether the other side may open this stream.
    fn admit(&mut self, stream: u32) -> Result<(), ResetCode> {
        let theirs = (stream % 2 == 1) == (self.side == Side::Server);
        if !theirs || stream <= self.last {
            return Err(ResetCode::Protocol);
        }
        self.last = stream;
        if self.streams.len() < self.limits.streams { Ok(()) } else { Err(ResetCode::Refused) }
    }

    fn half_close(&mut self, stream: u32, fin: bool, events: &mut Vec<Event>) {
        if fin && self.streams.get(&stream).is_some_and(|known| !known.ended) {
            self.finish(stream, true);
            events.push(Event::Data { stream, bytes: Bytes::new(), fin: true });
        }
    }

    /// Notes that the other side is done with a stream, and forgets it if we are, too.
    fn finish(&mut self, id: u32, fin: bool) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.ended |= fin;
            if stream.ended && stream.done {
                self.streams.remove(&id);
            }
        }
    }

    /// Opens a stream; `None` when numbers have run out, or we said goodbye.
    pub fn open(&mut self, headers: Headers, fin: bool) -> Option<u32> {
        if self.leaving || self.next > 0x7fff_ffff {
            return None;
        }
        let stream = self.next;
        self.next += 2;
        self.streams.insert(stream, Stream { window: self.window, consumed: 0, done: fin, ended: false });
        self.encoder.control(&Control::SynStream { stream, headers, fin, unidirectional: false });
        Some(stream)
    }

    /// Accepts a stream of the other side.
    pub fn reply(&mut self, stream: u32) {
        if self.streams.contains_key(&stream) {
            self.encoder.control(&Control::SynReply { stream, headers: Headers::new(), fin: false });
        }
    }

    /// Ends a stream at once, both ways.
    pub fn reset(&mut self, stream: u32, code: ResetCode) {
        if self.streams.remove(&stream).is_some() {
            self.encoder.control(&Control::Reset { stream, code: code as u32 });
        }
    }

    /// How many bytes may be sent on a stream now; `None`: nothing can be sent on it any more.
    pub fn capacity(&self, stream: u32) -> Option<usize> {
        let stream = self.streams.get(&stream).filter(|stream| !stream.done)?;
        Some(if self.windows { usize::try_from(stream.window).unwrap_or(0) } else { usize::MAX })
    }

    /// Sends data, of at most [`Connection::capacity`] bytes. `fin`: nothing will follow.
    pub fn send(&mut self, id: u32, bytes: &[u8], fin: bool) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.done) else { return };
        if bytes.is_empty() && !fin {
            return;
        }
        stream.window -= bytes.len() as i64;
        stream.done = fin;
        self.encoder.data(id, bytes, fin);
        self.finish(id, false);
    }

    /// Says that bytes were used, so that as many more may come.
    pub fn consumed(&mut self, id: u32, bytes: usize) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.ended) else { return };
        stream.consumed = stream.consumed.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        if i64::from(stream.consumed) >= WINDOW / 2 {
            let delta = std::mem::take(&mut stream.consumed).min(i32::MAX as u32);
            self.encoder.control(&Control::WindowUpdate { stream: id, delta });
        }
    }

    /// Says that no more streams are taken.
    pub fn go_away(&mut self) {
        self.goodbye(0);
    }

    fn goodbye(&mut self, code: u32) {
        if !std::mem::replace(&mut self.leaving, true) {
            self.encoder.control(&Control::GoAway { last: self.last, code });
        }
    }

    /// Bytes that wait to be written.
    pub fn output_len(&self) -> usize {
        self.encoder.len()
    }

    /// What is to be written.
    pub fn take_output(&mut self) -> Bytes {
        self.encoder.take()
    }

    /// How many streams are open.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }
}
