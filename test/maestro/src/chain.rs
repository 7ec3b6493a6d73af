//! The whole chain as real processes: a broker, servers, agents and their clusters, each of which a test may kill and
//! restart.
//!
//! Every process has a certificate; the broker is ours or a real mosquitto; servers share a store or have the embedded one.

mod broker;
pub mod broker_client;
mod cluster;
pub mod fault_proxy;
mod random;
mod source;
pub mod workload;

use anyhow::{Context, Result};
use aro_fixtures::{Reply, TestClient, free_port, wait};
use aro_harness::{Process, StoreChoice};
use serde_json::Value;

pub use broker::{Broker, BrokerKind};
pub use broker_client::BrokerClient;
pub use cluster::Cluster;
pub use fault_proxy::FaultProxy;
pub use random::SeededRandom;
pub use source::{Source, config_map, spec};
pub use workload::{Progress, Workload};

use crate::pki::{Pki, text};

/// A chain.
pub struct Chain {
    /// The authority of the broker, servers and agents.
    pub pki: Pki,
    /// The authority of sources and the gRPC listener.
    pub sources: Pki,
    pub broker: Broker,
    pub servers: Vec<Process>,
    store: StoreChoice,
    consumers: Vec<String>,
    settings: Vec<(&'static str, String)>,
}

impl Chain {
    /// A broker and one server on the embedded store, with these consumers.
    pub async fn start(kind: BrokerKind, consumers: &[&str]) -> Result<Option<Self>> {
        Self::on(kind, StoreChoice::Embedded, consumers).await
    }

    /// The same on another store. `None`, with a log line, if the broker is not installed.
    pub async fn on(kind: BrokerKind, store: StoreChoice, consumers: &[&str]) -> Result<Option<Self>> {
        Self::with(kind, store, consumers, &[]).await
    }

