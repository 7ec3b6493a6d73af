//! Encodes reports and resync requests as CloudEvents. Pure.

use aro_base::Timestamp;
use aro_bundle::{
    Action, BundleStatus, Delivery, Event, EventError, EventType, IdRange, MAX_PACKET, SequenceId,
    SpecResync, condition, status_hash,
};
use aro_crds::work::v1::ManifestWorkStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::agent_state::Report;
use crate::record::{ObservedStatus, Record};

/// Bytes of a packet besides the event: the topic and lengths.
const ENVELOPE: usize = 4096;

/// Encodes the events of one agent.
#[derive(Debug, Clone)]
pub struct Encoder {
    pub agent: String,
    pub consumer: String,
}

impl Encoder {
    fn event(&self, kind: EventType, now: Timestamp) -> Event {
        let mut event =
            Event::new(uuid::Uuid::new_v4().to_string(), self.agent.clone(), kind, self.consumer.clone());
        event.time = Some(now);
        event
    }

    /// A spec resync request: one page of the versions the agent has.
    pub fn resync(&self, range: &IdRange, page: &SpecResync, now: Timestamp) -> Result<Event, EventError> {
        let mut event = self.event(EventType::spec(Action::ResyncRequest), now);
        event.original_source = Some(String::new());
        range.attach(&mut event);
        event.with_payload(page)
    }

    /// A report about a work.
    pub fn report(&self, report: &Report, now: Timestamp) -> Result<Event, EventError> {
        match report {
            Report::Status { record, sequence, requested } => {
                let action = if *requested { Action::ResyncResponse } else { Action::Update };
                let Some(observed) = &record.observed else { return Err(EventError::Missing("status")) };
                self.observed(record, observed, *sequence, action, now)
            }
            Report::Deleted { record, sequence } => {
                let message = format!("The manifests are deleted from the cluster {}", self.consumer);
                let condition = new_condition(
                    condition::DELETED,
                    "True",
                    condition::MANIFESTS_DELETED,
                    message,
                    record.version,
                    now,
                );
                self.final_status(record, &status_with(condition), *sequence, now)
            }
            Report::Rejected { rejection, sequence } => {
                let message = format!("Failed to apply manifest work: {}", rejection.reason);
                let record = &rejection.record;
                let condition = new_condition(
                    condition::APPLIED,
                    "False",
                    "AppliedManifestWorkFailed",
                    message,
                    record.version,
                    now,
                );
                self.final_status(record, &status_with(condition), *sequence, now)
            }
        }
    }

    fn final_status(
        &self,
        record: &Record,
        status: &ManifestWorkStatus,
        sequence: SequenceId,
        now: Timestamp,
    ) -> Result<Event, EventError> {
        let mut event = self.status(record, record.version, status, sequence, Action::Update, now)?;
        event.status_hash = Some(status_hash(status));
        Ok(event)
    }

    fn observed(
        &self,
        record: &Record,
        observed: &ObservedStatus,
        sequence: SequenceId,
        action: Action,
        now: Timestamp,
    ) -> Result<Event, EventError> {
        let mut event = self.status(record, observed.version, &observed.status, sequence, action, now)?;
        if event.size() + ENVELOPE > MAX_PACKET {
            // A status without its feedback values is better than none.
            let reduced = without_feedback(&observed.status, now);
            event = self.status(record, observed.version, &reduced, sequence, action, now)?;
        }
        // The digest covers the full status: a resync compares it with the digest of the full status.
        event.status_hash = Some(observed.hash.clone());
        let delivery = Delivery {
            hash: record.hash.clone(),
            received: record.received_at,
            applied: observed.applied_at,
            observed: Some(observed.observed_at),
        };
        delivery.attach(&mut event);
        Ok(event)
    }

    /// A status event without its digest.
    fn status(
        &self,
        record: &Record,
        version: i32,
        status: &ManifestWorkStatus,
        sequence: SequenceId,
        action: Action,
        now: Timestamp,
    ) -> Result<Event, EventError> {
        let mut event = self.event(EventType::status(action), now);
        event.original_source = Some(record.source.clone());
        event.resource_id = Some(record.id.clone());
        event.resource_version = Some(version);
        event.sequence_id = Some(sequence.to_string());
        event.metadata = Some(record.status_metadata(&self.consumer));
        event.log_tracing = Some(record.log_tracing.clone().unwrap_or_else(|| "{}".to_owned()));
        event.with_payload(&BundleStatus::from(status.clone()))
    }
}

fn new_condition(
    kind: &str,
    status: &str,
    reason: &str,
    message: String,
    generation: i32,
    now: Timestamp,
) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: Some(generation.into()),
        last_transition_time: Time(now),
    }
}

