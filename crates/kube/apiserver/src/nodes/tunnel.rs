//! Forwarding over SPDY: a pair of streams for every connection, opened by the client.
//!
//! Go's clients know no windows: what keeps memory bounded is that we stop reading the client's connection while a pod
//! takes nothing of what is already here. That holds up the client's other connections, too, as it does upstream.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::time::Duration;

use aro_kube_spdy::{Connection, Event, Headers, Limits, ResetCode, Side};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::forward::{PIECE, Streams, Target, WAITING, Wish, forward};

/// Bytes that may wait to be written before nothing more is taken.
const OUTPUT: usize = 256 << 10;
/// How long one stream may wait for the other of its pair, as upstream's kubelet waits.
const PAIRING: Duration = Duration::from_secs(30);
/// How long nothing may happen, as upstream's kubelet allows.
const IDLE: Duration = Duration::from_hours(4);
/// How long the last words may take.
const GOODBYE: Duration = Duration::from_secs(5);

/// Serves one client until it goes away or `stop` is cancelled.
pub(super) async fn run<R, W>(target: Target, from_client: R, mut to_client: W, stop: CancellationToken)
where
    R: Stream<Item = io::Result<Bytes>> + Send + Unpin,
    W: Sink<Bytes, Error = io::Error> + Send + Unpin,
{
    let (output, mut written) = mpsc::channel::<Bytes>(1);
    let write = async {
        while let Some(bytes) = written.recv().await {
            if to_client.send(bytes).await.is_err() {
                return;
            }
        }
        // The client is gone; there is no place to report the failure to.
        let _ = to_client.close().await;
    };
    tokio::pin!(write);
    let mut tunnel = Tunnel::new(target);
    tokio::select! {
        () = write.as_mut() => return,
        () = tunnel.serve(from_client, &output, &stop) => {}
    }
    tunnel.connection.go_away();
    let last = tunnel.connection.take_output();
    let goodbye = async move {
        let _ = output.send(last).await;
        drop(output);
    };
    let _ = tokio::time::timeout(GOODBYE, futures::future::join(goodbye, write)).await;
}

/// What a stream is for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Role {
    error: bool,
    port: u16,
    request: String,
}

/// Reads a new stream's headers. Old clients number no requests: their data stream follows its error stream.
fn role(stream: u32, headers: &Headers) -> Option<Role> {
    let error = match headers.get("streamtype")? {
        "error" => true,
        "data" => false,
        _ => return None,
    };
    let port = headers.get("port")?.parse().ok().filter(|port| *port > 0)?;
    let request = match headers.get("requestid") {
        Some(request) if request.len() <= 64 => request.to_owned(),
        Some(_) => return None,
        None => format!("stream {}", if error { stream } else { stream.saturating_sub(2) }),
    };
    Some(Role { error, port, request })
}

/// A pair that is not complete yet.
struct Half {
    port: u16,
    error: Option<u32>,
    data: Option<(u32, mpsc::Receiver<Bytes>)>,
    until: Instant,
}

/// The data stream of a pair.
struct Inbound {
    /// `None`: the client has sent its last.
    sender: Option<mpsc::Sender<Bytes>>,
    gone: CancellationToken,
}

/// Something that waits until its stream's window has room.
struct Waiting {
    bytes: Bytes,
    fin: bool,
    sent: oneshot::Sender<()>,
}

struct Tunnel {
    target: Target,
    connection: Connection,
    /// Events that are not dealt with yet: the first one's receiver is full.
    events: VecDeque<Event>,
    halves: HashMap<String, Half>,
    inbound: HashMap<u32, Inbound>,
    /// At most one per stream.
    waiting: HashMap<u32, Waiting>,
    running: FuturesUnordered<BoxFuture<'static, (u32, u32)>>,
    wishes: mpsc::Receiver<Wish>,
    wishing: mpsc::Sender<Wish>,
}

