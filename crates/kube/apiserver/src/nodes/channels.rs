//! Forwarding over a WebSocket with numbered channels: two for every port, one connection to each port.
//!
//! Each channel begins with the number of its port. Channels cannot be ended one by one: when all connections have ended,
//! so does the WebSocket.

#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::FuturesUnordered;
use futures::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::forward::{PIECE, Streams, Target, WAITING, Wish, forward};
use super::protocol::Codec;

/// How long the last words may take.
const GOODBYE: Duration = Duration::from_secs(5);

/// Serves one client until all connections have ended, it goes away, or `stop` is cancelled.
pub(super) async fn run<R, W>(
    target: Target,
    ports: Vec<u16>,
    codec: Codec,
    from_client: R,
    mut to_client: W,
    stop: CancellationToken,
) where
    R: Stream<Item = io::Result<Bytes>> + Send + Unpin,
    W: Sink<Bytes, Error = io::Error> + Send + Unpin,
{
    let (wishing, wishes) = mpsc::channel(8);
    let mut senders = Vec::new();
    let forwards: FuturesUnordered<_> = FuturesUnordered::new();
    for (data, port) in (0_u32..).step_by(2).zip(&ports) {
        let (sender, inbound) = mpsc::channel(WAITING);
        senders.push(sender);
        let gone = CancellationToken::new();
        let wishes = wishing.clone();
        let streams = Streams { data, error: data + 1, inbound, wishes, halves: false, gone };
        forwards.push(forward(target.clone(), *port, streams));
    }
    drop(wishing);
    // Writing ends when every connection has ended and what they said last is written.
    let both = async {
        let forwarded = forwards.for_each(|_| async {});
        tokio::join!(write(&ports, codec, wishes, &mut to_client), forwarded);
    };
    tokio::select! {
        () = read(from_client, codec, senders) => {}
        () = both => {}
        () = stop.cancelled() => {}
    }
    // The client is gone; there is no place to report the failure to.
    let _ = tokio::time::timeout(GOODBYE, to_client.close()).await;
}

/// Hands on what the client sends; a pod that reads slowly holds up the others. Ends with the client.
async fn read<R>(mut from_client: R, codec: Codec, mut senders: Vec<mpsc::Sender<Bytes>>)
where
    R: Stream<Item = io::Result<Bytes>> + Send + Unpin,
{
    while let Some(Ok(message)) = from_client.next().await {
        let Some((channel, bytes)) = codec.decode(message) else { return };
        // Channels for errors are never read.
        if channel % 2 == 0
            && !bytes.is_empty()
            && let Some(sender) = senders.get_mut(usize::from(channel / 2))
        {
            // In pieces of their own, so that no long message is kept for the sake of its end.
            for piece in bytes.chunks(PIECE) {
                // One who has ended does not care.
                let _ = sender.send(Bytes::copy_from_slice(piece)).await;
            }
        }
    }
}

async fn write<W>(ports: &[u16], codec: Codec, mut wishes: mpsc::Receiver<Wish>, to_client: &mut W)
where
    W: Sink<Bytes, Error = io::Error> + Send + Unpin,
{
    for (channel, port) in (0_u8..).zip(ports.iter().flat_map(|port| [port, port])) {
        if to_client.send(codec.encode(channel, &port.to_le_bytes())).await.is_err() {
            return;
        }
    }
    while let Some(wish) = wishes.recv().await {
        let Wish::Send { stream, bytes, sent, .. } = wish else { continue };
        let channel = u8::try_from(stream).unwrap_or(u8::MAX);
        if !bytes.is_empty() && to_client.send(codec.encode(channel, &bytes)).await.is_err() {
            return;
        }
        // The waiting task may have ended.
        let _ = sent.send(());
    }
}
