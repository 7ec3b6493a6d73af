//! Transitions of rows: what an event of a source or an agent makes of a row. Pure.

use aro_base::Timestamp;
use aro_bundle::{Action, Delivery, Event, SequenceId, content_hash, json, validate_data};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Bundle, DeliveryRecord, Moment};
use crate::fault::{Code, Fault};

/// The value of the column `type`.
const KIND: &str = "Bundle";

/// The outcome of a status event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The row has the status.
    Stored,
    /// The deletion is complete: the row was replaced by a tombstone.
    Removed,
    /// It is about another version, older than the stored status, or about a former bundle of the same id.
    Stale,
    /// The row has it already.
    Duplicate,
    /// There is no such bundle.
    Unknown,
    /// The bundle belongs to another consumer.
    WrongConsumer,
    /// It is addressed to another server.
    WrongSource,
    /// The agent deleted a bundle that is not being deleted, or has a newer version than the row: the bundle is published
    /// again.
    Republish,
}

impl Outcome {
    /// The metric label.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Removed => "removed",
            Self::Stale => "stale",
            Self::Duplicate => "duplicate",
            Self::Unknown => "unknown",
            Self::WrongConsumer => "wrong_consumer",
            Self::WrongSource => "wrong_source",
            Self::Republish => "lost",
        }
    }
}

/// What happens to a row.
#[derive(Debug)]
pub(super) enum Verdict {
    Keep(Outcome),
    Replace(Box<Bundle>, Outcome),
    /// It is removed, with this final status and its sequence id.
    Remove(Box<RawValue>, Option<String>),
}

fn invalid(error: impl std::fmt::Display) -> Fault {
    Fault::new(Code::Validation, error.to_string())
}

/// A new row.
pub(super) fn created(event: &Event, floor: Option<String>, now: Timestamp) -> Result<Bundle, Fault> {
    let id = event.resource().map_err(invalid)?;
    if event.source.is_empty() || event.cluster_name.is_empty() {
        return Err(invalid("the event has no `source` or no `clustername`"));
    }
    let version = match event.version().map_err(invalid)? {
        0 => 1,
        version if version > 0 => version,
        _ => return Err(invalid("the event's `resourceversion` is negative")),
    };
    check_bundle(event)?;
    Ok(Bundle {
        id: id.to_owned(),
        name: id.to_owned(),
        source: event.source.clone(),
        consumer_name: event.cluster_name.clone(),
        version,
        kind: KIND.to_owned(),
        created_at: now.into(),
        updated_at: now.into(),
        deleted_at: None,
        payload: json::write(event).map_err(invalid)?,
        status: None,
        delivery: DeliveryRecord::begin(content_hash(&event.data), version, now, floor),
    })
}

fn check_bundle(event: &Event) -> Result<(), Fault> {
    // Neither MQTT nor PostgreSQL carries NUL, so the bundle could not be delivered.
    let texts =
        [Some(&event.id), Some(&event.source), event.resource_id.as_ref(), event.log_tracing.as_ref()];
    if texts.into_iter().flatten().any(|text| text.contains('\0')) {
        return Err(invalid("an attribute of the event holds a NUL"));
    }
    event.metadata_object().map_err(invalid)?;
    let problems = validate_data(&event.data).map_err(invalid)?;
    if problems.is_empty() {
        return Ok(());
    }
    let violations: Vec<String> =
        problems.iter().map(|problem| format!("{}: {}", problem.at, problem.what)).collect();
    Err(invalid(violations.join("; ")))
}