fn status_with(condition: Condition) -> ManifestWorkStatus {
    ManifestWorkStatus { conditions: vec![condition], ..ManifestWorkStatus::default() }
}

/// The status without its feedback values. Conditions stay, and one of them states the reason.
fn without_feedback(status: &ManifestWorkStatus, now: Timestamp) -> ManifestWorkStatus {
    let mut reduced = status.clone();
    for manifest in &mut reduced.resource_status.manifests {
        if manifest.status_feedback.values.is_empty() {
            continue;
        }
        manifest.status_feedback.values.clear();
        manifest.conditions.retain(|condition| condition.type_ != "StatusFeedbackSynced");
        let message = "The values of this work do not fit into one message".to_owned();
        manifest.conditions.push(Condition {
            observed_generation: None,
            ..new_condition("StatusFeedbackSynced", "False", "StatusFeedbackSyncFailed", message, 0, now)
        });
    }
    reduced
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;
    use serde_json::{Value, json};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn encoder() -> Encoder {
        Encoder { agent: "c1-work-agent".to_owned(), consumer: "c1".to_owned() }
    }

    fn observed(status: Value) -> ObservedStatus {
        let status: ManifestWorkStatus = serde_json::from_value(status).unwrap();
        ObservedStatus {
            version: 4,
            hash: status_hash(&status),
            status,
            applied_at: Some(NOW),
            observed_at: NOW,
            sequence: None,
            acked: false,
        }
    }

    fn sequence() -> SequenceId {
        SequenceId::parse("2122064138732572672").unwrap()
    }

    #[test]
    fn status_event_matches_the_original_agent_and_adds_delivery_times() {
        let record = Record { observed: Some(observed(json!({"conditions": []}))), ..sample("w", 5) };
        let report = Report::Status { record: Box::new(record), sequence: sequence(), requested: false };
        let event = encoder().report(&report, NOW).unwrap();
        let message = aro_bundle::mqtt::write(&event);
        let property = |name: &str| {
            let found = message.user_properties.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!(property("ce-source"), Some("c1-work-agent"));
        assert_eq!(
            property("ce-type"),
            Some("io.open-cluster-management.works.v1alpha1.manifestbundles.status.update_request")
        );
        assert_eq!(property("ce-originalsource"), Some("maestro"));
        assert_eq!(property("ce-resourceid"), Some("w"));
        assert_eq!(property("ce-resourceversion"), Some("4"), "the version that was applied, not the newest");
        assert_eq!(property("ce-sequenceid"), Some("2122064138732572672"));
        assert_eq!(property("ce-logtracing"), Some("{}"));
        assert_eq!(property("ce-clustername"), Some("c1"));
        assert_eq!(property("ce-statushash").map(str::len), Some(64));
        assert!(property("ce-delivery").unwrap().contains("hash of 5"));
        assert_eq!(message.content_type.as_deref(), Some("application/json"));
    }

    #[test]
    fn deletion_is_reported_with_the_condition_servers_expect() {
        let report = Report::Deleted {
            record: Box::new(Record { deleted: true, ..sample("w", 5) }),
            sequence: sequence(),
        };
        let event = encoder().report(&report, NOW).unwrap();
        let status: BundleStatus = event.payload().unwrap();
        assert!(status.is_deleted());
        assert_eq!(status.conditions[0].reason, "ManifestsDeleted");
        assert_eq!(status.conditions[0].message, "The manifests are deleted from the cluster c1");
    }

    #[test]
    fn status_too_large_for_a_packet_is_published_without_feedback() {
        let large = json!({"resourceStatus": {"manifests": [{
            "resourceMeta": {"ordinal": 0, "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps",
                "name": "a", "namespace": "b"},
            "statusFeedback": {"values": [{"name": "d", "fieldValue": {"type": "JsonRaw", "jsonRaw": "x".repeat(600_000)}}]},
            "conditions": []}]}});
        let record = Record { observed: Some(observed(large)), ..sample("w", 5) };
        let report =
            Report::Status { record: Box::new(record.clone()), sequence: sequence(), requested: false };
        let event = encoder().report(&report, NOW).unwrap();
        assert!(event.size() < MAX_PACKET);
        let status: BundleStatus = event.payload().unwrap();
        assert_eq!(status.resource_status[0].conditions[0].reason, "StatusFeedbackSyncFailed");
        assert_eq!(event.status_hash, record.observed.map(|observed| observed.hash));
    }

    #[test]
    fn resync_of_one_page_matches_the_original_agent() {
        let event = encoder().resync(&IdRange::default(), &SpecResync::default(), NOW).unwrap();
        assert_eq!(event.original_source.as_deref(), Some(""));
        assert!(event.others.is_empty());
        assert_eq!(event.data, r#"{"resourceVersions":[]}"#);
    }
}