    /// The same with additional settings for the servers.
    pub async fn with(
        kind: BrokerKind,
        store: StoreChoice,
        consumers: &[&str],
        settings: &[(&'static str, &str)],
    ) -> Result<Option<Self>> {
        let (pki, sources) = (Pki::new()?, Pki::new()?);
        let Some(broker) = Broker::start(kind, &pki).await? else { return Ok(None) };
        let consumers = consumers.iter().map(|name| (*name).to_owned()).collect();
        let settings = settings.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        let mut chain = Self { pki, sources, broker, servers: Vec::new(), store, consumers, settings };
        chain.add_server().await?;
        Ok(Some(chain))
    }

    /// Adds a server on the same store, which must be a shared one.
    pub async fn add_server(&mut self) -> Result<()> {
        let (broker, server) = (self.pki.identity("maestro")?, self.sources.identity("grpc")?);
        let consumers = serde_json::to_string(&self.consumers)?;
        let replica = format!("maestro-{}", self.servers.len());
        let address = self.broker.address().to_string();
        let settings: Vec<(&str, String)> = vec![
            ("maestro.broker", address),
            ("maestro.client_id", replica),
            ("maestro.broker_cert_file", text(&broker.certificate)),
            ("maestro.broker_key_file", text(&broker.key)),
            ("maestro.broker_ca_file", text(&self.pki.bundle())),
            ("maestro.grpc_cert_file", text(&server.certificate)),
            ("maestro.grpc_key_file", text(&server.key)),
            ("maestro.grpc_client_ca_file", text(&self.sources.bundle())),
            ("maestro.consumers", consumers),
            // Sources detect a dead server by missing heartbeats; tests shorten the interval.
            ("maestro.heartbeat", "500ms".to_owned()),
        ];
        // Servers keep their address across restarts, so that clients find them again.
        let (rest, grpc) = (free_port()?, free_port()?);
        let mut settings = settings;
        settings.push(("maestro.listen", format!("127.0.0.1:{rest}")));
        settings.push(("maestro.grpc_listen", format!("127.0.0.1:{grpc}")));
        settings.extend(self.settings.iter().cloned());
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
        self.servers.push(Process::start_role_on("maestro server", self.store.clone(), &settings).await?);
        Ok(())
    }

    /// An agent of a consumer on a cluster.
    pub async fn agent(&self, consumer: &str, cluster: &Cluster) -> Result<Process> {
        agent_of(&self.pki, consumer, cluster, &self.broker.address().to_string()).await
    }

    /// A source that publishes and subscribes at one of the servers.
    pub fn source(&self, name: &str, server: usize) -> Result<Source> {
        let address = self.servers[server].addr("maestro-grpc").context("the gRPC door")?;
        Source::new(name, address, self.sources.identity(name)?)
    }

    /// The REST API of a server.
    pub fn rest(&self, server: usize) -> Result<TestClient> {
        let address = self.servers[server].addr("maestro").context("the REST API")?;
        Ok(TestClient::new(format!("http://{address}")))
    }

    /// A bundle as REST returns it.
    pub async fn bundle(&self, id: &str) -> Result<Reply> {
        self.rest(0)?.get(&format!("/api/maestro/v1/resource-bundles/{id}")).await
    }

    /// Waits until a bundle meets a condition.
    pub async fn until(&self, id: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut last = Value::Null;
        let deadline = tokio::time::Instant::now() + wait::DEADLINE;
        while tokio::time::Instant::now() < deadline {
            if let Ok(reply) = self.bundle(id).await {
                last = reply.json();
                if wanted(&last) {
                    return Ok(last);
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        anyhow::bail!("waited in vain for {what}; the bundle is {last:#}")
    }

    /// Waits until a version of a bundle is applied, available and reported.
    pub async fn settled(&self, id: &str, version: i64) -> Result<Value> {
        self.until(id, "the bundle to be applied and available", |bundle| {
            bundle["version"] == version
                && bundle["status"]["ObservedVersion"] == version
                && condition(bundle, "Applied") == Some("True")
                && condition(bundle, "Available") == Some("True")
        })
        .await
    }

    /// Waits until a bundle is removed.
    pub async fn gone(&self, id: &str) -> Result<()> {
        wait::until("the bundle to be gone", || async {
            let reply = self.bundle(id).await.ok();
            Ok(reply.filter(|reply| reply.status == 404).map(drop))
        })
        .await
    }

    /// The ledger entries that are not delivered.
    pub async fn undelivered(&self) -> Result<Vec<Value>> {
        let reply =
            self.rest(0)?.get("/api/aro/maestro/v1/deliveries?state=undelivered").await?.expect(200)?;
        Ok(reply.json()["items"].as_array().cloned().unwrap_or_default())
    }

    /// Waits until everything is delivered.
    pub async fn all_delivered(&self) -> Result<()> {
        wait::until("everything to be delivered", || async {
            Ok(self.undelivered().await.ok().filter(Vec::is_empty).map(drop))
        })
        .await
    }
}

/// The agent of a consumer on a cluster, at a broker.
pub async fn agent_of(pki: &Pki, consumer: &str, cluster: &Cluster, broker: &str) -> Result<Process> {
    let identity = pki.identity(consumer)?;
    let settings = [
        ("maestro_agent.consumer", consumer.to_owned()),
        ("maestro_agent.broker", broker.to_owned()),
        // The broker's address may change; the names of the records must not.
        ("maestro_agent.hub_id", "test".to_owned()),
        ("maestro_agent.cert_file", text(&identity.certificate)),
        ("maestro_agent.key_file", text(&identity.key)),
        ("maestro_agent.ca_file", text(&pki.bundle())),
        ("cluster.kubeconfig", text(&cluster.kubeconfig())),
        ("cluster.context", cluster.name.clone()),
    ];
    let settings: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
    Process::start_role("maestro agent", &settings).await
}

/// The sum of a counter of a process over all labels that contain a text; 0 if there is none.
pub async fn metric(process: &Process, name: &str, with: &str) -> Result<u64> {
    let address = process.addr("admin").context("the admin door")?;
    let reply = TestClient::new(format!("http://{address}")).get("/metrics").await?.expect(200)?;
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    let of_name = |line: &&str| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' '])) && line.contains(with)
    };
    Ok(text.lines().filter(of_name).filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum())
}

/// A status feedback value of a manifest.
pub fn feedback<'a>(bundle: &'a Value, ordinal: usize, name: &str) -> Option<&'a str> {
    let values = &bundle["status"]["resourceStatus"][ordinal]["statusFeedback"]["values"];
    values.as_array()?.iter().find(|value| value["name"] == name)?["fieldValue"]["string"].as_str()
}

/// The status of a condition of a bundle.
pub fn condition<'a>(bundle: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = bundle["status"]["conditions"].as_array()?;
    conditions.iter().find(|one| one["type"] == kind)?["status"].as_str()
}
