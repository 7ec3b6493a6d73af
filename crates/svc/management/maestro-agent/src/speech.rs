//! What the agent says, as events. Pure.

use aro_base::Timestamp;
use aro_bundle::{
    Action, BundleStatus, Delivery, Event, EventError, EventType, IdRange, MAX_PACKET, SequenceId,
    SpecResync, condition, status_hash,
};
use aro_crds::work::v1::ManifestWorkStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::book::Say;
use crate::record::{Record, Seen};

/// What a packet has besides the event: the topic and lengths.
const AROUND: usize = 4096;

/// Who speaks.
#[derive(Debug, Clone)]
pub struct Speaker {
    pub agent: String,
    pub consumer: String,
}

impl Speaker {
    fn event(&self, kind: EventType, now: Timestamp) -> Event {
        let mut event =
            Event::new(uuid::Uuid::new_v4().to_string(), self.agent.clone(), kind, self.consumer.clone());
        event.time = Some(now);
        event
    }

    /// What the agent has, a page of it.
    pub fn resync(&self, range: &IdRange, page: &SpecResync, now: Timestamp) -> Result<Event, EventError> {
        let mut event = self.event(EventType::spec(Action::ResyncRequest), now);
        event.original_source = Some(String::new());
        range.attach(&mut event);
        event.with_payload(page)
    }

    /// What is to be said of a work.
    pub fn say(&self, say: &Say, now: Timestamp) -> Result<Event, EventError> {
        match say {
            Say::Status { record, sequence, asked } => {
                let action = if *asked { Action::ResyncResponse } else { Action::Update };
                let Some(seen) = &record.seen else { return Err(EventError::Missing("status")) };
                self.seen(record, seen, *sequence, action, now)
            }
            Say::Gone { record, sequence } => {
                let message = format!("The manifests are deleted from the cluster {}", self.consumer);
                let condition = told(
                    condition::DELETED,
                    "True",
                    condition::MANIFESTS_DELETED,
                    message,
                    record.version,
                    now,
                );
                self.last_word(record, &of(condition), *sequence, now)
            }
            Say::Refused { refusal, sequence } => {
                let message = format!("Failed to apply manifest work: {}", refusal.why);
                let record = &refusal.record;
                let condition = told(
                    condition::APPLIED,
                    "False",
                    "AppliedManifestWorkFailed",
                    message,
                    record.version,
                    now,
                );
                self.last_word(record, &of(condition), *sequence, now)
            }
        }
    }

    fn last_word(
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

    fn seen(
        &self,
        record: &Record,
        seen: &Seen,
        sequence: SequenceId,
        action: Action,
        now: Timestamp,
    ) -> Result<Event, EventError> {
        let mut event = self.status(record, seen.version, &seen.status, sequence, action, now)?;
        if event.size() + AROUND > MAX_PACKET {
            // Better without the values than not at all.
            let less = without_feedback(&seen.status, now);
            event = self.status(record, seen.version, &less, sequence, action, now)?;
        }
        // The digest is that of what was seen, so that a resync compares like with like.
        event.status_hash = Some(seen.hash.clone());
        let delivery = Delivery {
            hash: record.hash.clone(),
            received: record.received,
            applied: seen.applied,
            observed: Some(seen.observed),
        };
        delivery.attach(&mut event);
        Ok(event)
    }

    /// Without its digest.
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
        event.metadata = Some(record.echo(&self.consumer));
        event.log_tracing = Some(record.tracing.clone().unwrap_or_else(|| "{}".to_owned()));
        event.with_payload(&BundleStatus::from(status.clone()))
    }
}

fn told(
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

fn of(condition: Condition) -> ManifestWorkStatus {
    ManifestWorkStatus { conditions: vec![condition], ..ManifestWorkStatus::default() }
}

/// A status whose values would not fit into a packet: conditions stay, and say so.
fn without_feedback(status: &ManifestWorkStatus, now: Timestamp) -> ManifestWorkStatus {
    let mut less = status.clone();
    for manifest in &mut less.resource_status.manifests {
        if manifest.status_feedback.values.is_empty() {
            continue;
        }
        manifest.status_feedback.values.clear();
        manifest.conditions.retain(|condition| condition.type_ != "StatusFeedbackSynced");
        let message = "The values of this work do not fit into one message".to_owned();
        manifest.conditions.push(Condition {
            observed_generation: None,
            ..told("StatusFeedbackSynced", "False", "StatusFeedbackSyncFailed", message, 0, now)
        });
    }
    less
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;
    use serde_json::{Value, json};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn speaker() -> Speaker {
        Speaker { agent: "c1-work-agent".to_owned(), consumer: "c1".to_owned() }
    }

    fn seen(status: Value) -> Seen {
        let status: ManifestWorkStatus = serde_json::from_value(status).unwrap();
        Seen {
            version: 4,
            hash: status_hash(&status),
            status,
            applied: Some(NOW),
            observed: NOW,
            sequence: None,
            sent: false,
        }
    }

    fn sequence() -> SequenceId {
        SequenceId::parse("2122064138732572672").unwrap()
    }

    #[test]
    fn a_status_is_what_the_original_agent_sends_and_the_delivery_ledger() {
        let record = Record { seen: Some(seen(json!({"conditions": []}))), ..sample("w", 5) };
        let say = Say::Status { record: Box::new(record), sequence: sequence(), asked: false };
        let event = speaker().say(&say, NOW).unwrap();
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
    fn the_end_of_a_work_is_told_in_the_words_servers_know() {
        let say =
            Say::Gone { record: Box::new(Record { gone: true, ..sample("w", 5) }), sequence: sequence() };
        let event = speaker().say(&say, NOW).unwrap();
        let status: BundleStatus = event.payload().unwrap();
        assert!(status.is_deleted());
        assert_eq!(status.conditions[0].reason, "ManifestsDeleted");
        assert_eq!(status.conditions[0].message, "The manifests are deleted from the cluster c1");
    }

    #[test]
    fn a_status_too_large_for_a_packet_is_sent_without_its_values() {
        let large = json!({"resourceStatus": {"manifests": [{
            "resourceMeta": {"ordinal": 0, "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps",
                "name": "a", "namespace": "b"},
            "statusFeedback": {"values": [{"name": "d", "fieldValue": {"type": "JsonRaw", "jsonRaw": "x".repeat(600_000)}}]},
            "conditions": []}]}});
        let record = Record { seen: Some(seen(large)), ..sample("w", 5) };
        let say = Say::Status { record: Box::new(record.clone()), sequence: sequence(), asked: false };
        let event = speaker().say(&say, NOW).unwrap();
        assert!(event.size() < MAX_PACKET);
        let status: BundleStatus = event.payload().unwrap();
        assert_eq!(status.resource_status[0].conditions[0].reason, "StatusFeedbackSyncFailed");
        assert_eq!(event.status_hash, record.seen.map(|seen| seen.hash));
    }

    #[test]
    fn a_resync_that_fits_one_page_is_one_a_go_server_understands() {
        let event = speaker().resync(&IdRange::default(), &SpecResync::default(), NOW).unwrap();
        assert_eq!(event.original_source.as_deref(), Some(""));
        assert!(event.others.is_empty());
        assert_eq!(event.data, r#"{"resourceVersions":[]}"#);
    }
}
