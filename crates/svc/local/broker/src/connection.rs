//! One connection: TLS, CONNECT, then reading and writing concurrently until either ends, or the client's certificate
//! expires: the client then has to reconnect with a new one.

use std::sync::Arc;
use std::time::Duration;

use aro_base::SharedClock;
use aro_mqtt::wire::{self, Frame, WireError};
use aro_net::Pending;
use aro_pki::Bearer;
use aro_runtime::{Scope, reached};
use bytes::BytesMut;
use rumqttc::v5::mqttbytes::v5::ConnectReturnCode;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::handshake::{self, Rejection};
use crate::hub::Hub;
use crate::outbox::{Outbox, QUOTA_EXCEEDED};
use crate::session::{Next, Session};

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

/// The deadline of the handshake.
const GREETING: Duration = Duration::from_secs(10);

/// The deadline of the last write.
const FAREWELL: Duration = Duration::from_millis(200);

/// How long a publisher is throttled at most per message, and the interval of checks.
const HOLD: Duration = Duration::from_secs(1);
const HOLD_STEP: Duration = Duration::from_millis(5);

/// Reasons to disconnect.
const SHUTTING_DOWN: u8 = 0x8b;
const SILENT: u8 = 0x8d;
const MALFORMED: u8 = 0x81;
const TOO_LARGE: u8 = 0x95;
/// MQTT's reason for an expired certificate: maximum connect time.
const EXPIRED: u8 = 0xa0;

/// TLS with client certificates.
#[derive(Clone)]
pub struct Tls {
    pub acceptor: TlsAcceptor,
    /// The clock that certificates expire by.
    pub clock: SharedClock,
}

/// Serves a connection until it or the scope ends. It occupies its handshake slot until its CONNECT is accepted.
pub async fn run(stream: TcpStream, mut pending: Pending, tls: Option<Tls>, hub: Arc<Hub>, stop: Scope) {
    let Some(tls) = tls else { return talk(stream, pending, None, std::future::pending(), hub, stop).await };
    let shaken = tokio::select! {
        () = stop.cancelled() => return,
        () = pending.evicted() => {
            hub.metrics.failed_handshakes.inc();
            return tracing::debug!("TLS handshake evicted by newer connections");
        }
        shaken = tokio::time::timeout(GREETING, tls.acceptor.accept(stream)) => shaken,
    };
    let stream = match shaken {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            hub.metrics.failed_handshakes.inc();
            return tracing::debug!(%error, "TLS handshake failed");
        }
        Err(_) => {
            hub.metrics.failed_handshakes.inc();
            return tracing::debug!("TLS handshake timed out");
        }
    };
    // The handshake requires a certificate; one that cannot be parsed has no identity.
    let (_, session) = stream.get_ref();
    let certificate = session.peer_certificates().and_then(|chain| chain.first());
    let Some(bearer) = certificate.and_then(|certificate| Bearer::of_certificate(certificate).ok()) else {
        hub.metrics.failed_handshakes.inc();
        return tracing::debug!("client certificate cannot be parsed");
    };
    talk(stream, pending, Some(bearer.subject.common_name), reached(&tls.clock, bearer.until), hub, stop)
        .await;
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    mut pending: Pending,
    certificate: Option<String>,
    expired: impl Future<Output = ()>,
    hub: Arc<Hub>,
    stop: Scope,
) {
    let mut buffer = BytesMut::with_capacity(CHUNK);
    let first = tokio::select! {
        () = stop.cancelled() => return,
        () = pending.evicted() => {
            hub.metrics.failed_handshakes.inc();
            return tracing::debug!("client evicted by newer connections before its CONNECT");
        }
        first = tokio::time::timeout(GREETING, first_packet(&mut stream, &mut buffer, &hub)) => first,
    };
    let Ok(first) = first else {
        hub.metrics.failed_handshakes.inc();
        return;
    };
    let welcome = first.and_then(|frame| {
        handshake::welcome(frame, certificate.as_deref(), &hub.acl, || uuid::Uuid::new_v4().to_string())
    });
    let (accepted, special) = match welcome {
        Ok(welcome) => welcome,
        Err(rejection) => {
            hub.metrics.failed_handshakes.inc();
            tracing::debug!(reason = rejection.reason, certificate, "client rejected");
            return farewell(&mut stream, &handshake::refused(&rejection)).await;
        }
    };
    // Held until the client disconnects.
    let Some(_established) = pending.try_establish() else {
        hub.metrics.failed_handshakes.inc();
        if let Some(suppressed) = hub.log_limiter.permit() {
            tracing::warn!(
                identity = accepted.identity,
                suppressed,
                "connection limit reached; client rejected"
            );
        }
        let rejection =
            Rejection { code: ConnectReturnCode::ServerBusy, reason: "the broker has too many clients" };
        return farewell(&mut stream, &handshake::refused(&rejection)).await;
    };
    let keep_alive = Duration::from_secs(u64::from(accepted.keep_alive)).mul_f32(1.5);
    let (identity, client_id) = (accepted.identity.clone(), accepted.client_id.clone());
    tracing::debug!(identity, client_id, "client connected");
    let Some(mut session) = Session::new(hub.clone(), accepted) else {
        hub.metrics.failed_handshakes.inc();
        let rejection = Rejection {
            code: ConnectReturnCode::QuotaExceeded,
            reason: "too many connections of this identity",
        };
        return farewell(&mut stream, &handshake::refused(&rejection)).await;
    };
    let outbox = session.outbox.clone();
    outbox.answer(|out| out.extend_from_slice(&handshake::accepted(special, &hub.limits)));
    let (mut reading, mut writing) = tokio::io::split(stream);
    let reason = tokio::select! {
        reason = read(&mut reading, buffer, &mut session, &hub, keep_alive) => reason,
        () = write(&mut writing, &outbox) => None,
        reason = outbox.ended() => Some(reason),
        () = expired => Some(EXPIRED),
        () = stop.cancelled() => Some(SHUTTING_DOWN),
    };
    drop(session);
    if reason == Some(QUOTA_EXCEEDED) {
        hub.metrics.slow.inc();
        tracing::warn!(identity, client_id, "slow client disconnected");
    }
    if reason == Some(EXPIRED) {
        tracing::info!(identity, client_id, "client certificate expired; disconnected");
    }
    if let Some(reason) = reason {
        let mut out = BytesMut::new();
        wire::put_disconnect(&mut out, reason);
        farewell(&mut writing, &out).await;
    }
    tracing::debug!(identity, client_id, ?reason, "client disconnected");
}

