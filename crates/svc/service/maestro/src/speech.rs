//! What the server says: rows turned into events for agents and for sources. Pure.

use aro_base::Timestamp;
use aro_bundle::{Action, Event, EventError, EventType};
use bytes::{BufMut as _, BytesMut};
use serde_json::Value;

use crate::rows::{Bundle, Farewell};

/// The spec of a row, for its agent. Deletions are new words with a new id and time; everything else is the source's
/// event under the server's name.
pub fn to_agent(
    row: &Bundle,
    server: &str,
    resync: bool,
    now: Timestamp,
    fresh: &str,
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
    // What was told last: an agent that forgot everything, or whose clock was set back, goes on from there.
    event.sequence_id.clone_from(&row.delivery.sequence);
    event.others.clear();
    // Whatever the source wrote there: it is the row that says whether it is to go.
    event.deletion_timestamp = row.deleted_at.map(|since| since.0);
    if row.is_deleting() {
        event.time = Some(now);
        fresh.clone_into(&mut event.id);
    }
    Ok(event)
}

/// On the cluster a work is called by its bundle's id, which is nobody else's.
fn agent_metadata(event: &Event, id: &str, consumer: &str) -> Result<String, EventError> {
    let mut metadata = event.metadata_object()?;
    metadata.insert("name".to_owned(), Value::String(id.to_owned()));
    metadata.entry("namespace").or_insert_with(|| Value::String(consumer.to_owned()));
    metadata.entry("uid").or_insert_with(|| Value::String(id.to_owned()));
    Ok(Value::Object(metadata).to_string())
}

/// Tells an agent to take away what nobody wants.
pub fn ghost(id: &str, version: i32, consumer: &str, server: &str, now: Timestamp, fresh: &str) -> Event {
    let mut event = Event::new(fresh, server, EventType::spec(Action::ResyncResponse), consumer);
    event.time = Some(now);
    event.original_source = Some(String::new());
    event.resource_id = Some(id.to_owned());
    event.resource_version = Some(version);
    event.deletion_timestamp = Some(now);
    event
}

/// The status of a row, for its source: the agent's event, and beside the status what was wanted.
pub fn to_source(row: &Bundle) -> Result<Option<Event>, EventError> {
    let Some(status) = row.status_event()? else { return Ok(None) };
    told(status, row.spec_event()?, row.version).map(Some)
}

/// The last status of a row that is gone.
pub fn farewell(gone: &Farewell) -> Result<Event, EventError> {
    let (status, spec) =
        (aro_bundle::json::read(gone.status.get())?, aro_bundle::json::read(gone.payload.get())?);
    told(status, spec, gone.version)
}

fn told(mut status: Event, spec: Event, version: i32) -> Result<Event, EventError> {
    status.data = with_bundle(&status.data, &spec.data)?;
    status.resource_version.get_or_insert(version);
    status.metadata = spec.metadata.or(status.metadata);
    status.log_tracing.get_or_insert_with(|| "{}".to_owned());
    // What only the server and the agent speak about.
    status.others.remove(aro_bundle::Delivery::EXTENSION);
    Ok(status)
}

/// A status with one more member, without reading the rest of it. The member comes last: should an agent have put one of
/// that name into its status, readers take the last one, which is the server's.
fn with_bundle(status: &[u8], bundle: &[u8]) -> Result<bytes::Bytes, EventError> {
    let wrong = || EventError::Data("a status is not an object".to_owned());
    let inner =
        status.trim_ascii().strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")).ok_or_else(wrong)?;
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
    fn what_was_wanted_is_told_beside_what_is_so() {
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
    fn an_agent_cannot_tell_a_source_what_the_source_wanted() {
        let told =
            with_bundle(br#"{"manifestBundle":{"manifests":["forged"]}}"#, br#"{"manifests":[]}"#).unwrap();
        let read: Value = serde_json::from_slice(&told).unwrap();
        assert_eq!(read, serde_json::json!({"manifestBundle": {"manifests": []}}));
    }
}
