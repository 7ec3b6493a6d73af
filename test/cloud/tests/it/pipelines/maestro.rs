//! A Maestro that remembers bundles, removes them at once, and reports what a test wants.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use aro_bundle::grpc::{CloudEvent, PublishRequest, SubscriptionRequest, read, write};
use aro_bundle::{Action, Event, EventType};
use aro_event_service::{CloudEvents, EventStream, SUBSCRIPTION_ID, serve as event_service};
use aro_runtime::{Listener, Phase, Scope};
use aro_web::{ServeOptions, serve};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tonic::{Request, Response, Status};

/// The bundles that were published and not deleted.
pub struct BundleKeeper {
    bundles: Mutex<BTreeMap<String, Event>>,
    statuses: broadcast::Sender<Event>,
    sequence: Mutex<u64>,
    scope: Scope,
}

impl BundleKeeper {
    pub async fn start(scope: &Scope) -> Result<(Arc<Self>, SocketAddr)> {
        let keeper = Arc::new(Self {
            bundles: Mutex::default(),
            statuses: broadcast::Sender::new(100),
            sequence: Mutex::new(1_000_000_000_000),
            // Streams end before their connections are waited for.
            scope: scope.child(Phase::Listeners, "bundles"),
        });
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), "maestro").await?;
        let address = listener.local_addr();
        serve(listener, event_service(keeper.clone(), 4 << 20), scope, ServeOptions::named("maestro"));
        Ok((keeper, address))
    }

    /// The ids of the bundles.
    pub fn ids(&self) -> Vec<String> {
        self.bundles.lock().keys().cloned().collect()
    }

    /// Reports a status of the bundle that holds an object.
    pub fn report(&self, object: &str, values: Value) -> Result<()> {
        let bundles = self.bundles.lock();
        let of = |event: &&Event| {
            let metadata = event.metadata_object().unwrap_or_default();
            metadata.get("annotations").and_then(|all| all.get("aro.dev/object")) == Some(&json!(object))
        };
        let spec = bundles.values().find(of).with_context(|| format!("a bundle with {object}"))?;
        let inner = json!({"conditions": [], "resourceStatus": {"manifests": [{
            "resourceMeta": {"ordinal": 0, "kind": "HostedCluster", "name": "c", "namespace": "n"},
            "conditions": [], "statusFeedback": {"values": values},
        }]}});
        let status = json!({"conditions": [], "resourceStatus": [{
            "resourceMeta": {"ordinal": 0, "kind": "ManifestWork", "name": object, "namespace": "local-cluster"},
            "conditions": [],
            "statusFeedback": {"values": [{"name": "status", "fieldValue": {"type": "JsonRaw", "jsonRaw": inner.to_string()}}]},
        }]});
        let mut event = Event::new("status", "agent", EventType::status(Action::Update), "mgmt-1");
        event.resource_id.clone_from(&spec.resource_id);
        event.metadata.clone_from(&spec.metadata);
        event.resource_version = Some(1);
        let mut sequence = self.sequence.lock();
        *sequence += 1;
        event.sequence_id = Some(sequence.to_string());
        // Without a subscriber it is lost, as with a broker.
        let _ = self.statuses.send(event.with_payload(&status)?);
        Ok(())
    }

    fn accept(&self, event: Event) -> Result<(), Status> {
        let refused = |status: fn(String) -> Status, reason: &str| {
            let text = json!({"ErrStatus": {"reason": reason, "message": reason}}).to_string();
            Err(status(text))
        };
        if event.kind.action == Action::ResyncRequest {
            return Ok(());
        }
        let id = event.resource_id.clone().unwrap_or_default();
        let mut bundles = self.bundles.lock();
        match (event.kind.action, bundles.contains_key(&id)) {
            (Action::Create, true) => refused(Status::already_exists, "AlreadyExists"),
            (Action::Update, false) => refused(Status::not_found, "NotFound"),
            (Action::Update, true) if event.resource_version == Some(i32::MAX) => {
                refused(Status::aborted, "Conflict")
            }
            (Action::Delete, _) => {
                bundles.remove(&id);
                Ok(())
            }
            _ => {
                bundles.insert(id, event);
                Ok(())
            }
        }
    }
}

/// What an installed cluster reports.
pub fn installed(generation: &str) -> Value {
    let text =
        |name: &str, text: &str| json!({"name": name, "fieldValue": {"type": "String", "string": text}});
    json!([
        text("record-generation", generation),
        text("Available-Status", "True"),
        text("VersionHistory0-State", "Completed"),
        text("VersionHistory0-Version", "4.20.8"),
        text("ControlPlaneEndpoint-Host", "api.c1"),
    ])
}

impl CloudEvents for BundleKeeper {
    fn publish(&self, request: Request<PublishRequest>) -> BoxFuture<'_, Result<(), Status>> {
        async move {
            let event = request.into_inner().event.ok_or_else(|| Status::invalid_argument("no event"))?;
            let event = read(event).map_err(|error| Status::invalid_argument(error.to_string()))?;
            self.accept(event)
        }
        .boxed()
    }

    fn subscribe(
        &self,
        _: Request<SubscriptionRequest>,
    ) -> BoxFuture<'_, Result<Response<EventStream>, Status>> {
        let subscription = (self.statuses.subscribe(), self.scope.clone());
        let stream = futures::stream::unfold(subscription, |(mut statuses, scope)| async move {
            let event: CloudEvent = tokio::select! {
                () = scope.cancelled() => return None,
                event = statuses.recv() => write(&event.ok()?),
            };
            Some((Ok(event), (statuses, scope)))
        });
        async move {
            let stream: EventStream = Box::pin(stream.boxed());
            let mut response = Response::new(stream);
            response.metadata_mut().insert(SUBSCRIPTION_ID, "s".parse().map_err(|_| Status::internal("id"))?);
            Ok(response)
        }
        .boxed()
    }
}