/// Best effort: the client notices the end of the connection anyway.
async fn farewell(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    let _ = tokio::time::timeout(FAREWELL, async {
        stream.write_all(bytes).await?;
        stream.shutdown().await
    })
    .await;
}

async fn first_packet(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
    hub: &Hub,
) -> Result<Frame, Rejection> {
    loop {
        match wire::take_frame(buffer, hub.limits.max_packet) {
            Ok(Some(frame)) => return Ok(frame),
            Ok(None) => {}
            Err(WireError::Version) => {
                let code = ConnectReturnCode::UnsupportedProtocolVersion;
                return Err(Rejection { code, reason: "this broker supports MQTT v5 only" });
            }
            Err(_) => {
                return Err(Rejection {
                    code: ConnectReturnCode::MalformedPacket,
                    reason: "not an MQTT packet",
                });
            }
        }
        match stream.read_buf(buffer).await {
            Ok(1..) => {}
            _ => {
                return Err(Rejection {
                    code: ConnectReturnCode::UnspecifiedError,
                    reason: "the client disconnected",
                });
            }
        }
    }
}

/// Reads until the client disconnects, or has to be disconnected.
async fn read(
    reading: &mut (impl AsyncRead + Unpin),
    mut buffer: BytesMut,
    session: &mut Session,
    hub: &Hub,
    keep_alive: Duration,
) -> Option<u8> {
    loop {
        loop {
            match wire::take_frame(&mut buffer, hub.limits.max_packet) {
                Ok(Some(frame)) => match session.handle(frame) {
                    Next::Continue => {
                        if let Some(reader) = session.throttled_by.take() {
                            session.outbox.wake.notify_one();
                            hold(&reader).await;
                        }
                    }
                    Next::Gone => return None,
                    Next::End(reason) => return Some(reason),
                },
                Ok(None) => break,
                Err(WireError::TooLarge) => return Some(TOO_LARGE),
                Err(_) => return Some(MALFORMED),
            }
        }
        // Once per read: one write answers all packets of it.
        session.outbox.wake.notify_one();
        buffer.reserve(CHUNK);
        match tokio::time::timeout(keep_alive, reading.read_buf(&mut buffer)).await {
            Ok(Ok(1..)) => {}
            Ok(_) => return None,
            Err(_) => return Some(SILENT),
        }
        // A client that sends without a pause must not block other connections.
        tokio::task::consume_budget().await;
    }
}

/// Waits for a limited time until the slow subscriber has read on: a publisher that is faster than its subscriber must not
/// get that one disconnected.
async fn hold(reader: &Outbox) {
    let until = tokio::time::Instant::now() + HOLD;
    while reader.is_crowded() && tokio::time::Instant::now() < until {
        tokio::time::sleep(HOLD_STEP).await;
    }
}

/// Writes what is queued until the client cannot be written to.
async fn write(writing: &mut (impl AsyncWrite + Unpin), outbox: &Outbox) {
    let mut out = BytesMut::with_capacity(CHUNK);
    loop {
        out.clear();
        outbox.take(&mut out);
        if out.is_empty() {
            if out.capacity() > 4 * CHUNK {
                out = BytesMut::with_capacity(CHUNK);
            }
            outbox.wake.notified().await;
            continue;
        }
        let written = async {
            writing.write_all(&out).await?;
            writing.flush().await
        };
        if written.await.is_err() {
            return;
        }
    }
}
