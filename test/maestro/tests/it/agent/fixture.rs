//! A broker, an agent, and the test as the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use aro_broker::{Broker, BrokerConfig, BrokerPorts};
use aro_bundle::{Action, BundleStatus, Event, EventType, ManifestBundle, StatusResync, Topics, mqtt};
use aro_fixtures::wait;
use aro_maestro_agent::{MaestroAgent, MaestroAgentConfig, MaestroAgentPorts};
use aro_maestro_e2e::world::World;
use aro_mqtt::{Delivery, Inbox, Link, LinkOptions, LinkPorts};
use aro_net::SystemResolve;
use aro_runtime::{Listener, Metrics, Readiness, Role as _, Scope, Section as _, SystemClock, TaskKind};
use aro_store::SharedStore;
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use parking_lot::Mutex;
use serde_json::{Value, json};

pub const CONSUMER: &str = "c1";

const GRACE: Duration = Duration::from_secs(10);

/// Records the agent's events.
#[derive(Default)]
struct Received(Mutex<Vec<Event>>);

#[async_trait::async_trait]
impl Inbox for Received {
    async fn deliver(&self, delivery: Delivery) {
        let message = mqtt::Message {
            content_type: delivery.message.content_type,
            user_properties: delivery.message.user_properties,
            payload: delivery.message.payload,
        };
        self.0.lock().push(mqtt::read(&message).expect("agents send events"));
        delivery.ack.done();
    }
}

/// The parts of a fixture.
pub struct Fixture {
    address: SocketAddr,
    broker: Option<Scope>,
    agent: Option<Scope>,
    metrics: Metrics,
    store: SharedStore,
    received: Arc<Received>,
    link: Link,
    own: Scope,
    _data: tempfile::TempDir,
}

impl Fixture {
    /// Everything runs, and the agent is connected.
    pub async fn start(world: &World) -> Result<Self> {
        let (address, broker) = broker(([127, 0, 0, 1], 0).into()).await?;
        let data = tempfile::tempdir()?;
        let store = SqliteStore::open(SqliteOptions::new(data.path()), SystemClock::shared())?;
        let (received, own) = (Arc::new(Received::default()), Scope::root("server"));
        let mut options = LinkOptions::new(address.to_string(), "maestro-1");
        options.username = Some("maestro".to_owned());
        let ports = LinkPorts {
            resolve: Arc::new(SystemResolve),
            clock: SystemClock::shared(),
            metrics: Metrics::new(),
        };
        let filters = vec![topics().from_agents(None)];
        let link = Link::start(options, filters, received.clone(), ports, &own);
        tokio::time::timeout(wait::DEADLINE, link.connected()).await.context("the server's link")?;
        let mut fixture = Self {
            address,
            broker: Some(broker),
            agent: None,
            metrics: Metrics::new(),
            store,
            received,
            link,
            own,
            _data: data,
        };
        fixture.start_agent(world).await?;
        Ok(fixture)
    }

    pub async fn start_agent(&mut self, world: &World) -> Result<()> {
        let config = MaestroAgentConfig {
            consumer: CONSUMER.to_owned(),
            broker: self.address.to_string(),
            hub_id: Some("hub".to_owned()),
            ..MaestroAgentConfig::default()
        };
        self.metrics = Metrics::new();
        let readiness = Readiness::new();
        let ports = MaestroAgentPorts {
            client: world.client.clone(),
            store: self.store.clone(),
            resolve: Arc::new(SystemResolve),
            clock: SystemClock::shared(),
            metrics: self.metrics.clone(),
            readiness: readiness.clone(),
        };
        let role = MaestroAgent::build(config.check()?, ports)?;
        let scope = Scope::root("agent");
        scope.spawn(TaskKind::Role, "run", role.run(scope.clone()));
        if self.broker.is_some() {
            tokio::time::timeout(wait::DEADLINE, readiness.ready())
                .await
                .context("the agent is not ready")?;
        }
        self.agent = Some(scope);
        Ok(())
    }

    pub async fn stop_agent(&mut self) -> Result<()> {
        let scope = self.agent.take().context("an agent")?;
        scope.close(GRACE).await.context("the agent stops")
    }

    pub async fn stop_broker(&mut self) -> Result<()> {
        let scope = self.broker.take().context("a broker")?;
        scope.close(GRACE).await.context("the broker stops")?;
        tokio::time::timeout(wait::DEADLINE, self.link.disconnected()).await.context("still connected")
    }

    pub async fn start_broker(&mut self) -> Result<()> {
        self.broker = Some(broker(self.address).await?.1);
        tokio::time::timeout(wait::DEADLINE, self.link.connected()).await.context("the server's link")
    }

    pub async fn stop(mut self) -> Result<()> {
        if self.agent.is_some() {
            self.stop_agent().await?;
        }
        self.own.close(GRACE).await?;
        match self.broker.take() {
            Some(broker) => broker.close(GRACE).await.context("the broker stops"),
            None => Ok(()),
        }
    }

