//! One connection, from name resolution to its end.
//!
//! One task reads, writes and hands messages to the inbox concurrently. Reading waits for neither of the others: a broker
//! sends at most [`crate::LinkOptions::receive_window`] unacknowledged messages, and the queue to the inbox holds as many.
//! Writing takes all that is in the buffer at once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aro_net::{Connection, HostPort, Tls};
use aro_runtime::Scope;
use bytes::{BufMut as _, BytesMut};
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{
    ConnAck, Connect, ConnectProperties, ConnectReturnCode, Filter, Login, Packet, SubAck, Subscribe,
    SubscribeReasonCode,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::Instant;

use crate::inbox::{Ack, Delivery};
use crate::link::Shared;
use crate::message;
use crate::session::Session;
use crate::wire::{self, Frame};

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

/// How long sending DISCONNECT may take.
const DISCONNECT_TIMEOUT: Duration = Duration::from_millis(200);

/// Why a connection ended.
pub(crate) enum Lost {
    /// The scope was closed.
    Stopped,
    /// The certificates changed.
    Rotated,
    /// The broker rejected a subscription.
    Refused(String),
    /// Anything else; the next attempt may succeed.
    Failed(String),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped"),
            Self::Rotated => f.write_str("new certificates"),
            Self::Refused(reason) | Self::Failed(reason) => f.write_str(reason),
        }
    }
}

