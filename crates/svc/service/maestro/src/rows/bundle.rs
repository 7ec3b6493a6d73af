//! A stored bundle and its delivery.

use std::time::Duration;

use aro_base::{SignedDuration, Timestamp};
use aro_bundle::{Event, EventError, json};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Moment;

/// The pause before the first republish; it doubles with every attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
pub const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// One bundle: the spec for one consumer, its last status, and its delivery.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bundle {
    /// The work's uid.
    pub id: String,
    /// Equal to the id.
    pub name: String,
    /// The source that owns it.
    pub source: String,
    /// The consumer it is for.
    pub consumer_name: String,
    /// Grows with every change of the spec.
    pub version: i32,
    /// Always `Bundle`; a searchable column.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it was created.
    pub created_at: Moment,
    /// When the spec last changed.
    pub updated_at: Moment,
    /// When its deletion was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Moment>,
    /// The source's event, with `metadata` as an object.
    pub payload: Box<RawValue>,
    /// The agent's last event, with the source's `metadata`.
    pub status: Option<Box<RawValue>>,
    /// Its delivery.
    pub delivery: DeliveryRecord,
}

impl Bundle {
    /// The source's event.
    pub fn spec_event(&self) -> Result<Event, EventError> {
        json::read(self.payload.get())
    }

    /// The agent's last event.
    pub fn status_event(&self) -> Result<Option<Event>, EventError> {
        self.status.as_deref().map(|status| json::read(status.get())).transpose()
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.deleted_at.is_some()
    }

    /// Whether its agent has not confirmed the current spec.
    pub fn is_undelivered(&self) -> bool {
        self.is_deleting() || self.delivery.observed_version < self.version
    }
}

/// The delivery of the current spec: stored → published → received → applied → observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRecord {
    /// The digest of the data.
    pub hash: String,
    /// The version.
    pub version: i32,
    /// When it was stored.
    pub stored: Moment,
    /// When the broker first acknowledged it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Moment>,
    /// When the agent received it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Moment>,
    /// When all of it was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Moment>,
    /// When the last status was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Moment>,
    /// The last version the agent reported.
    pub observed_version: i32,
    /// How often it was published again.
    pub attempts: u32,
    /// When its next attempt is due; none while it is confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Moment>,
    /// The sequence id of the last accepted status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<String>,
    /// The last sequence id of a former bundle of this id. Statuses up to it belong to that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<String>,
}

impl DeliveryRecord {
    /// The delivery of a new bundle.
    pub fn begin(hash: String, version: i32, now: Timestamp, floor: Option<String>) -> Self {
        Self {
            hash,
            version,
            stored: now.into(),
            published: None,
            received: None,
            applied: None,
            observed: None,
            observed_version: 0,
            attempts: 0,
            next_attempt: Some(after(now, FIRST_PAUSE)),
            sequence: floor.clone(),
            floor,
        }
    }

    /// The delivery of a changed spec. The last report of the agent is kept.
    pub fn renew(&self, hash: String, version: i32, now: Timestamp) -> Self {
        Self {
            observed_version: self.observed_version,
            sequence: self.sequence.clone(),
            ..Self::begin(hash, version, now, self.floor.clone())
        }
    }

    /// Counts an attempt and schedules the next one.
    pub fn attempted(&mut self, now: Timestamp) {
        self.attempts = self.attempts.saturating_add(1);
        self.next_attempt = Some(after(now, pause(self.attempts)));
    }

    /// Whether its next attempt is due. A time further ahead than any pause comes from a wrong clock.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.next_attempt.is_some_and(|next| next.0 <= now || next > after(now, LONGEST_PAUSE))
    }

    /// Resets the attempts, so that it is published again soon.
    pub fn restart(&mut self, now: Timestamp) {
        self.attempts = 0;
        self.next_attempt = Some(after(now, FIRST_PAUSE));
    }
}

/// The pause after this many attempts.
fn pause(attempts: u32) -> Duration {
    LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.saturating_pow(attempts.min(10)))
}

fn after(now: Timestamp, pause: Duration) -> Moment {
    let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
    Moment(now.saturating_add(pause).unwrap_or(Timestamp::MAX))
}

/// What remains of a removed bundle for a while, so that followers of the feed deliver its final status.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tombstone {
    /// The bundle's id.
    pub id: String,
    /// Its source.
    pub source: String,
    /// Its consumer.
    pub consumer_name: String,
    /// Its last version.
    pub version: i32,
    /// When it was removed.
    pub removed_at: Moment,
    /// The source's event.
    pub payload: Box<RawValue>,
    /// The agent's last event, which reports the deletion.
    pub status: Box<RawValue>,
    /// The sequence id of that event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_from_a_second_to_a_minute() {
        let seconds: Vec<u64> = (0..8).map(|attempts| pause(attempts).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
    }
}
