//! One connection, from the name of the broker to its end.
//!
//! Three things go on at once in one task: reading, writing, and handing messages to the inbox. Reading waits for neither
//! of the others: a broker sends at most [`crate::LinkOptions::receive_window`] unacknowledged messages, and so many fit
//! the queue to the inbox. Writing takes all that has gathered at once.

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

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// How long saying goodbye may take.
const GOODBYE: Duration = Duration::from_millis(200);

/// Why a connection ended.
pub(crate) enum Lost {
    /// The scope was closed.
    Stopped,
    /// There are new certificates.
    Rotated,
    /// The broker refused a subscription.
    Refused(String),
    /// Anything else; the next attempt may do better.
    Failed(String),
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped"),
            Self::Rotated => f.write_str("new certificates"),
            Self::Refused(why) | Self::Failed(why) => f.write_str(why),
        }
    }
}

fn failed(what: &str, error: &(dyn std::error::Error + 'static)) -> Lost {
    Lost::Failed(format!("{what}: {}", aro_base::chain(error)))
}

/// Connects and stays until the end.
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
    let greeting = tokio::time::timeout(shared.options.dial_timeout, greet(shared, &mut stream, &mut buffer));
    let agreed = tokio::select! {
        () = stop.cancelled() => return Lost::Stopped,
        agreed = greeting => match agreed {
            Ok(Ok(agreed)) => agreed,
            Ok(Err(lost)) => return lost,
            Err(_) => return Lost::Failed("the broker does not answer CONNECT".to_owned()),
        },
    };
    let session = Arc::new(Session::new(agreed.window, shared.options.window_bytes, agreed.largest));
    let (queue, messages) = mpsc::channel(usize::from(shared.options.receive_window.max(1)));
    let (mut reading, mut writing) = tokio::io::split(stream);
    let lost = tokio::select! {
        lost = read(shared, &session, &mut reading, buffer, queue, agreed.keep_alive) => lost,
        lost = write(&session, &mut writing, agreed.keep_alive) => lost,
        () = hand_over(shared, messages) => Lost::Failed("the inbox is gone".to_owned()),
        () = rotated(shared) => Lost::Rotated,
        () = stop.cancelled() => Lost::Stopped,
    };
    shared.session.write().take();
    session.close();
    // Best effort: the broker notices the end of the connection anyway.
    let mut goodbye = BytesMut::new();
    wire::put_disconnect(&mut goodbye, 0);
    let _ = tokio::time::timeout(GOODBYE, async {
        writing.write_all(&goodbye).await?;
        writing.shutdown().await
    })
    .await;
    lost
}

/// What both ends allow.
struct Agreed {
    window: u16,
    largest: usize,
    keep_alive: Duration,
}

/// CONNECT, CONNACK, and SUBSCRIBE on its way.
async fn greet(
    shared: &Arc<Shared>,
    stream: &mut Box<dyn Connection>,
    buffer: &mut BytesMut,
) -> Result<Agreed, Lost> {
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
            Some(Frame::Disconnect(reason)) => return Err(said_goodbye(reason)),
            Some(_) => return Err(unexpected()),
            None if stream.read_buf(buffer).await.map_err(|e| failed("CONNACK", &e))? == 0 => {
                return Err(Lost::Failed(
                    "the broker closed the connection instead of accepting it".to_owned(),
                ));
            }
            None => {}
        }
    };
    let agreed = agree(shared, &answer)?;
    if !shared.subscriptions.is_empty() {
        let filters = shared.subscriptions.iter().map(|filter| Filter::new(filter, QoS::AtLeastOnce));
        let mut subscribe = Subscribe::new_many(filters, None);
        subscribe.pkid = 1;
        out.clear();
        subscribe.write(&mut out).map_err(|e| failed("SUBSCRIBE", &e))?;
        stream.write_all(&out).await.map_err(|e| failed("SUBSCRIBE", &e))?;
        stream.flush().await.map_err(|e| failed("SUBSCRIBE", &e))?;
    }
    Ok(agreed)
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

