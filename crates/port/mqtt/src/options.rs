//! How a link connects.

use std::path::PathBuf;
use std::time::Duration;

use aro_base::Secret;
use aro_pki::IdentityPaths;

/// How a link connects and what it allows itself.
#[derive(Debug, Clone)]
pub struct LinkOptions {
    /// `host:port`, resolved before every connect.
    pub broker: String,
    /// The name the broker knows this client by; of two with the same name the older one is thrown out.
    pub client_id: String,
    /// A name for brokers that want one; with a certificate most do not.
    pub username: Option<String>,
    /// Its password: in a file that is read before every connect.
    pub password_file: Option<PathBuf>,
    /// Its password, given directly. The file wins.
    pub password: Option<Secret<String>>,
    /// TLS 1.3 with a client certificate. Without, the connection is plain.
    pub credentials: Option<Credentials>,
    /// The name the broker's certificate must have, if it is not the host of `broker`.
    pub server_name: Option<String>,
    /// How often life is checked.
    pub keep_alive: Duration,
    /// How long connecting may take, from the name to the confirmed subscription.
    pub dial_timeout: Duration,
    /// How long a publish may take, waiting for a place included.
    pub publish_timeout: Duration,
    /// The largest packet sent or taken; the broker may allow less.
    pub max_packet: usize,
    /// How many publishes may be unacknowledged; the broker may allow fewer.
    pub window: u16,
    /// How many bytes of publishes may be unacknowledged.
    pub window_bytes: usize,
    /// How many messages the broker may send before it has to wait for acks.
    pub receive_window: u16,
    /// The first pause before connecting again; it doubles up to `longest_pause`, with jitter.
    pub first_pause: Duration,
    /// The longest pause before connecting again.
    pub longest_pause: Duration,
    /// The pause after the broker refused a subscription: somebody has to change a rule first.
    pub refused_pause: Duration,
    /// How often certificate files are looked at; when they changed, the link connects anew.
    pub reread: Duration,
}

/// What a client proves itself with, and whom it trusts.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// In files that somebody may rotate. The bundle holds the authorities of brokers.
    Files(IdentityPaths),
    /// In memory, as PEM; never changes.
    Inline { certificate: String, key: Secret<String>, authorities: String },
}

impl LinkOptions {
    /// With the usual bounds.
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
            first_pause: Duration::from_millis(50),
            longest_pause: Duration::from_secs(5),
            refused_pause: Duration::from_secs(15),
            reread: Duration::from_secs(10),
        }
    }
}
