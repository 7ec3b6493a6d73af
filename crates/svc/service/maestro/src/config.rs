//! The server's configuration.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use aro_bundle::Topics;
use aro_net::HostPort;
use aro_pki::{HalfGiven, IdentityPaths};
use aro_runtime::{ByteSize, Period, Problems, Section};
use serde::{Deserialize, Serialize};

use crate::rows::check_name;

/// How the server hears agents when there are several replicas of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SubscriptionType {
    /// Each message comes to one replica; the broker shares them out.
    Shared,
    /// Each message comes to every replica, for brokers that cannot share; the first to store it wins.
    Broadcast,
}

aro_runtime::section! {
    /// The Maestro server.
    pub struct MaestroConfig in "maestro" {
        /// Where the REST API listens. It asks nobody who they are: keep it on loopback or inside a mesh.
        pub listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8000)),
        /// Where sources publish and subscribe by gRPC.
        pub grpc_listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8090)),
        /// Where `aro up --debug-ports` opens the REST API, which does not authenticate callers. Loopback only.
        pub debug_listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8002)),
        /// Where `aro up --debug-ports` opens the gRPC API for sources, which requires a certificate of the region's
        /// authority for sources (`region/sources` in the data directory). Loopback only. Not set: it stays closed.
        pub debug_grpc_listen: Option<SocketAddr> = None,
        /// Set this when a mesh or a network policy lets only those in who may use `listen`. Required for any address but
        /// loopback.
        pub behind_mesh: bool = false,
        /// The certificate (PEM) of the gRPC door. With it, sources prove who they are by certificates of their own.
        pub grpc_cert_file: Option<PathBuf> = None,
        /// The key (PEM) of that certificate.
        pub grpc_key_file: Option<PathBuf> = None,
        /// The authorities (PEM) of sources' certificates. Have one for sources alone: whoever it vouches for may make
        /// bundles, so it must not be the one of agents, `broker.client_ca_file`.
        pub grpc_client_ca_file: Option<PathBuf> = None,
        /// Who may speak for which source, as `certificate name:source`; `*` is every source. A certificate may
        /// always speak for the source of its own name, unless that is a consumer's: then it is taken for an agent's.
        pub grpc_sources: Vec<String> = Vec::new(),
        /// How often subscribers are told that somebody is there.
        pub heartbeat: Period = Period::secs(10),
        /// The name under which the server speaks to agents; part of the topics.
        pub source_id: String = "maestro".to_owned(),
        /// What this replica is called, on the broker too. Not set: `maestro-` and something random.
        pub client_id: Option<String> = None,
        /// The broker, as `host:port`.
        pub broker: String = "127.0.0.1:8883".to_owned(),
        /// The certificate (PEM) for the broker. Without one the connection is plain.
        pub broker_cert_file: Option<PathBuf> = None,
        /// The key (PEM) of that certificate.
        pub broker_key_file: Option<PathBuf> = None,
        /// The authorities (PEM) of the broker's certificate.
        pub broker_ca_file: Option<PathBuf> = None,
        /// The name in the broker's certificate, when it is not the host in `broker`.
        pub broker_server_name: Option<String> = None,
        /// The topic of specs, when it is not `sources/<source id>/consumers/+/sourceevents`.
        pub source_events: Option<String> = None,
        /// The topic of statuses, when it is not `sources/<source id>/consumers/+/agentevents`.
        pub agent_events: Option<String> = None,
        /// `shared` or `broadcast`: whether the broker shares statuses out among replicas.
        pub subscription_type: SubscriptionType = SubscriptionType::Shared,
        /// Consumers that are made at the start if they are not there.
        pub consumers: Vec<String> = Vec::new(),
        /// The largest event that goes over the broker; bundles that would be larger are refused.
        pub max_event: ByteSize = ByteSize::bytes(512 * 1024),
        /// From which age on something undelivered raises the alarm metric.
        pub undelivered_alarm: Period = Period::secs(5),
    }
}

impl MaestroConfig {
    /// The files of the gRPC door's identity; none: it is plain.
    pub(crate) fn grpc_tls(&self) -> Result<Option<IdentityPaths>, HalfGiven> {
        IdentityPaths::of_settings(
            ("grpc_cert_file", &self.grpc_cert_file),
            ("grpc_key_file", &self.grpc_key_file),
            ("grpc_client_ca_file", &self.grpc_client_ca_file),
        )
    }

    /// The files of who the server is to the broker; none: the connection is plain.
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
                "is not a loopback address, and the REST API asks nobody who they are. Listen on 127.0.0.1, or set maestro.behind_mesh = true if a mesh lets only those in who may",
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
            problems.add("heartbeat", "must be longer than nothing");
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
    fn nothing_unauthenticated_is_open_to_others_by_accident() {
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
    fn topics_are_of_the_source_that_speaks_and_names_and_addresses_are_such() {
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
        let grants = MaestroConfig { grpc_sources: vec!["nobody".to_owned()], ..MaestroConfig::default() };
        assert_eq!(problems(grants), ["maestro.grpc_sources"]);
    }
}
