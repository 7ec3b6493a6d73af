//! Somebody else at the broker: hears what passes by, and says what a test wants said.

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

/// A link of somebody's.
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

/// Somebody at a broker. It goes when this is dropped.
pub struct Ear {
    pub link: Link,
    heard: Arc<Heard>,
    scope: Scope,
}

#[derive(Default)]
struct Heard(Mutex<Vec<Event>>);

#[async_trait]
impl Inbox for Heard {
    async fn deliver(&self, delivery: Delivery) {
        if let Ok(event) = mqtt::read(&delivery.message) {
            self.0.lock().push(event);
        }
        delivery.ack.done();
    }
}

impl Ear {
    /// With the server's certificate: gets a copy of all that agents say.
    pub async fn of_server(pki: &Pki, broker: &str) -> Result<Self> {
        Self::connected(pki, "maestro", broker, vec![topics().from_agents(None)]).await
    }

    /// With a consumer's certificate: gets a copy of what it is told.
    pub async fn of_consumer(pki: &Pki, consumer: &str, broker: &str) -> Result<Self> {
        Self::connected(pki, consumer, broker, vec![topics().to_agent(consumer)]).await
    }

    async fn connected(pki: &Pki, identity: &str, broker: &str, filters: Vec<String>) -> Result<Self> {
        let ear = Self::connecting(pki, identity, broker, filters)?;
        tokio::time::timeout(wait::DEADLINE, ear.link.connected()).await.context("the broker takes us")?;
        Ok(ear)
    }

    /// Not connected yet, perhaps never: the broker may not like the filters.
    pub fn connecting(pki: &Pki, identity: &str, broker: &str, filters: Vec<String>) -> Result<Self> {
        let (heard, scope) = (Arc::new(Heard::default()), Scope::root("ear"));
        let link = link(pki, identity, broker, filters, heard.clone(), &scope)?;
        Ok(Self { link, heard, scope })
    }

    /// Everything heard since the last [`Ear::forget`].
    pub fn heard(&self) -> Vec<Event> {
        self.heard.0.lock().clone()
    }

    pub fn forget(&self) {
        self.heard.0.lock().clear();
    }

    /// How many events of a kind were heard.
    pub fn count(&self, which: impl Fn(&Event) -> bool) -> usize {
        self.heard.0.lock().iter().filter(|event| which(event)).count()
    }

    /// Waits for an event.
    pub async fn hears(&self, what: &str, wanted: impl Fn(&Event) -> bool) -> Result<Event> {
        wait::until(what, || async { Ok(self.heard.0.lock().iter().find(|event| wanted(event)).cloned()) })
            .await
    }

    /// Says an event as the server, to an agent.
    pub async fn tell(&self, consumer: &str, event: &Event) -> Result<(), PublishError> {
        self.link.publish(&topics().to_agent(consumer), mqtt::write(event)).await
    }

    /// Says an event as an agent of a consumer.
    pub async fn say(&self, consumer: &str, event: &Event) -> Result<(), PublishError> {
        self.link.publish(&topics().from_agent(consumer), mqtt::write(event)).await
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.scope.token().cancel();
    }
}
