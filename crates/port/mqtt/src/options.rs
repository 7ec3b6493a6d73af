//! Options of a link.

use std::path::PathBuf;
use std::time::Duration;

use aro_base::Secret;
use aro_net::Backoff;
use aro_pki::IdentityPaths;

/// Where a link connects, and its limits.
#[derive(Debug, Clone)]
pub struct LinkOptions {
    /// `host:port`, resolved before every connect.
    pub broker: String,
    /// The MQTT client id. A broker disconnects the older of two clients with one id.
    pub client_id: String,
    /// The user name for brokers that require one; with a certificate most do not.
    pub username: Option<String>,
    /// The file of its password, read before every connect.
    pub password_file: Option<PathBuf>,
    /// Its password. The file takes precedence.
    pub password: Option<Secret<String>>,
    /// TLS 1.3 with a client certificate. Without, the connection is plain.
    pub credentials: Option<Credentials>,
    /// The name in the broker's certificate, if it is not the host of `broker`.
    pub server_name: Option<String>,
    /// The MQTT keep-alive.
    pub keep_alive: Duration,
    /// The deadline of a connect, from name resolution to the confirmed subscription.
    pub dial_timeout: Duration,
    /// The deadline of a publish, including the wait for a slot.
    pub publish_timeout: Duration,
    /// The largest packet sent or accepted; the broker may allow less.
    pub max_packet: usize,
    /// Publishes in flight; the broker may allow fewer.
    pub window: u16,
    /// Bytes of publishes in flight.
    pub window_bytes: usize,
    /// Unacknowledged messages the broker may send.
    pub receive_window: u16,
    /// Delays before a reconnect.
    pub reconnect: Backoff,
    /// The pause after the broker rejected a subscription: its rules have to change first.
    pub refused_pause: Duration,
    /// How often certificate files are checked; when they change, the link reconnects.
    pub reread: Duration,
}

/// The client's certificate and the authorities it accepts.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// In files that may rotate. The bundle holds the authorities of brokers.
    Files(IdentityPaths),
    /// In memory, as PEM; never changes.
    Inline { certificate: String, key: Secret<String>, authorities: String },
}

impl LinkOptions {
    /// Options with default limits.
    pub fn new(broker: impl Into<String>, client_id: impl Into<String>) -> Self {
        Self {
            broker: broker.into(),
            client_id: client_id.into(),
            username: None,
            password_file: None,
            password: None,
            credentials: None,
            server_name: None,
            keep_alive: Duration::from_mins(1),
            dial_timeout: Duration::from_secs(10),
            publish_timeout: Duration::from_secs(30),
            max_packet: 512 * 1024,
            window: 1000,
            window_bytes: 32 * 1024 * 1024,
            receive_window: 1000,
            reconnect: Backoff::new(Duration::from_millis(100), Duration::from_secs(7)).with_jitter(60),
            refused_pause: Duration::from_secs(15),
            reread: Duration::from_secs(10),
        }
    }
}