fn agree(shared: &Shared, answer: &ConnAck) -> Result<Agreed, Lost> {
    let options = &shared.options;
    let properties = answer.properties.as_ref();
    if answer.code != ConnectReturnCode::Success {
        let said = properties
            .and_then(|properties| properties.reason_string.as_deref())
            .unwrap_or("no reason given");
        return Err(Lost::Failed(format!("the broker refuses the connection: {:?} ({said})", answer.code)));
    }
    let window = properties.and_then(|properties| properties.receive_max).unwrap_or(u16::MAX);
    let largest = properties.and_then(|properties| properties.max_packet_size).unwrap_or(u32::MAX);
    let keep_alive = properties.and_then(|properties| properties.server_keep_alive);
    Ok(Agreed {
        // One id below the number of ids, so that there is always a free one.
        window: window.min(options.window).min(u16::MAX - 1),
        largest: (largest as usize).min(options.max_packet),
        keep_alive: keep_alive
            .filter(|seconds| *seconds > 0)
            .map_or(options.keep_alive, |s| Duration::from_secs(s.into())),
    })
}

fn said_goodbye(reason: u8) -> Lost {
    let known = match reason {
        0x87 => ": not authorized",
        0x8b => ": it is shutting down",
        0x8e => ": another client has the same name",
        0x93 => ": too many unacknowledged messages",
        0x95 => ": a packet is too large",
        0x97 => ": this client reads too slowly",
        0xa0 => ": it has lasted as long as it may; a certificate that expired is one reason",
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
        came_up(shared, session);
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
        // Pings go out at least every half keep-alive, so something must come back.
        match tokio::time::timeout(keep_alive.mul_f32(1.5), reading.read_buf(&mut buffer)).await {
            Ok(Ok(0)) => return Lost::Failed("the broker closed the connection".to_owned()),
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return failed("read", &error),
            Err(_) => return Lost::Failed("the broker has gone silent".to_owned()),
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
                // Somebody sent it, and the broker let it pass. Ending the connection over it would let one sender cut
                // its reader off from all others, again and again.
                shared.metrics.dropped.inc();
                tracing::debug!(topic = publish.topic(), "a message that is not MQTT v5 was dropped");
                if publish.packet_id != 0 {
                    session.acknowledge(publish.packet_id);
                }
                return Ok(());
            };
            let ack = Ack { session: session.clone(), packet_id: publish.packet_id };
            let delivery = Delivery { topic: publish.topic().to_owned(), message, ack };
            if let Err(TrySendError::Full(delivery)) = queue.try_send(delivery) {
                if publish.packet_id == 0 {
                    // Quality 0 is not counted by the window and promises nothing.
                    shared.metrics.dropped.inc();
                } else {
                    // A broker that keeps to the window never comes here. mosquitto 2.0.11 forgets it after the first
                    // ack: it is slowed down by not being read from.
                    let _ = queue.send(delivery).await;
                }
            }
        }
        Frame::Disconnect(reason) => return Err(said_goodbye(reason)),
        Frame::Ack(packet_id, reason) => {
            if !session.answered(packet_id, reason) {
                return Err(Lost::Failed(format!("the broker acknowledges {packet_id}, which was not sent")));
            }
        }
        Frame::Other(packet) => {
            if let Packet::SubAck(answer) = *packet {
                subscribed(shared, &answer)?;
                came_up(shared, session);
            }
        }
    }
    Ok(())
}

fn subscribed(shared: &Shared, answer: &SubAck) -> Result<(), Lost> {
    let answers = shared.subscriptions.iter().zip(&answer.return_codes);
    let refused: Vec<String> = answers
        .filter(|(_, code)| !matches!(code, SubscribeReasonCode::Success(_)))
        .map(|(filter, code)| format!("`{filter}` ({code:?})"))
        .collect();
    if refused.is_empty() && answer.return_codes.len() == shared.subscriptions.len() {
        return Ok(());
    }
    shared.metrics.refused_subscriptions.inc_by(refused.len() as u64);
    Err(Lost::Refused(format!("the broker refuses the subscription to {}", refused.join(", "))))
}

fn came_up(shared: &Shared, session: &Arc<Session>) {
    *shared.session.write() = Some(session.clone());
    shared.metrics.connects.inc();
    shared.metrics.connected.set(1);
    shared.up.send_replace(true);
    tracing::info!(broker = shared.options.broker, "connected to the broker");
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
            // A burst has passed; its memory need not stay.
            out = BytesMut::new();
        }
    }
}

async fn hand_over(shared: &Arc<Shared>, mut messages: mpsc::Receiver<Delivery>) {
    while let Some(delivery) = messages.recv().await {
        shared.inbox.deliver(delivery).await;
    }
    std::future::pending::<()>().await;
}

/// Returns when the certificates in use are no longer those in the files.
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
