//! The broker's configuration.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use aro_pki::{HalfGiven, IdentityPaths};
use aro_runtime::{ByteSize, Period, Problems, Section};

aro_runtime::section! {
    /// The embedded MQTT broker.
    pub struct BrokerConfig in "broker" {
        /// The listen address, with TLS if there is a certificate.
        pub listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8883)),
        /// The broker's certificate (PEM). Without it connections are plain, which is allowed on loopback only.
        pub cert_file: Option<PathBuf> = None,
        /// The certificate's key (PEM).
        pub key_file: Option<PathBuf> = None,
        /// The authorities of clients' certificates (PEM). The common name is the client's identity. Use an authority for
        /// agents and servers alone: every certificate it issues is a consumer here.
        pub client_ca_file: Option<PathBuf> = None,
        /// How often the certificate files are checked; a rotated certificate is used from the next connection on.
        pub reread: Period = Period::secs(10),
        /// The source in the topics, `sources/<source_id>/consumers/<consumer>/…`.
        pub source_id: String = "maestro".to_owned(),
        /// The identities of servers. Every other identity is the consumer of its name and may use only its own topics.
        pub servers: Vec<String> = vec!["maestro".to_owned()],
        /// Clients connected at once.
        pub max_connections: usize = 10_000,
        /// Connections at once that have not sent their CONNECT; a further one ends the oldest of them.
        pub max_handshakes: usize = 1000,
        /// Connections of one address; further ones are closed. Agents behind one gateway share an address.
        pub max_connections_per_peer: usize = 2000,
        /// The same for a loopback address, which all clients on this machine share.
        pub max_loopback_connections: usize = 10_000,
        /// The largest packet accepted.
        pub max_packet: ByteSize = ByteSize::bytes(512 * 1024),
        /// Unacknowledged publishes of one client.
        pub receive_maximum: u16 = 1000,
        /// Messages queued for one client. One that is too slow is disconnected, and resyncs.
        pub queue_messages: usize = 20_000,
        /// Bytes of messages queued for one client.
        pub queue_bytes: ByteSize = ByteSize::mib(128),
        /// Filters one client may subscribe to.
        pub max_subscriptions: usize = 100,
    }
}

impl BrokerConfig {
    /// The files of the broker's TLS identity; `None` for plain connections.
    pub(crate) fn tls(&self) -> Result<Option<IdentityPaths>, HalfGiven> {
        IdentityPaths::of_settings(
            ("cert_file", &self.cert_file),
            ("key_file", &self.key_file),
            ("client_ca_file", &self.client_ca_file),
        )
    }
}

impl Section for BrokerConfig {
    fn examine(&self, problems: &mut Problems) {
        let tls = self.tls();
        if let Err(half) = &tls {
            problems.add(half.key, half.to_string());
        }
        if matches!(tls, Ok(None)) && !self.listen.ip().is_loopback() {
            problems.add(
                "listen",
                "is not a loopback address: without TLS clients are not authenticated. Listen on 127.0.0.1, or set cert_file, key_file and client_ca_file",
            );
        }
        let word = |text: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        if !word(&self.source_id) {
            problems.add("source_id", "must be lower-case letters, digits and '-'");
        }
        if self.servers.is_empty() || self.servers.iter().any(|server| !crate::topics::is_name(server)) {
            problems.add("servers", "must name at least one identity, and none may hold '+', '#' or '/'");
        }
        for (key, value) in [
            ("max_connections", self.max_connections),
            ("max_handshakes", self.max_handshakes),
            ("max_connections_per_peer", self.max_connections_per_peer),
            ("max_loopback_connections", self.max_loopback_connections),
            ("queue_messages", self.queue_messages),
            ("receive_maximum", usize::from(self.receive_maximum)),
            ("max_subscriptions", self.max_subscriptions),
        ] {
            if value == 0 {
                problems.add(key, "must be at least 1");
            }
        }
        let largest = self.max_packet.get();
        if !(1024..=256 * 1024 * 1024).contains(&largest) {
            problems.add("max_packet", "must be between 1KiB and 256MiB");
        }
        if self.queue_bytes.get() < largest {
            problems.add("queue_bytes", "must be at least max_packet");
        }
    }
}
