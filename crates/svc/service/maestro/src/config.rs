//! The server's configuration.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use aro_bundle::Topics;
use aro_net::HostPort;
use aro_pki::{HalfGiven, IdentityPaths};
use aro_runtime::{ByteSize, Period, Problems, Section};
use serde::{Deserialize, Serialize};

use crate::rows::check_name;

/// How statuses are distributed over replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SubscriptionType {
    /// Each message is delivered to one replica, chosen by the broker.
    Shared,
    /// Each message is delivered to every replica, for brokers without shared subscriptions; the first to store it wins.
    Broadcast,
}

aro_runtime::section! {
    /// The Maestro server.
    pub struct MaestroConfig in "maestro" {
        /// The address of the REST API. It does not authenticate: keep it on loopback or inside a mesh.
        pub listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8000)),
        /// The address of the gRPC API for sources.
        pub grpc_listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8090)),
        /// Where `aro up --debug-ports` opens the REST API, which does not authenticate callers. Loopback only.
        pub debug_listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8002)),
        /// Where `aro up --debug-ports` opens the gRPC API for sources, which requires a certificate of the region's
        /// authority for sources (`region/sources` in the data directory). Loopback only. Not set: it stays closed.
        pub debug_grpc_listen: Option<SocketAddr> = None,
        /// Set this if a mesh or a network policy protects `listen`. Required for any address but loopback.
        pub behind_mesh: bool = false,
        /// The certificate (PEM) of the gRPC listener. With it, sources authenticate by client certificates.
        pub grpc_cert_file: Option<PathBuf> = None,
        /// The key (PEM) of that certificate.
        pub grpc_key_file: Option<PathBuf> = None,
        /// The authorities (PEM) of sources' certificates. Use one for sources alone: every certificate it issues may create
        /// bundles, so it must not be the authority of agents, `broker.client_ca_file`.
        pub grpc_client_ca_file: Option<PathBuf> = None,
        /// Which certificate may act for which source, as `certificate name:source`; `*` is every source. A certificate may
        /// always act for the source of its own name, unless that is or was a consumer's: then it is an agent's certificate.
        pub grpc_sources: Vec<String> = Vec::new(),
        /// The interval of heartbeats to subscribers.
        pub heartbeat: Period = Period::secs(10),
        /// The server's source id, which is part of the topics.
        pub source_id: String = "maestro".to_owned(),
        /// The name of this replica, which is its MQTT client id. Not set: `maestro-` and a random suffix.
        pub client_id: Option<String> = None,
        /// The address of the broker, `host:port`.
        pub broker: String = "127.0.0.1:8883".to_owned(),
        /// The certificate (PEM) for the broker. Without one the connection is plain.
        pub broker_cert_file: Option<PathBuf> = None,
        /// The key (PEM) of that certificate.
        pub broker_key_file: Option<PathBuf> = None,
        /// The authorities (PEM) of the broker's certificate.
        pub broker_ca_file: Option<PathBuf> = None,
        /// The name in the broker's certificate, if it is not the host in `broker`.
        pub broker_server_name: Option<String> = None,
        /// The topic of spec events, if it is not `sources/<source id>/consumers/+/sourceevents`.
        pub source_events: Option<String> = None,
        /// The topic of status events, if it is not `sources/<source id>/consumers/+/agentevents`.
        pub agent_events: Option<String> = None,
        /// `shared` or `broadcast`: whether the broker distributes statuses over replicas.
        pub subscription_type: SubscriptionType = SubscriptionType::Shared,
        /// Consumers created at start if they do not exist.
        pub consumers: Vec<String> = Vec::new(),
        /// The largest event on the broker; larger bundles are rejected.
        pub max_event: ByteSize = ByteSize::bytes(512 * 1024),
        /// The age from which an undelivered bundle raises the alarm metric.
        pub undelivered_alarm: Period = Period::secs(5),
    }
}

impl MaestroConfig {
    /// The files of the gRPC listener's TLS identity; `None` for a plain listener.
    pub(crate) fn grpc_tls(&self) -> Result<Option<IdentityPaths>, HalfGiven> {
        IdentityPaths::of_settings(
            ("grpc_cert_file", &self.grpc_cert_file),
            ("grpc_key_file", &self.grpc_key_file),
            ("grpc_client_ca_file", &self.grpc_client_ca_file),
        )
    }

    /// The files of the server's TLS identity for the broker; `None` for a plain connection.
    pub(crate) fn broker_tls(&self) -> Result<Option<IdentityPaths>, HalfGiven> {
        IdentityPaths::of_settings(
            ("broker_cert_file", &self.broker_cert_file),
            ("broker_key_file", &self.broker_key_file),
            ("broker_ca_file", &self.broker_ca_file),
        )
    }

