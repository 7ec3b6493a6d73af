//! Sockets: datagrams in one task, connections in a task each.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aro_net::{Admission, AdmissionLimits, Backoff, Established};
use aro_runtime::{Fault, Listener, LogLimiter, Phase, Scope, TaskKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

use crate::message::respond;
use crate::metrics::{DnsMetrics, Transport};
use crate::shared::SharedZones;

/// Delays while the datagram socket fails.
const SHORTAGE: Backoff = Backoff::new(Duration::from_millis(5), Duration::from_secs(1));

/// Bounds of the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The largest query accepted.
    pub(crate) max_query: usize,
    /// The largest datagram sent.
    pub(crate) max_udp: u16,
    /// How long a connection may take for one query, and how long it may be idle.
    pub(crate) idle: Duration,
    pub(crate) admission: AdmissionLimits,
}

/// What answers.
pub(crate) struct Responder {
    pub(crate) zones: SharedZones,
    pub(crate) metrics: DnsMetrics,
    pub(crate) limits: Limits,
}

impl Responder {
    fn respond(&self, message: &[u8], peer: SocketAddr, transport: Transport) -> Option<Vec<u8>> {
        let response = respond(message, peer, transport, self.limits.max_udp, &self.zones.current())?;
        self.metrics.count_query(response.code, transport);
        Some(response.bytes)
    }
}

/// Serves until the scope closes.
pub(crate) fn start(tcp: Listener, udp: UdpSocket, responder: Arc<Responder>, scope: &Scope) {
    let listening = scope.child(Phase::Listeners, "dns");
    let connections = scope.child(Phase::Requests, "dns");
    let (stop, own) = (listening.clone(), responder.clone());
    listening.spawn(TaskKind::Listener, "datagrams", async move {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = serve_datagrams(&udp, &own) => {}
        }
        Ok::<_, Fault>(())
    });
    let stop = listening.clone();
    listening.spawn(TaskKind::Listener, "accept", async move {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = accept_connections(tcp, responder, connections) => {}
        }
        Ok::<_, Fault>(())
    });
}

/// Answers datagrams one after another: an answer takes microseconds, and no queue can grow.
async fn serve_datagrams(socket: &UdpSocket, responder: &Responder) {
    // One byte more than is accepted, so that a longer datagram is seen as such instead of being cut.
    let mut buffer = vec![0; responder.limits.max_query + 1];
    let mut attempts = SHORTAGE.attempts();
    loop {
        let (length, peer) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            Err(error) => {
                tracing::debug!(%error, "datagram not received");
                attempts.wait().await;
                continue;
            }
        };
        attempts.reset();
        if length > responder.limits.max_query || peer.port() == 0 {
            continue;
        }
        let Some(bytes) = responder.respond(&buffer[..length], peer, Transport::Udp) else { continue };
        if let Err(error) = socket.send_to(&bytes, peer).await {
            tracing::debug!(%error, "datagram not sent");
        }
    }
}

async fn accept_connections(listener: Listener, responder: Arc<Responder>, scope: Scope) {
    let admission = Admission::new(responder.limits.admission);
    let limiter = LogLimiter::every(Duration::from_secs(1));
    let socket = listener.into_inner();
    loop {
        let (stream, peer) = aro_net::accept(&socket).await;
        // There is no handshake: a connection is established at once, or closed.
        let Some(established) = admission.admit(peer.ip()).and_then(aro_net::Pending::try_establish) else {
            if let Some(suppressed) = limiter.permit() {
                tracing::warn!(peer = %peer.ip(), suppressed, "DNS connection limit reached; connection closed");
            }
            continue;
        };
        let (responder, stop) = (responder.clone(), scope.clone());
        scope.spawn(TaskKind::Connection, "connection", async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = serve_connection(stream, peer, &responder, established) => {}
            }
            Ok::<_, Fault>(())
        });
    }
}

/// Queries and responses, each with its length before it, until the client is done or too slow.
async fn serve_connection(
    mut stream: TcpStream,
    peer: SocketAddr,
    responder: &Responder,
    _room: Established,
) {
    let limits = &responder.limits;
    let mut buffer = Vec::new();
    loop {
        let read =
            tokio::time::timeout(limits.idle, read_message(&mut stream, &mut buffer, limits.max_query)).await;
        if !matches!(read, Ok(Ok(true))) {
            return;
        }
        let Some(bytes) = responder.respond(&buffer, peer, Transport::Tcp) else { return };
        let Ok(length) = u16::try_from(bytes.len()) else { return };
        let mut framed = length.to_be_bytes().to_vec();
        framed.extend_from_slice(&bytes);
        let written = tokio::time::timeout(limits.idle, stream.write_all(&framed)).await;
        if !matches!(written, Ok(Ok(()))) {
            return;
        }
    }
}

/// Reads one message into the buffer. `false`: the client is done, or sends more than is accepted.
async fn read_message(stream: &mut TcpStream, buffer: &mut Vec<u8>, most: usize) -> std::io::Result<bool> {
    let length = match stream.read_u16().await {
        Ok(length) => usize::from(length),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
        Err(error) => return Err(error),
    };
    if length > most {
        return Ok(false);
    }
    buffer.resize(length, 0);
    stream.read_exact(buffer).await?;
    Ok(true)
}
