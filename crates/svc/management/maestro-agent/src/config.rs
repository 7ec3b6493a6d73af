//! The agent's configuration.

use std::path::PathBuf;

use aro_bundle::Topics;
use aro_mqtt::{Credentials, LinkOptions};
use aro_net::HostPort;
use aro_pki::{HalfGiven, IdentityPaths};
use aro_runtime::{ByteSize, Period, Problems, Section};

aro_runtime::section! {
    /// Maestro's agent on a management cluster.
    pub struct MaestroAgentConfig in "maestro_agent" {
        /// The name of the consumer that this agent serves.
        pub consumer: String = "local".to_owned(),
        /// The address of the broker, `host:port`.
        pub broker: String = "127.0.0.1:8883".to_owned(),
        /// The source in the topics, `sources/<source_id>/consumers/<consumer>/…`.
        pub source_id: String = "maestro".to_owned(),
        /// The topic of spec events, if it is not Maestro's; `+` stands for the consumer.
        pub source_events: Option<String> = None,
        /// The topic of status events, if it is not Maestro's; `+` stands for the consumer.
        pub agent_events: Option<String> = None,
        /// The source in this agent's events; `<consumer>-work-agent` if not set. The MQTT client id is this with `-client`.
        pub agent_id: Option<String> = None,
        /// The hub in the names of the records on the cluster. If not set, a digest of `broker` as in the original agent;
        /// a changed broker address then orphans everything applied before.
        pub hub_id: Option<String> = None,
        /// The client certificate (PEM); its common name must be the consumer. Without it the connection is plain.
        pub cert_file: Option<PathBuf> = None,
        /// The certificate's key (PEM).
        pub key_file: Option<PathBuf> = None,
        /// The authorities of the broker's certificate (PEM).
        pub ca_file: Option<PathBuf> = None,
        /// The name in the broker's certificate, if it is not the host of `broker`.
        pub server_name: Option<String> = None,
        /// How long the objects of an orphaned work are kept; for ever if not set.
        pub eviction_grace: Option<Period> = None,
        /// How often a work is reconciled without an event of its objects.
        pub drift_check: Period = Period::secs(300),
        /// Works applied concurrently.
        pub workers: usize = 32,
        /// The largest JSON value in status feedback.
        pub max_json_raw: ByteSize = ByteSize::mib(1),
        /// Statuses in flight to the broker at once.
        pub sending: usize = 256,
    }
}

impl MaestroAgentConfig {
    /// The source in this agent's events.
    pub(crate) fn agent_id(&self) -> String {
        self.agent_id.clone().unwrap_or_else(|| format!("{}-work-agent", self.consumer))
    }

    /// The topics, if they are valid.
    pub(crate) fn topics(&self) -> Result<Topics, String> {
        let usual = |last: &str| format!("sources/{}/consumers/+/{last}", self.source_id);
        let source = self.source_events.clone().unwrap_or_else(|| usual("sourceevents"));
        let agent = self.agent_events.clone().unwrap_or_else(|| usual("agentevents"));
        Topics::parse(&source, &agent).map_err(|error| error.to_string())
    }

    /// The files of the agent's TLS identity; `None` for a plain connection.
    fn tls(&self) -> Result<Option<IdentityPaths>, HalfGiven> {
        IdentityPaths::of_settings(
            ("cert_file", &self.cert_file),
            ("key_file", &self.key_file),
            ("ca_file", &self.ca_file),
        )
    }

    /// The options of the broker connection.
    pub(crate) fn link(&self) -> LinkOptions {
        let mut link = LinkOptions::new(self.broker.clone(), format!("{}-client", self.agent_id()));
        link.max_packet = aro_bundle::MAX_PACKET;
        link.server_name.clone_from(&self.server_name);
        // The checked configuration has all three files or none.
        if let Ok(Some(files)) = self.tls() {
            link.credentials = Some(Credentials::Files(files));
        } else {
            // A broker without TLS authorizes by user name.
            link.username = Some(self.consumer.clone());
        }
        link
    }
}

impl Section for MaestroAgentConfig {
    fn examine(&self, problems: &mut Problems) {
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.consumer.is_empty() || self.consumer.len() > 63 || !self.consumer.chars().all(word) {
            problems.add("consumer", "must be lower-case letters, digits and '-', at most 63");
        }
        if let Err(reason) = self.topics() {
            problems.add("source_events", reason);
        }
        if let Err(half) = self.tls() {
            problems.add(half.key, half.to_string());
        }
        if HostPort::parse(&self.broker).is_none() {
            problems.add("broker", "must be host:port");
        }
        if self.hub_id.as_deref() == Some("") {
            problems.add("hub_id", "must not be empty; omit it for the digest of the broker's address");
        }
        if self.workers == 0 {
            problems.add("workers", "must be at least 1");
        }
        if self.sending == 0 {
            problems.add("sending", "must be at least 1");
        }
    }
}