    /// The topics.
    pub(crate) fn topics(&self) -> Result<Topics, String> {
        let plain = Topics::of_source(&self.source_id);
        let source_events = self.source_events.clone().unwrap_or_else(|| plain.to_agent("+"));
        let agent_events = self.agent_events.clone().unwrap_or_else(|| plain.from_agent("+"));
        let topics = Topics::parse(&source_events, &agent_events).map_err(|error| error.to_string())?;
        if topics.source() == self.source_id {
            Ok(topics)
        } else {
            Err(format!("the topic names the source `{}`, not `{}`", topics.source(), self.source_id))
        }
    }
}

impl Section for MaestroConfig {
    fn examine(&self, problems: &mut Problems) {
        if !self.listen.ip().is_loopback() && !self.behind_mesh {
            problems.add(
                "listen",
                "is not a loopback address, and the REST API does not authenticate. Listen on 127.0.0.1, or set maestro.behind_mesh = true if a mesh protects it",
            );
        }
        if !self.debug_listen.ip().is_loopback() {
            problems
                .add("debug_listen", "must be a loopback address: debug ports do not authenticate callers");
        }
        if self.debug_grpc_listen.is_some_and(|address| !address.ip().is_loopback()) {
            problems.add("debug_grpc_listen", "must be a loopback address, as all debug ports");
        }
        let grpc = self.grpc_tls();
        for half in [grpc.as_ref().err(), self.broker_tls().as_ref().err()].into_iter().flatten() {
            problems.add(half.key, half.to_string());
        }
        if matches!(grpc, Ok(None)) && !self.grpc_listen.ip().is_loopback() && !self.behind_mesh {
            problems.add(
                "grpc_listen",
                "is not a loopback address: give certificates, or set maestro.behind_mesh = true",
            );
        }
        for grant in &self.grpc_sources {
            if grant.split_once(':').is_none_or(|(name, source)| name.is_empty() || source.is_empty()) {
                problems.add("grpc_sources", format!("`{grant}` is not `certificate name:source`"));
            }
        }
        if let Err(error) = self.topics() {
            problems.add("source_events", error);
        }
        if HostPort::parse(&self.broker).is_none() {
            problems.add("broker", "must be host:port");
        }
        for name in &self.consumers {
            if let Err(fault) = check_name(name) {
                problems.add("consumers", format!("`{name}` cannot be a consumer: {}", fault.reason));
            }
        }
        if self.heartbeat.get().is_zero() {
            problems.add("heartbeat", "must not be zero");
        }
        if self.max_event.get() < 4096 {
            problems.add("max_event", "must be at least 4KiB");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(config: MaestroConfig) -> Vec<String> {
        config.check().err().map(|all| all.iter().map(|one| one.key.clone()).collect()).unwrap_or_default()
    }

    #[test]
    fn unauthenticated_listener_outside_loopback_requires_behind_mesh() {
        assert!(problems(MaestroConfig::default()).is_empty());
        let open: SocketAddr = ([0, 0, 0, 0], 8000).into();
        let rest = MaestroConfig { listen: open, ..MaestroConfig::default() };
        assert_eq!(problems(rest), ["maestro.listen"]);
        let grpc = MaestroConfig { grpc_listen: open, ..MaestroConfig::default() };
        assert_eq!(problems(grpc.clone()), ["maestro.grpc_listen"]);
        let file = || Some(PathBuf::from("/x"));
        let half = MaestroConfig { grpc_cert_file: file(), ..grpc.clone() };
        assert_eq!(problems(half), ["maestro.grpc_cert_file"]);
        let tls = MaestroConfig {
            grpc_cert_file: file(),
            grpc_key_file: file(),
            grpc_client_ca_file: file(),
            ..grpc
        };
        assert!(problems(tls).is_empty());
        let half = MaestroConfig { broker_key_file: file(), ..MaestroConfig::default() };
        assert_eq!(problems(half), ["maestro.broker_key_file"]);
    }

    #[test]
    fn topics_names_and_addresses_are_checked() {
        let other = MaestroConfig {
            source_events: Some("sources/other/consumers/+/sourceevents".to_owned()),
            ..MaestroConfig::default()
        };
        assert_eq!(problems(other), ["maestro.source_events"]);
        let nowhere = MaestroConfig { broker: "nohost".to_owned(), ..MaestroConfig::default() };
        assert_eq!(problems(nowhere), ["maestro.broker"]);
        let names = vec!["c1".to_owned(), "Bad_Name".to_owned()];
        assert_eq!(
            problems(MaestroConfig { consumers: names, ..MaestroConfig::default() }),
            ["maestro.consumers"]
        );
        let grants = MaestroConfig { grpc_sources: vec!["no-source".to_owned()], ..MaestroConfig::default() };
        assert_eq!(problems(grants), ["maestro.grpc_sources"]);
    }
}