    pub fn metrics(&self) -> String {
        self.metrics.encode()
    }

    fn event(kind: EventType) -> Event {
        let mut event = Event::new(uuid::Uuid::new_v4().to_string(), "maestro", kind, CONSUMER);
        event.original_source = Some(String::new());
        event
    }

    /// Publishes an event as the server.
    pub fn spec(id: &str, version: i32, manifests: &[Value]) -> Result<Event> {
        let bundle = ManifestBundle { manifests: Arc::new(manifests.to_vec()), ..ManifestBundle::default() };
        Self::bundle(id, version, &serde_json::to_value(bundle)?)
    }

    /// A bundle with one config map whose annotations are reported.
    pub fn reporting(id: &str, version: i32, manifest: Value) -> Result<Event> {
        let meta = &manifest["metadata"];
        let config = json!({
            "resourceIdentifier": {"group": "", "resource": "configmaps", "name": meta["name"], "namespace": meta["namespace"]},
            "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "turn", "path": ".metadata.annotations.turn"}]}],
        });
        Self::bundle(id, version, &json!({"manifests": [manifest], "manifestConfigs": [config]}))
    }

    fn bundle(id: &str, version: i32, data: &Value) -> Result<Event> {
        let mut event = Self::event(EventType::spec(Action::Create)).with_payload(data)?;
        event.resource_id = Some(id.to_owned());
        event.resource_version = Some(version);
        event.metadata = Some(json!({"name": id, "namespace": CONSUMER}).to_string());
        Ok(event)
    }

    pub fn delete(id: &str, version: i32) -> Result<Event> {
        let mut event = Self::event(EventType::spec(Action::Delete));
        event.resource_id = Some(id.to_owned());
        event.resource_version = Some(version);
        event.deletion_timestamp = Some("2026-01-01T00:00:00Z".parse()?);
        Ok(event)
    }

    pub fn status_resync(request: &StatusResync) -> Result<Event> {
        Ok(Self::event(EventType::status(Action::ResyncRequest)).with_payload(request)?)
    }

    pub async fn send(&self, event: &Event) -> Result<()> {
        Ok(self.link.publish(&topics().to_agent(CONSUMER), mqtt::write(event)).await?)
    }

    /// Publishes something that is not an event.
    pub async fn send_bytes(&self, payload: &'static [u8]) -> Result<()> {
        let message = aro_mqtt::Message { payload: payload.into(), ..aro_mqtt::Message::default() };
        Ok(self.link.publish(&topics().to_agent(CONSUMER), message).await?)
    }

    /// The agent's events since the last [`Fixture::clear`].
    pub fn received(&self) -> Vec<Event> {
        self.received.0.lock().clone()
    }

    pub fn clear(&mut self) {
        self.received.0.lock().clear();
    }

    async fn until(&self, what: &str, wanted: impl Fn(&Event) -> bool) -> Result<Event> {
        let found = wait::until(what, || async { Ok(self.received().into_iter().rev().find(&wanted)) }).await;
        found.with_context(|| format!("received was {:#?}; {}", self.received(), self.metrics()))
    }

    /// Waits for an event of a type.
    pub async fn wait_for(&self, kind: EventType) -> Result<Event> {
        self.until(&kind.to_string(), |event| event.kind == kind).await
    }

    /// Waits for an event about a bundle.
    pub async fn hears_of(&self, id: &str, wanted: impl Fn(&Event) -> bool) -> Result<Event> {
        self.until("a status", |event| event.resource_id.as_deref() == Some(id) && wanted(event)).await
    }

    /// Waits until a version is reported applied and available.
    pub async fn wait_settled(&self, id: &str, version: i32) -> Result<Event> {
        self.hears_of(id, |event| event.resource_version == Some(version) && applied_and_available(event))
            .await
    }
}

fn topics() -> Topics {
    Topics::of_source("maestro")
}

/// The status of a condition that an event reports.
pub fn condition(event: &Event, kind: &str) -> Option<String> {
    let status: BundleStatus = event.payload().ok()?;
    status.conditions.into_iter().find(|condition| condition.type_ == kind).map(|condition| condition.status)
}

pub fn applied_and_available(event: &Event) -> bool {
    ["Applied", "Available"].iter().all(|kind| condition(event, kind).as_deref() == Some("True"))
}

async fn broker(address: SocketAddr) -> Result<(SocketAddr, Scope)> {
    let listener = Listener::bind(address, "broker.listen").await?;
    let address = listener.local_addr();
    let readiness = Readiness::new();
    let ports = BrokerPorts {
        listener,
        clock: SystemClock::shared(),
        metrics: Metrics::new(),
        readiness: readiness.clone(),
    };
    let role = Broker::build(BrokerConfig::default().check()?, ports)?;
    let scope = Scope::root("broker");
    scope.spawn(TaskKind::Role, "run", role.run(scope.clone()));
    readiness.ready().await;
    Ok((address, scope))
}
