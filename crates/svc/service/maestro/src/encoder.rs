//! Encodes rows as events for agents and sources.
//!
//! The functions are pure; [`AgentEncoder`] adds the clock and fresh event ids.

use std::sync::Arc;

use aro_base::{SharedClock, Timestamp};
use aro_bundle::{Action, Event, EventError, EventType, IdRange, StatusResync};
use bytes::{BufMut as _, BytesMut};
use serde_json::Value;
use uuid::Uuid;

use crate::rows::{Bundle, Tombstone};

/// Encodes the events that one server publishes to agents. Cheap to clone.
#[derive(Clone)]
pub struct AgentEncoder {
    server: Arc<str>,
    clock: SharedClock,
}

impl AgentEncoder {
    /// `server` is the server's source id.
    pub fn new(server: &str, clock: SharedClock) -> Self {
        Self { server: server.into(), clock }
    }

    /// The server's source id.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The spec of a row; `resync` for the response to a resync request.
    pub fn spec(&self, row: &Bundle, resync: bool) -> Result<Event, EventError> {
        spec_event(row, &self.server, resync, self.clock.now(), &event_id())
    }

    /// The deletion of an orphan.
    pub fn deletion(&self, id: &str, version: i32, consumer: &str) -> Event {
        deletion_event(id, version, consumer, &self.server, self.clock.now(), &event_id())
    }

    /// A status resync request: one page of the statuses the server has.
    pub fn status_resync(
        &self,
        consumer: &str,
        range: &IdRange,
        page: &StatusResync,
    ) -> Result<Event, EventError> {
        let kind = EventType::status(Action::ResyncRequest);
        let mut event = Event::new(event_id(), &*self.server, kind, consumer);
        event.time = Some(self.clock.now());
        event.original_source = Some(self.server.to_string());
        range.attach(&mut event);
        event.with_payload(page)
    }
}

fn event_id() -> String {
    Uuid::new_v4().to_string()
}

/// The spec of a row for its agent. A deletion is a new event with its own id and time; everything else is the source's
/// event with the server as its source.
fn spec_event(
    row: &Bundle,
    server: &str,
    resync: bool,
    now: Timestamp,
    event_id: &str,
) -> Result<Event, EventError> {
    let mut event = row.spec_event()?;
    let action = match (row.is_deleting(), resync, row.version) {
        (_, true, _) => Action::ResyncResponse,
        (true, false, _) => Action::Delete,
        (false, false, 1) => Action::Create,
        (false, false, _) => Action::Update,
    };
    event.kind = EventType::spec(action);
    server.clone_into(&mut event.source);
    event.original_source = Some(String::new());
    event.cluster_name.clone_from(&row.consumer_name);
    event.resource_id = Some(row.id.clone());
    event.resource_version = Some(row.version);
    event.metadata = Some(agent_metadata(&event, &row.id, &row.consumer_name)?);
    event.log_tracing.get_or_insert_with(|| "{}".to_owned());
    // The last sequence id received: an agent that lost its store, or whose clock was set back, continues above it.
    event.sequence_id.clone_from(&row.delivery.sequence);
    event.others.clear();
    // The row decides about deletion, not the source's event.
    event.deletion_timestamp = row.deleted_at.map(|since| since.0);
    if row.is_deleting() {
        event.time = Some(now);
        event_id.clone_into(&mut event.id);
    }
    Ok(event)
}

/// On the cluster a work is named by its bundle's id, which is unique.
fn agent_metadata(event: &Event, id: &str, consumer: &str) -> Result<String, EventError> {
    let mut metadata = event.metadata_object()?;
    metadata.insert("name".to_owned(), Value::String(id.to_owned()));
    metadata.entry("namespace").or_insert_with(|| Value::String(consumer.to_owned()));
    metadata.entry("uid").or_insert_with(|| Value::String(id.to_owned()));
    Ok(Value::Object(metadata).to_string())
}

/// Deletes an orphan from an agent's cluster.
fn deletion_event(
    id: &str,
    version: i32,
    consumer: &str,
    server: &str,
    now: Timestamp,
    event_id: &str,
) -> Event {
    let mut event = Event::new(event_id, server, EventType::spec(Action::ResyncResponse), consumer);
    event.time = Some(now);
    event.original_source = Some(String::new());
    event.resource_id = Some(id.to_owned());
    event.resource_version = Some(version);
    event.deletion_timestamp = Some(now);
    event
}

/// The status of a row for its source: the agent's event, with the spec beside the status.
pub fn status_event(row: &Bundle) -> Result<Option<Event>, EventError> {
    let Some(status) = row.status_event()? else { return Ok(None) };
    source_event(status, row.spec_event()?, row.version).map(Some)
}

/// The last status of a removed bundle.
pub fn final_status_event(tombstone: &Tombstone) -> Result<Event, EventError> {
    let (status, spec) =
        (aro_bundle::json::read(tombstone.status.get())?, aro_bundle::json::read(tombstone.payload.get())?);
    source_event(status, spec, tombstone.version)
}

fn source_event(mut status: Event, spec: Event, version: i32) -> Result<Event, EventError> {
    status.data = with_bundle(&status.data, &spec.data)?;
    status.resource_version.get_or_insert(version);
    status.metadata = spec.metadata.or(status.metadata);
    status.log_tracing.get_or_insert_with(|| "{}".to_owned());
    // Between the server and the agent only.
    status.others.remove(aro_bundle::Delivery::EXTENSION);
    Ok(status)
}

/// A status with the bundle as its last member, without parsing the rest. If the agent's status has a member of that name,
/// decoders take the last one, which is the server's.
fn with_bundle(status: &[u8], bundle: &[u8]) -> Result<bytes::Bytes, EventError> {
    let not_object = || EventError::Data("a status is not an object".to_owned());
    let inner = status
        .trim_ascii()
        .strip_prefix(b"{")
        .and_then(|rest| rest.strip_suffix(b"}"))
        .ok_or_else(not_object)?;
    let bundle: &[u8] = if bundle.is_empty() { b"{}" } else { bundle };
    let mut data = BytesMut::with_capacity(status.len() + bundle.len() + 24);
    data.put_u8(b'{');
    if !inner.trim_ascii().is_empty() {
        data.put_slice(inner);
        data.put_u8(b',');
    }
    data.put_slice(br#""manifestBundle":"#);
    data.put_slice(bundle);
    data.put_u8(b'}');
    Ok(data.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_gets_the_spec_beside_the_status() {
        let both = |status: &str, bundle: &str| {
            let bytes = with_bundle(status.as_bytes(), bundle.as_bytes()).unwrap();
            serde_json::from_slice::<Value>(&bytes).unwrap()
        };
        let expected = serde_json::json!({"manifestBundle": {"manifests": []}, "conditions": []});
        assert_eq!(both(r#" {"conditions":[]} "#, r#"{"manifests":[]}"#), expected);
        assert_eq!(both("{}", ""), serde_json::json!({"manifestBundle": {}}));
        assert!(with_bundle(b"null", b"{}").is_err());
    }

    #[test]
    fn agent_cannot_forge_the_spec_sent_to_the_source() {
        let event =
            with_bundle(br#"{"manifestBundle":{"manifests":["forged"]}}"#, br#"{"manifests":[]}"#).unwrap();
        let read: Value = serde_json::from_slice(&event).unwrap();
        assert_eq!(read, serde_json::json!({"manifestBundle": {"manifests": []}}));
    }
}
