//! The broker of a chain.

use std::net::SocketAddr;

use anyhow::Result;
use aro_fixtures::{Mosquitto, free_port};
use aro_harness::Process;

use crate::pki::{Pki, text};

/// Which broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokerKind {
    /// `aro broker`.
    Ours,
    /// A real mosquitto.
    Mosquitto,
}

/// A broker with a fixed address.
pub enum Broker {
    Ours(Process, SocketAddr),
    Mosquitto(Mosquitto),
}

impl Broker {
    /// Starts one; `None`, with a log line, if it is not installed.
    pub async fn start(kind: BrokerKind, pki: &Pki) -> Result<Option<Self>> {
        let files = pki.broker()?;
        match kind {
            BrokerKind::Ours => {
                let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
                let settings = [
                    ("broker.listen", address.to_string()),
                    ("broker.cert_file", text(&files.certificate)),
                    ("broker.key_file", text(&files.key)),
                    ("broker.client_ca_file", text(&files.authorities)),
                ];
                let settings: Vec<(&str, &str)> =
                    settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
                Ok(Some(Self::Ours(Process::start_role("broker", &settings).await?, address)))
            }
            BrokerKind::Mosquitto => {
                let mosquitto = Mosquitto::start(&files).await?;
                if mosquitto.is_none() {
                    aro_prerequisites::skip("mosquitto is not installed; `make deps` installs it");
                }
                Ok(mosquitto.map(Self::Mosquitto))
            }
        }
    }

    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Ours(_, address) => *address,
            Self::Mosquitto(mosquitto) => mosquitto.address(),
        }
    }

    /// `kill -9`.
    pub async fn kill(&mut self) -> Result<()> {
        match self {
            Self::Ours(process, _) => process.kill(),
            Self::Mosquitto(mosquitto) => mosquitto.kill().await,
        }
    }

    /// Restarts it at its address.
    pub async fn start_again(&mut self) -> Result<()> {
        match self {
            Self::Ours(process, _) => process.start_again().await,
            Self::Mosquitto(mosquitto) => mosquitto.run().await,
        }
    }
}
