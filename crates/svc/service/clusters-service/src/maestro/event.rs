//! Events about bundles.

use aro_base::Timestamp;
use aro_bundle::{Action, Event, EventType, ManifestBundle, StatusResync, content_hash};
use serde_json::{Map, json};
use uuid::Uuid;

use crate::manifests::{Bundle, OBJECT};

/// The namespace of ids of events.
const EVENTS: Uuid = Uuid::from_u128(0x0d3b_7c51_5b0e_4a77_8a41_c2a8_54f1_90b6);

/// The data of a bundle, and a hash of everything that a publish would change.
#[derive(Debug, Clone)]
pub(crate) struct Payload {
    pub(crate) bundle: ManifestBundle,
    pub(crate) hash: String,
}

impl Payload {
    pub(crate) fn of(bundle: &Bundle) -> Result<Self, serde_json::Error> {
        let data = ManifestBundle {
            manifests: std::sync::Arc::new(vec![bundle.manifest.clone()]),
            manifest_configs: vec![bundle.config.clone()],
            ..ManifestBundle::default()
        };
        let text = serde_json::to_vec(&(&data, &bundle.labels))?;
        Ok(Self { hash: content_hash(&text), bundle: data })
    }
}

/// The trace of the request behind a publish, as the wire carries it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) correlation_id: Option<String>,
    pub(crate) traceparent: Option<String>,
}

impl Trace {
    fn text(&self) -> String {
        let mut all = Map::new();
        if let Some(traceparent) = &self.traceparent {
            all.insert("traceparent".to_owned(), json!(traceparent));
        }
        if let Some(id) = &self.correlation_id {
            all.insert("aro.correlation_id".to_owned(), json!(id));
        }
        serde_json::Value::Object(all).to_string()
    }
}

/// Who publishes to whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Route {
    /// The source: one per shard.
    pub(crate) source: String,
    /// The management cluster.
    pub(crate) consumer: String,
}

fn event(route: &Route, action: Action, id: Uuid, seed: &str, now: Timestamp) -> Event {
    let event_id = Uuid::new_v5(&EVENTS, format!("{}/{}/{seed}", id, action.word()).as_bytes());
    let kind = EventType::spec(action);
    let mut event = Event::new(event_id.to_string(), route.source.as_str(), kind, route.consumer.as_str());
    event.time = Some(now);
    event.original_source = Some(route.source.clone());
    event.resource_id = Some(id.to_string());
    event.resource_version = Some(0);
    event
}

/// Creates or updates a bundle, whatever its version.
pub(super) fn put(
    route: &Route,
    action: Action,
    bundle: &Bundle,
    payload: &Payload,
    trace: &Trace,
    now: Timestamp,
) -> Result<Event, aro_bundle::EventError> {
    let mut event = event(route, action, bundle.id, &payload.hash, now);
    let metadata = json!({
        "name": bundle.id,
        "namespace": route.consumer,
        "uid": bundle.id,
        "resourceVersion": "0",
        "labels": bundle.labels,
        "annotations": { OBJECT: bundle.object },
    });
    event.metadata = Some(metadata.to_string());
    event.log_tracing = Some(trace.text());
    event.with_payload(&payload.bundle)
}

/// Requests the deletion of a bundle; again as often as needed.
pub(super) fn delete(route: &Route, id: Uuid, trace: &Trace, now: Timestamp) -> Event {
    let mut event = event(route, Action::Delete, id, "", now);
    event.deletion_timestamp = Some(now);
    event.log_tracing = Some(trace.text());
    event
}

/// An update that no stored bundle accepts, as it names a version that none has: the refusal tells whether the bundle exists.
pub(super) fn probe(route: &Route, id: Uuid, now: Timestamp) -> Result<Event, aro_bundle::EventError> {
    let mut event = event(route, Action::Update, id, "probe", now);
    event.resource_version = Some(i32::MAX);
    event.metadata = Some("{}".to_owned());
    event.with_payload(&ManifestBundle::default())
}

/// Requests every status that is not as listed.
pub(super) fn resync(
    source: &str,
    known: &StatusResync,
    now: Timestamp,
) -> Result<Event, aro_bundle::EventError> {
    let kind = EventType::status(Action::ResyncRequest);
    let mut event = Event::new(Uuid::new_v4().to_string(), source, kind, "");
    event.time = Some(now);
    event.with_payload(known)
}