/// A row with a changed spec; `None` if nothing changes.
pub(super) fn updated(row: &Bundle, event: &Event, now: Timestamp) -> Result<Option<Bundle>, Fault> {
    if row.source != event.source {
        return Err(foreign(&row.id));
    }
    if row.consumer_name != event.cluster_name {
        let reason = format!("the resource belongs to consumer `{}` and cannot be moved", row.consumer_name);
        return Err(Fault::new(Code::Validation, reason));
    }
    let stored = row.spec_event().map_err(Fault::unreadable)?;
    if is_retry(&stored, event) {
        return Ok(None);
    }
    let expected = event.version().map_err(invalid)?;
    if expected != 0 && expected != row.version {
        let reason = format!("the resource version is not the latest, the latest version: {}", row.version);
        return Err(Fault::new(Code::Conflict, reason));
    }
    if row.is_deleting() {
        return Err(Fault::new(Code::Conflict, format!("the resource is under deletion, id: {}", row.id)));
    }
    check_bundle(event)?;
    if is_same_spec(&stored, event) {
        return Ok(None);
    }
    let version = row.version.checked_add(1);
    let version = version.ok_or_else(|| Fault::new(Code::Conflict, "the resource changed too often"))?;
    Ok(Some(Bundle {
        version,
        updated_at: now.into(),
        payload: json::write(event).map_err(invalid)?,
        delivery: row.delivery.renew(content_hash(&event.data), version, now),
        ..row.clone()
    }))
}

/// The highest version that an agent's report can lead to. The other half of the range stays for the changes of sources: an
/// agent must not be able to use it up, since a bundle without a next version cannot be changed any more.
const HIGHEST_RAISED: i32 = i32::MAX / 2;

/// A row whose version is above its agent's; `None` if it is already, is being deleted, or cannot be raised.
pub(super) fn raised(row: &Bundle, above: i64, now: Timestamp) -> Option<Bundle> {
    if row.is_deleting() || above < i64::from(row.version) {
        return None;
    }
    let version = i32::try_from(above).ok()?.checked_add(1).filter(|version| *version <= HIGHEST_RAISED)?;
    let delivery = row.delivery.renew(row.delivery.hash.clone(), version, now);
    Some(Bundle { version, updated_at: now.into(), delivery, ..row.clone() })
}

fn foreign(id: &str) -> Fault {
    Fault::new(Code::Forbidden, format!("the resource belongs to another source, id: {id}"))
}

/// Whether the event is the stored one, sent again because the response was lost.
pub(super) fn is_retry(stored: &Event, event: &Event) -> bool {
    stored.source == event.source && stored.id == event.id && is_same_spec(stored, event)
}

/// Whether two events have the same spec. Their ids, times and trace ids may differ.
fn is_same_spec(old: &Event, new: &Event) -> bool {
    let data = |event: &Event| serde_json::from_slice::<Value>(&event.data).ok();
    let metadata = |event: &Event| event.metadata_object().ok().map(spec_metadata);
    old.others == new.others && data(old) == data(new) && metadata(old) == metadata(new)
}