fn failed(what: &str, error: &(dyn std::error::Error + 'static)) -> Lost {
    Lost::Failed(format!("{what}: {}", aro_base::chain(error)))
}

/// Connects, and serves the connection until it ends.
pub(crate) async fn run(shared: &Arc<Shared>, stop: &Scope) -> Lost {
    let stream = tokio::select! {
        () = stop.cancelled() => return Lost::Stopped,
        dialled = dial(shared) => match dialled {
            Ok(stream) => stream,
            Err(lost) => return lost,
        },
    };
    serve(shared, stream, stop).await
}

async fn dial(shared: &Arc<Shared>) -> Result<Box<dyn Connection>, Lost> {
    let options = &shared.options;
    let target = HostPort::parse(&options.broker)
        .ok_or_else(|| Lost::Failed(format!("the broker `{}` is not host:port", options.broker)))?;
    let tls = match shared.identity.clone() {
        Some(identity) => {
            let config = tokio::task::spawn_blocking(move || identity.config()).await;
            let config = config
                .map_err(|e| failed("read certificates", &e))?
                .map_err(|e| failed("read certificates", &e))?;
            Some(Tls { config: Arc::new(config), server_name: options.server_name.clone() })
        }
        None => None,
    };
    shared.dialer.dial(&target, tls).await.map_err(|e| failed("open the connection", &e))
}

/// From CONNECT to the end.
async fn serve(shared: &Arc<Shared>, mut stream: Box<dyn Connection>, stop: &Scope) -> Lost {
    let mut buffer = BytesMut::with_capacity(CHUNK);
    let handshake =
        tokio::time::timeout(shared.options.dial_timeout, handshake(shared, &mut stream, &mut buffer));
    let limits = tokio::select! {
        () = stop.cancelled() => return Lost::Stopped,
        limits = handshake => match limits {
            Ok(Ok(limits)) => limits,
            Ok(Err(lost)) => return lost,
            Err(_) => return Lost::Failed("the broker does not answer CONNECT".to_owned()),
        },
    };
    let session = Arc::new(Session::new(limits.window, shared.options.window_bytes, limits.largest));
    let (queue, messages) = mpsc::channel(usize::from(shared.options.receive_window.max(1)));
    let (mut reading, mut writing) = tokio::io::split(stream);
    let lost = tokio::select! {
        lost = read(shared, &session, &mut reading, buffer, queue, limits.keep_alive) => lost,
        lost = write(&session, &mut writing, limits.keep_alive) => lost,
        () = deliver_all(shared, messages) => Lost::Failed("inbox closed".to_owned()),
        () = rotated(shared) => Lost::Rotated,
        () = stop.cancelled() => Lost::Stopped,
    };
    shared.session.write().take();
    session.close();
    // Best effort: the broker notices the end of the connection anyway.
    let mut disconnect = BytesMut::new();
    wire::put_disconnect(&mut disconnect, 0);
    let _ = tokio::time::timeout(DISCONNECT_TIMEOUT, async {
        writing.write_all(&disconnect).await?;
        writing.shutdown().await
    })
    .await;
    lost
}

/// The limits both ends accept.
struct Limits {
    window: u16,
    largest: usize,
    keep_alive: Duration,
}

/// Sends CONNECT, waits for CONNACK, and sends SUBSCRIBE.
async fn handshake(
    shared: &Arc<Shared>,
    stream: &mut Box<dyn Connection>,
    buffer: &mut BytesMut,
) -> Result<Limits, Lost> {
    let options = &shared.options;
    let mut out = BytesMut::new();
    connect_packet(shared)?.write(&mut out, None).map_err(|e| failed("CONNECT", &e))?;
    stream.write_all(&out).await.map_err(|e| failed("CONNECT", &e))?;
    stream.flush().await.map_err(|e| failed("CONNECT", &e))?;
    let answer = loop {
        match wire::take_frame(buffer, options.max_packet).map_err(|e| failed("CONNACK", &e))? {
            Some(Frame::Other(packet)) => match *packet {
                Packet::ConnAck(answer) => break answer,
                _ => return Err(unexpected()),
            },
            Some(Frame::Disconnect(reason)) => return Err(disconnected_by_broker(reason)),
            Some(_) => return Err(unexpected()),
            None if stream.read_buf(buffer).await.map_err(|e| failed("CONNACK", &e))? == 0 => {
                return Err(Lost::Failed(
                    "the broker closed the connection instead of accepting it".to_owned(),
                ));
            }
            None => {}
        }
    };
    let limits = negotiate(shared, &answer)?;
    if !shared.subscriptions.is_empty() {
        let filters = shared.subscriptions.iter().map(|filter| Filter::new(filter, QoS::AtLeastOnce));
        let mut subscribe = Subscribe::new_many(filters, None);
        subscribe.pkid = 1;
        out.clear();
        subscribe.write(&mut out).map_err(|e| failed("SUBSCRIBE", &e))?;
        stream.write_all(&out).await.map_err(|e| failed("SUBSCRIBE", &e))?;
        stream.flush().await.map_err(|e| failed("SUBSCRIBE", &e))?;
    }
    Ok(limits)
}

fn unexpected() -> Lost {
    Lost::Failed("the broker answers CONNECT with another packet".to_owned())
}

fn connect_packet(shared: &Shared) -> Result<Packet, Lost> {
    let options = &shared.options;
    let password = match (&options.password_file, &options.password) {
        (Some(path), _) => {
            let text = std::fs::read_to_string(path).map_err(|e| failed("read the password file", &e))?;
            text.trim_end_matches(['\r', '\n']).to_owned()
        }
        (None, Some(password)) => password.expose().clone(),
        (None, None) => String::new(),
    };
    let login = options.username.clone().map(|username| Login { username, password });
    let mut properties = ConnectProperties::new();
    properties.session_expiry_interval = Some(0);
    properties.receive_maximum = Some(options.receive_window.max(1));
    properties.max_packet_size = Some(u32::try_from(options.max_packet).unwrap_or(u32::MAX));
    let connect = Connect {
        keep_alive: u16::try_from(options.keep_alive.as_secs().max(1)).unwrap_or(u16::MAX),
        client_id: options.client_id.clone(),
        clean_start: true,
        properties: Some(properties),
    };
    Ok(Packet::Connect(connect, None, login))
}

fn negotiate(shared: &Shared, answer: &ConnAck) -> Result<Limits, Lost> {
    let options = &shared.options;
    let properties = answer.properties.as_ref();
    if answer.code != ConnectReturnCode::Success {
        let reason = properties
            .and_then(|properties| properties.reason_string.as_deref())
            .unwrap_or("no reason given");
        return Err(Lost::Failed(format!("the broker rejects the connection: {:?} ({reason})", answer.code)));
    }
    let window = properties.and_then(|properties| properties.receive_max).unwrap_or(u16::MAX);
    let largest = properties.and_then(|properties| properties.max_packet_size).unwrap_or(u32::MAX);
    let keep_alive = properties.and_then(|properties| properties.server_keep_alive);
    Ok(Limits {
        // One below the number of packet ids, so that one is always unused.
        window: window.min(options.window).min(u16::MAX - 1),
        largest: (largest as usize).min(options.max_packet),
        keep_alive: keep_alive
            .filter(|seconds| *seconds > 0)
            .map_or(options.keep_alive, |s| Duration::from_secs(s.into())),
    })
}

fn disconnected_by_broker(reason: u8) -> Lost {
    let known = match reason {
        0x87 => ": not authorized",
        0x8b => ": shutting down",
        0x8e => ": another client has the same id",
        0x93 => ": too many unacknowledged messages",
        0x95 => ": a packet is too large",
        0x97 => ": this client reads too slowly",
        0xa0 => ": maximum connect time; an expired certificate is one cause",
        _ => "",
    };
    Lost::Failed(format!("the broker ended the connection with reason {reason:#04x}{known}"))
}

async fn read(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    reading: &mut (impl AsyncRead + Unpin),
    mut buffer: BytesMut,
    queue: mpsc::Sender<Delivery>,
    keep_alive: Duration,
) -> Lost {
    if shared.subscriptions.is_empty() {
        connection_ready(shared, session);
    }
    loop {
        loop {
            match wire::take_frame(&mut buffer, shared.options.max_packet) {
                Ok(Some(frame)) => {
                    if let Err(lost) = handle(shared, session, frame, &queue).await {
                        return lost;
                    }
                }
                Ok(None) => break,
                Err(error) => return failed("the broker sent", &error),
            }
        }
        buffer.reserve(CHUNK);
        // A ping is sent at least every half keep-alive, so something must be received in time.
        match tokio::time::timeout(keep_alive.mul_f32(1.5), reading.read_buf(&mut buffer)).await {
            Ok(Ok(0)) => return Lost::Failed("the broker closed the connection".to_owned()),
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return failed("read", &error),
            Err(_) => return Lost::Failed("the broker sends nothing".to_owned()),
        }
    }
}

async fn handle(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    frame: Frame,
    queue: &mpsc::Sender<Delivery>,
) -> Result<(), Lost> {
    match frame {
        Frame::Publish(publish) => {
            shared.metrics.received.inc();
            let Ok(message) = message::from_body(publish.body.clone()) else {
                // The broker forwarded an invalid message. Ending the connection would let one publisher disconnect this
                // subscriber from all others again and again.
                shared.metrics.dropped.inc();
                tracing::debug!(topic = publish.topic(), "malformed message dropped");
                if publish.packet_id != 0 {
                    session.acknowledge(publish.packet_id);
                }
                return Ok(());
            };
            let ack = Ack { session: session.clone(), packet_id: publish.packet_id };
            let delivery = Delivery { topic: publish.topic().to_owned(), message, ack };
            if let Err(TrySendError::Full(delivery)) = queue.try_send(delivery) {
                if publish.packet_id == 0 {
                    // QoS 0 is outside the window and may be dropped.
                    shared.metrics.dropped.inc();
                } else {
                    // A broker that respects the window never gets here. mosquitto 2.0.11 ignores it after the first ack, and
                    // is slowed down by not reading its socket.
                    let _ = queue.send(delivery).await;
                }
            }
        }
        Frame::Disconnect(reason) => return Err(disconnected_by_broker(reason)),
        Frame::Ack(packet_id, reason) => {
            if !session.handle_puback(packet_id, reason) {
                return Err(Lost::Failed(format!(
                    "the broker acknowledges packet {packet_id}, which is not in flight"
                )));
            }
        }
        Frame::Other(packet) => {
            if let Packet::SubAck(answer) = *packet {
                check_suback(shared, &answer)?;
                connection_ready(shared, session);
            }
        }
    }
    Ok(())
}

fn check_suback(shared: &Shared, answer: &SubAck) -> Result<(), Lost> {
    let answers = shared.subscriptions.iter().zip(&answer.return_codes);
    let refused: Vec<String> = answers
        .filter(|(_, code)| !matches!(code, SubscribeReasonCode::Success(_)))
        .map(|(filter, code)| format!("`{filter}` ({code:?})"))
        .collect();
    if refused.is_empty() && answer.return_codes.len() == shared.subscriptions.len() {
        return Ok(());
    }
    shared.metrics.refused_subscriptions.inc_by(refused.len() as u64);
    Err(Lost::Refused(format!("the broker rejects the subscription to {}", refused.join(", "))))
}

fn connection_ready(shared: &Shared, session: &Arc<Session>) {
    *shared.session.write() = Some(session.clone());
    shared.metrics.connects.inc();
    shared.metrics.connected.set(1);
    shared.up.send_replace(true);
    tracing::info!(broker = shared.options.broker, "broker connected");
    shared.inbox.connected();
}

async fn write(session: &Session, writing: &mut (impl AsyncWrite + Unpin), keep_alive: Duration) -> Lost {
    let half = keep_alive / 2;
    let mut ping = Instant::now() + half;
    let mut out = BytesMut::new();
    loop {
        out.clear();
        if !session.swap(&mut out) {
            tokio::select! {
                () = session.wake.notified() => continue,
                () = tokio::time::sleep_until(ping) => {
                    ping = Instant::now() + half;
                    out.put_slice(&[0xc0, 0]);
                }
            }
        }
        if let Err(error) = async {
            writing.write_all(&out).await?;
            writing.flush().await
        }
        .await
        {
            return failed("write", &error);
        }
        if out.capacity() > 4 * CHUNK {
            // Release the memory of a burst.
            out = BytesMut::new();
        }
    }
}

async fn deliver_all(shared: &Arc<Shared>, mut messages: mpsc::Receiver<Delivery>) {
    while let Some(delivery) = messages.recv().await {
        shared.inbox.deliver(delivery).await;
    }
    std::future::pending::<()>().await;
}

/// Returns when the certificate files differ from the certificates in use.
async fn rotated(shared: &Arc<Shared>) {
    let Some(identity) = &shared.identity else { return std::future::pending().await };
    loop {
        tokio::time::sleep(shared.options.reread).await;
        let identity = identity.clone();
        if tokio::task::spawn_blocking(move || identity.changed()).await.unwrap_or(false) {
            return;
        }
    }
}