impl Tunnel {
    fn new(target: Target) -> Self {
        let (wishing, wishes) = mpsc::channel(64);
        Self {
            target,
            connection: Connection::new(Side::Server, Limits::default()),
            events: VecDeque::new(),
            halves: HashMap::new(),
            inbound: HashMap::new(),
            waiting: HashMap::new(),
            running: FuturesUnordered::new(),
            wishes,
            wishing,
        }
    }

    async fn serve<R>(&mut self, mut from_client: R, output: &mpsc::Sender<Bytes>, stop: &CancellationToken)
    where
        R: Stream<Item = io::Result<Bytes>> + Send + Unpin,
    {
        let mut idle = Instant::now() + IDLE;
        loop {
            let full = self.deal();
            let room = self.connection.output_len() < OUTPUT;
            let pairing = self.halves.values().map(|half| half.until).min();
            // Every arm is cancel-safe: each takes one thing, and all at once.
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                permit = output.reserve(), if self.connection.output_len() > 0 => {
                    let Ok(permit) = permit else { return };
                    permit.send(self.connection.take_output());
                    self.send_waiting();
                }
                Some(wish) = self.wishes.recv(), if room => self.grant(wish),
                Some(ended) = self.running.next() => self.ended(ended),
                () = has_room(full.as_ref()), if full.is_some() => {}
                read = from_client.next(), if full.is_none() && room => {
                    let Some(Ok(bytes)) = read else { return };
                    if let Err(error) = self.receive(&bytes) {
                        return tracing::debug!(%error, "a client that forwards ports does not speak SPDY");
                    }
                }
                () = tokio::time::sleep_until(pairing.unwrap_or(idle)), if pairing.is_some() => self.give_up_halves(),
                () = tokio::time::sleep_until(idle) => return tracing::debug!("a forward of ports was idle for too long"),
            }
            idle = Instant::now() + IDLE;
        }
    }

    /// In pieces, so that no long message is kept for the sake of its end.
    fn receive(&mut self, bytes: &[u8]) -> Result<(), aro_kube_spdy::Error> {
        for piece in bytes.chunks(PIECE) {
            self.events.extend(self.connection.receive(piece)?);
        }
        Ok(())
    }

    /// Deals with events, until one cannot be: then its receiver is returned.
    fn deal(&mut self) -> Option<mpsc::Sender<Bytes>> {
        while let Some(event) = self.events.pop_front() {
            match event {
                Event::Opened { stream, headers, fin } => self.opened(stream, &headers, fin),
                Event::Data { stream, bytes, fin } => {
                    if let Err((bytes, full)) = self.take_data(stream, bytes, fin) {
                        self.events.push_front(Event::Data { stream, bytes, fin });
                        return Some(full);
                    }
                }
                Event::Reset { stream } => {
                    if let Some(inbound) = self.inbound.remove(&stream) {
                        inbound.gone.cancel();
                    }
                    self.halves.retain(|_, half| {
                        half.error != Some(stream)
                            && half.data.as_ref().is_none_or(|(data, _)| *data != stream)
                    });
                    self.send_waiting();
                }
                Event::Window => self.send_waiting(),
                Event::Replied { .. } | Event::GoAway => {}
            }
        }
        None
    }

    fn opened(&mut self, stream: u32, headers: &Headers, fin: bool) {
        let Some(role) = role(stream, headers) else {
            tracing::debug!(stream, "a stream to forward a port lacks its headers and was refused");
            return self.connection.reset(stream, ResetCode::Cancel);
        };
        let until = Instant::now() + PAIRING;
        let new = || Half { port: role.port, error: None, data: None, until };
        let half = self.halves.entry(role.request.clone()).or_insert_with(new);
        let taken = if role.error { half.error.is_some() } else { half.data.is_some() };
        if taken || half.port != role.port {
            return self.connection.reset(stream, ResetCode::Cancel);
        }
        self.connection.reply(stream);
        if role.error {
            half.error = Some(stream);
        } else {
            let (sender, receiver) = mpsc::channel(WAITING);
            half.data = Some((stream, receiver));
            let sender = (!fin).then_some(sender);
            self.inbound.insert(stream, Inbound { sender, gone: CancellationToken::new() });
        }
        if half.error.is_none() || half.data.is_none() {
            return;
        }
        if let Some(Half { port, error: Some(error), data: Some((data, inbound)), .. }) =
            self.halves.remove(&role.request)
        {
            let gone = self.inbound.get(&data).map(|known| known.gone.clone()).unwrap_or_default();
            let wishes = self.wishing.clone();
            let streams = Streams { data, error, inbound, wishes, halves: true, gone };
            self.running.push(Box::pin(forward(self.target.clone(), port, streams)));
        }
    }

    fn give_up_halves(&mut self) {
        let now = Instant::now();
        let late: Vec<String> =
            self.halves.iter().filter(|(_, half)| half.until <= now).map(|(name, _)| name.clone()).collect();
        for half in late.iter().filter_map(|request| self.halves.remove(request)).collect::<Vec<_>>() {
            if let Some(error) = half.error {
                self.connection.send(error, b"timed out waiting for streams", true);
            }
            if let Some((data, _)) = half.data {
                self.inbound.remove(&data);
                self.connection.reset(data, ResetCode::Cancel);
            }
        }
    }

    /// Hands data on; gives it back with its receiver if that is full.
    fn take_data(
        &mut self,
        stream: u32,
        bytes: Bytes,
        fin: bool,
    ) -> Result<(), (Bytes, mpsc::Sender<Bytes>)> {
        let Some(inbound) = self.inbound.get_mut(&stream) else {
            // Streams for errors are never read.
            self.connection.consumed(stream, bytes.len());
            return Ok(());
        };
        if let Some(sender) = &inbound.sender
            && !bytes.is_empty()
        {
            match sender.try_send(bytes) {
                Err(mpsc::error::TrySendError::Full(bytes)) => return Err((bytes, sender.clone())),
                // One who has ended does not care.
                Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            }
        }
        if fin {
            inbound.sender = None;
        }
        Ok(())
    }

    fn grant(&mut self, wish: Wish) {
        match wish {
            Wish::Consumed { stream, bytes } => self.connection.consumed(stream, bytes),
            Wish::Send { stream, bytes, fin, sent } => {
                self.waiting.insert(stream, Waiting { bytes, fin, sent });
                self.send_waiting();
            }
        }
    }

    /// Sends what fits into the windows.
    fn send_waiting(&mut self) {
        let Self { waiting, connection, .. } = self;
        let streams: Vec<u32> = waiting.keys().copied().collect();
        for stream in streams {
            let Some(one) = waiting.get_mut(&stream) else { continue };
            let Some(capacity) = connection.capacity(stream) else {
                // The stream is gone: dropping it tells who waits.
                waiting.remove(&stream);
                continue;
            };
            let now = one.bytes.split_to(capacity.min(one.bytes.len()));
            let all = one.bytes.is_empty();
            connection.send(stream, &now, one.fin && all);
            if all && let Some(one) = waiting.remove(&stream) {
                // The waiting task may have ended.
                let _ = one.sent.send(());
            }
        }
    }

    /// A connection has ended, by itself or because the client gave it up: its streams end with it.
    fn ended(&mut self, (data, error): (u32, u32)) {
        self.inbound.remove(&data);
        self.waiting.remove(&data);
        self.waiting.remove(&error);
        self.connection.send(error, &[], true);
        // If both sides were done with it, it is no more.
        self.connection.reset(data, ResetCode::Cancel);
        self.connection.reset(error, ResetCode::Cancel);
    }
}

/// Returns when a receiver takes more, or is gone.
async fn has_room(full: Option<&mpsc::Sender<Bytes>>) {
    if let Some(full) = full {
        // The permit is given back at once: only we send.
        let _ = full.reserve().await;
    }
}
