//! Another client of the broker: records what it receives, and publishes what a test wants.

use std::sync::Arc;

use anyhow::{Context, Result};
use aro_bundle::{Event, Topics, mqtt};
use aro_fixtures::wait;
use aro_mqtt::{Credentials, Delivery, Inbox, Link, LinkOptions, LinkPorts, PublishError};
use aro_net::SystemResolve;
use aro_runtime::{Metrics, Scope, SystemClock};
use async_trait::async_trait;
use parking_lot::Mutex;

use crate::pki::Pki;

/// The topics of the servers in tests.
pub fn topics() -> Topics {
    Topics::of_source("maestro")
}

/// A connection with an identity.
pub fn link(
    pki: &Pki,
    identity: &str,
    broker: &str,
    filters: Vec<String>,
    inbox: Arc<dyn Inbox>,
    scope: &Scope,
) -> Result<Link> {
    let mut options = LinkOptions::new(broker, format!("test-{}", uuid::Uuid::new_v4().simple()));
    options.credentials = Some(Credentials::Files(pki.identity(identity)?));
    let ports =
        LinkPorts { resolve: Arc::new(SystemResolve), clock: SystemClock::shared(), metrics: Metrics::new() };
    Ok(Link::start(options, filters, inbox, ports, scope))
}

/// A client of a broker. Dropping it disconnects.
pub struct BrokerClient {
    pub link: Link,
    received: Arc<Received>,
    scope: Scope,
}

#[derive(Default)]
struct Received(Mutex<Vec<Event>>);

#[async_trait]
impl Inbox for Received {
    async fn deliver(&self, delivery: Delivery) {
        if let Ok(event) = mqtt::read(&delivery.message) {
            self.0.lock().push(event);
        }
        delivery.ack.done();
    }
}

impl BrokerClient {
    /// With the server's certificate: gets a copy of all events of agents.
    pub async fn of_server(pki: &Pki, broker: &str) -> Result<Self> {
        Self::connected(pki, "maestro", broker, vec![topics().from_agents(None)]).await
    }

    /// With a consumer's certificate: gets a copy of the consumer's spec events.
    pub async fn of_consumer(pki: &Pki, consumer: &str, broker: &str) -> Result<Self> {
        Self::connected(pki, consumer, broker, vec![topics().to_agent(consumer)]).await
    }

    async fn connected(pki: &Pki, identity: &str, broker: &str, filters: Vec<String>) -> Result<Self> {
        let broker_client = Self::connecting(pki, identity, broker, filters)?;
        tokio::time::timeout(wait::DEADLINE, broker_client.link.connected())
            .await
            .context("the broker takes us")?;
        Ok(broker_client)
    }

    /// Not connected yet, perhaps never: the broker may reject the filters.
    pub fn connecting(pki: &Pki, identity: &str, broker: &str, filters: Vec<String>) -> Result<Self> {
        let (received, scope) = (Arc::new(Received::default()), Scope::root("broker_client"));
        let link = link(pki, identity, broker, filters, received.clone(), &scope)?;
        Ok(Self { link, received, scope })
    }

    /// Everything received since the last [`BrokerClient::clear`].
    pub fn received(&self) -> Vec<Event> {
        self.received.0.lock().clone()
    }

    pub fn clear(&self) {
        self.received.0.lock().clear();
    }

    /// How many received events match.
    pub fn count(&self, which: impl Fn(&Event) -> bool) -> usize {
        self.received.0.lock().iter().filter(|event| which(event)).count()
    }

    /// Waits for an event.
    pub async fn wait_for(&self, what: &str, wanted: impl Fn(&Event) -> bool) -> Result<Event> {
        wait::until(what, || async { Ok(self.received.0.lock().iter().find(|event| wanted(event)).cloned()) })
            .await
    }

    /// Publishes an event as the server, to an agent.
    pub async fn publish_as_server(&self, consumer: &str, event: &Event) -> Result<(), PublishError> {
        self.link.publish(&topics().to_agent(consumer), mqtt::write(event)).await
    }

    /// Publishes an event as the agent of a consumer.
    pub async fn publish_as_agent(&self, consumer: &str, event: &Event) -> Result<(), PublishError> {
        self.link.publish(&topics().from_agent(consumer), mqtt::write(event)).await
    }
}

impl Drop for BrokerClient {
    fn drop(&mut self) {
        self.scope.token().cancel();
    }
}