/// Without the fields the server sets on reads, which a client therefore sends back with every change.
fn spec_metadata(mut metadata: Map<String, Value>) -> Map<String, Value> {
    for filled in
        ["resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "uid", "managedFields"]
    {
        metadata.remove(filled);
    }
    metadata
}

/// A row being deleted; `None` if it is already.
pub(super) fn deleted(row: &Bundle, source: Option<&str>, now: Timestamp) -> Result<Option<Bundle>, Fault> {
    if source.is_some_and(|source| source != row.source) {
        return Err(foreign(&row.id));
    }
    if row.is_deleting() {
        return Ok(None);
    }
    let mut row = Bundle { deleted_at: Some(now.into()), updated_at: now.into(), ..row.clone() };
    row.delivery.restart(now);
    row.delivery.published = None;
    Ok(Some(row))
}

/// The part of a status that is parsed; the rest is stored as received.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ParsedStatus {
    conditions: Option<Vec<ParsedCondition>>,
    /// Unused, but a status with this member twice could not be rendered.
    #[serde(rename = "resourceStatus")]
    _resource_status: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ParsedCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl ParsedStatus {
    fn is_true(&self, kind: &str) -> bool {
        self.conditions.iter().flatten().any(|condition| condition.kind == kind && condition.status == "True")
    }
}

/// Applies a status event to a row.
pub(super) fn apply_status(
    row: &Bundle,
    event: &Event,
    server: &str,
    now: Timestamp,
) -> Result<Verdict, Fault> {
    if event.cluster_name != row.consumer_name {
        return Ok(Verdict::Keep(Outcome::WrongConsumer));
    }
    if event.original_source.as_deref() != Some(server) {
        return Ok(Verdict::Keep(Outcome::WrongSource));
    }
    let status: ParsedStatus = event.payload().map_err(invalid)?;
    let sequence = event.sequence_id.as_deref().unwrap_or_default();
    let newer_than = |known: Option<&str>| SequenceId::supersedes(sequence, known);
    if status.is_true(aro_bundle::condition::DELETED) {
        // Earlier statuses of this bundle do not matter: an agent whose clock was set back must be able to report it.
        if row.delivery.floor.is_some() && !newer_than(row.delivery.floor.as_deref()) {
            return Ok(Verdict::Keep(Outcome::Stale));
        }
        if row.is_deleting() {
            return Ok(Verdict::Remove(stored_status(row, event)?, event.sequence_id.clone()));
        }
        if !newer_than(row.delivery.sequence.as_deref()) {
            return Ok(Verdict::Keep(Outcome::Stale));
        }
        let mut row = row.clone();
        row.delivery.observed_version = 0;
        row.delivery.sequence = Some(sequence.to_owned());
        row.delivery.restart(now);
        return Ok(Verdict::Replace(Box::new(row), Outcome::Republish));
    }
    let version = event.version().map_err(invalid)?;
    let is_response = event.kind.action == Action::ResyncResponse;
    if is_response && version > row.version && newer_than(row.delivery.sequence.as_deref()) {
        // In response to a resync the agent has a newer version than the store: the store was restored, and the agent would
        // drop the current spec as stale.
        if let Some(mut raised) = raised(row, version.into(), now) {
            raised.delivery.sequence = Some(sequence.to_owned());
            return Ok(Verdict::Replace(Box::new(raised), Outcome::Republish));
        }
    }
    if version != row.version {
        return Ok(Verdict::Keep(Outcome::Stale));
    }
    if !newer_than(row.delivery.sequence.as_deref()) {
        let known = row.delivery.sequence.as_deref() == Some(sequence)
            && row.delivery.floor.as_deref() != Some(sequence);
        return Ok(Verdict::Keep(if known { Outcome::Duplicate } else { Outcome::Stale }));
    }
    let times = Delivery::of(event);
    if times.as_ref().is_some_and(|times| !row.is_deleting() && times.hash != row.delivery.hash) {
        return Ok(Verdict::Keep(Outcome::Stale));
    }
    let mut row = Bundle { status: Some(stored_status(row, event)?), ..row.clone() };
    let observed = Moment(event.time.unwrap_or(now));
    let applied = status.is_true(aro_bundle::condition::APPLIED).then_some(observed);
    let delivery = &mut row.delivery;
    delivery.sequence = Some(sequence.to_owned());
    delivery.observed_version = row.version;
    delivery.received =
        times.as_ref().map(|times| times.received.into()).or(delivery.received).or(Some(observed));
    let reported_applied = times.as_ref().and_then(|times| times.applied).map(Moment);
    delivery.applied = reported_applied.or(delivery.applied).or(applied);
    delivery.observed = times.and_then(|times| times.observed).map(Moment).or(Some(observed));
    if row.deleted_at.is_none() {
        delivery.next_attempt = None;
        delivery.attempts = 0;
    }
    Ok(Verdict::Replace(Box::new(row), Outcome::Stored))
}

/// The status event with the source's metadata, since on the cluster the work has another name.
fn stored_status(row: &Bundle, event: &Event) -> Result<Box<RawValue>, Fault> {
    #[derive(Deserialize)]
    struct Payload<'a> {
        #[serde(borrow)]
        metadata: Option<&'a RawValue>,
    }
    let payload: Payload<'_> = serde_json::from_str(row.payload.get()).map_err(Fault::unreadable)?;
    let metadata = payload.metadata.map(|metadata| metadata.get().to_owned());
    json::write(&Event { metadata, ..event.clone() }).map_err(invalid)
}
