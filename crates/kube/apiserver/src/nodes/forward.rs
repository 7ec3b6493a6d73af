//! One connection to one port of a pod, whatever carries it to the client.
//!
//! The client's side is two streams: one for data, and one on which we say what went wrong. Either side may end its half
//! of the data first; the other half goes on.

use std::sync::Arc;

use aro_kube_node_api::{NodeApi, PodIdentity};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Pieces of data that may wait for a pod that reads slowly.
pub(super) const WAITING: usize = 4;
/// Most bytes of a piece.
pub(super) const PIECE: usize = 16 << 10;

/// Where connections lead to.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) node: Arc<dyn NodeApi>,
    pub(super) pod: PodIdentity,
}

/// What a forwarded connection wants of who carries it.
pub(super) enum Wish {
    /// To be sent. `sent` is notified when it was taken; dropped when the stream is gone.
    Send { stream: u32, bytes: Bytes, fin: bool, sent: oneshot::Sender<()> },
    /// The pod has taken this much.
    Consumed { stream: u32, bytes: usize },
}

/// The streams of one forwarded connection.
pub(super) struct Streams {
    pub(super) data: u32,
    pub(super) error: u32,
    /// What the client sends; ends when it sends no more.
    pub(super) inbound: mpsc::Receiver<Bytes>,
    pub(super) wishes: mpsc::Sender<Wish>,
    /// Whether the client can end its half alone. If not, the connection ends with the pod's half.
    pub(super) halves: bool,
    /// Cancelled when the client has given up on this connection.
    pub(super) gone: CancellationToken,
}

/// The client is gone.
struct Gone;

impl Streams {
    async fn send(&self, stream: u32, bytes: Bytes, fin: bool) -> Result<(), Gone> {
        let (sent, taken) = oneshot::channel();
        self.wishes.send(Wish::Send { stream, bytes, fin, sent }).await.map_err(|_| Gone)?;
        taken.await.map_err(|_| Gone)
    }
}

/// Carries bytes until both sides are done or the client has given up; then ends both streams.
pub(super) async fn forward(target: Target, port: u16, streams: Streams) -> (u32, u32) {
    let gone = streams.gone.clone();
    let numbers = (streams.data, streams.error);
    tokio::select! {
        biased;
        () = gone.cancelled() => {}
        _ = carry(&target, port, streams) => {}
    }
    numbers
}

async fn carry(target: &Target, port: u16, mut streams: Streams) -> Result<(), Gone> {
    let pipe = match target.node.connect(&target.pod, port).await {
        Ok(pipe) => pipe,
        Err(error) => {
            let PodIdentity { name, uid, .. } = &target.pod;
            let message = format!("error forwarding port {port} to pod {name}, uid {uid}: {error}");
            // Sent before the data ends: a client that waits for the end of data reads this next.
            streams.send(streams.error, message.into(), true).await?;
            return streams.send(streams.data, Bytes::new(), true).await;
        }
    };
    let (mut from_pod, mut to_pod) = tokio::io::split(pipe);
    let (_, never) = mpsc::channel(1);
    let mut inbound = std::mem::replace(&mut streams.inbound, never);
    let up = async {
        let mut taking = true;
        while let Some(bytes) = inbound.recv().await {
            // A pod that takes no more may still send: what it does not want is dropped.
            taking = taking && to_pod.write_all(&bytes).await.is_ok();
            let _ = streams.wishes.send(Wish::Consumed { stream: streams.data, bytes: bytes.len() }).await;
        }
        if taking {
            // If that fails, the pod has closed the connection: reading fails, too.
            let _ = to_pod.shutdown().await;
        }
    };
    let down = async {
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(PIECE);
            // A connection that breaks ends like any other: TCP's clients would not be told more.
            let read = (&mut from_pod).take(PIECE as u64).read_buf(&mut buffer).await.unwrap_or(0);
            streams.send(streams.data, buffer.split().freeze(), read == 0).await?;
            if read == 0 {
                return Ok(());
            }
        }
    };
    if streams.halves {
        tokio::join!(up, down).1?;
    } else {
        tokio::pin!(up, down);
        tokio::select! {
            ended = down.as_mut() => ended?,
            () = up => down.await?,
        }
    }
    streams.send(streams.error, Bytes::new(), true).await
}
