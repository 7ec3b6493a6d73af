//! A source: publishes and subscribes over gRPC.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use aro_bundle::{Action, Event, EventType, work_uid};
use aro_event_service::{Client, ClientError, Subscription, Target};
use aro_fixtures::wait;
use aro_net::SystemResolve;
use aro_pki::IdentityPaths;
use aro_runtime::SystemClock;
use serde_json::{Value, json};
use tonic::Code;
use tonic::transport::Channel;

/// The deadline of one attempt to publish, and the pause before the next.
const ATTEMPT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// A source.
#[derive(Clone)]
pub struct Source {
    pub name: String,
    pub client: Client<Channel>,
}

impl Source {
    pub fn new(name: &str, address: SocketAddr, identity: IdentityPaths) -> Result<Self> {
        let target = Target { address: address.to_string(), credentials: Some(identity), server_name: None };
        let client = Client::to(target, Arc::new(SystemResolve), SystemClock::shared())?;
        Ok(Self { name: name.to_owned(), client })
    }

    /// The id of one of its works.
    pub fn id(&self, consumer: &str, work: &str) -> String {
        work_uid(&self.name, consumer, work).to_string()
    }

    /// Creates a bundle. Returns its id.
    pub async fn create(&self, consumer: &str, work: &str, data: &Value) -> Result<String> {
        let event = self.event(Action::Create, consumer, work, 0, Some(data))?;
        self.client.clone().publish(&event).await?;
        Ok(self.id(consumer, work))
    }

    /// Updates a bundle, as the Go client's Patch does.
    pub async fn update(
        &self,
        consumer: &str,
        work: &str,
        version: i32,
        data: &Value,
    ) -> Result<(), ClientError> {
        let event = self.event(Action::Update, consumer, work, version, Some(data));
        let event = event.map_err(|error| ClientError::Unreachable(error.to_string()))?;
        self.client.clone().publish(&event).await
    }

    /// Deletes a bundle.
    pub async fn delete(&self, consumer: &str, work: &str) -> Result<()> {
        let mut event = self.event(Action::Delete, consumer, work, 0, None)?;
        event.deletion_timestamp = event.time;
        Ok(self.client.clone().publish(&event).await?)
    }

    /// Publishes until the server accepts or rejects it: an unreachable server is retried.
    pub async fn publish_until_accepted(&self, event: &Event) -> Result<(), ClientError> {
        let deadline = tokio::time::Instant::now() + wait::DEADLINE;
        loop {
            let mut client = self.client.clone();
            let answer = tokio::time::timeout(ATTEMPT, client.publish(event)).await;
            let error = match answer {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error,
                Err(_) => ClientError::Unreachable("no answer in time".to_owned()),
            };
            if !is_absence(&error) || tokio::time::Instant::now() > deadline {
                return Err(error);
            }
            // A pause between two attempts.
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Subscribes.
    pub async fn subscribe(&self) -> Result<Subscription> {
        Ok(self.client.clone().subscribe(&self.name).await?)
    }

    /// Waits for an event about a bundle.
    pub async fn wait_for(
        &self,
        from: &mut Subscription,
        id: &str,
        wanted: impl Fn(&Event) -> bool,
    ) -> Result<Event> {
        let hear = async {
            loop {
                if let Some(event) = from.next().await?
                    && event.resource_id.as_deref() == Some(id)
                    && wanted(&event)
                {
                    return Ok::<_, anyhow::Error>(event);
                }
            }
        };
        tokio::time::timeout(wait::DEADLINE, hear).await.context("nothing was received in time")?
    }

    /// An event of this source.
    pub fn event(
        &self,
        action: Action,
        consumer: &str,
        work: &str,
        version: i32,
        data: Option<&Value>,
    ) -> Result<Event> {
        let id = self.id(consumer, work);
        let kind = EventType::spec(action);
        let mut event = Event::new(uuid::Uuid::new_v4().to_string(), self.name.as_str(), kind, consumer);
        event.time = Some(SystemClock::shared().now());
        event.original_source = Some(self.name.clone());
        event.resource_version = Some(version);
        event.metadata = Some(
            json!({
                "name": work, "namespace": consumer, "uid": id, "resourceVersion": "0",
                "labels": {"api.openshift.com/id": work},
            })
            .to_string(),
        );
        event.resource_id = Some(id);
        event.log_tracing = Some("{}".to_owned());
        match data {
            Some(data) => Ok(event.with_payload(data)?),
            None => Ok(event),
        }
    }
}

/// Whether an error leaves open if the event was stored: the server was unreachable, or the response was lost.
fn is_absence(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable(_) => true,
        ClientError::Refused(status) => matches!(
            status.code(),
            Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded | Code::Internal
        ),
        ClientError::Event(_) => false,
    }
}

/// A config map as a manifest.
pub fn config_map(namespace: &str, name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace}, "data": {"value": value},
    })
}

/// A spec of these manifests. The value of each config map is reported, and an annotation that tests set.
pub fn spec(manifests: Vec<Value>) -> Value {
    let maps = manifests.iter().filter(|one| one["kind"] == "ConfigMap");
    let configs: Vec<Value> = maps
        .map(|map| {
            json!({
                "resourceIdentifier": {
                    "group": "", "resource": "configmaps",
                    "name": map["metadata"]["name"], "namespace": map["metadata"]["namespace"],
                },
                "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [
                    {"name": "value", "path": ".data.value"},
                    {"name": "turn", "path": ".metadata.annotations.turn"},
                ]}],
                // Changes by other field managers are overwritten: else they would be reported as conflicts.
                "updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"force": true}},
            })
        })
        .collect();
    json!({"manifests": manifests, "manifestConfigs": configs})
}
