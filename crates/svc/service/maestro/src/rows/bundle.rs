//! A bundle as it is stored, and how far it was delivered.

use std::time::Duration;

use aro_base::{SignedDuration, Timestamp};
use aro_bundle::{Event, EventError, json};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Moment;

/// The first pause before a bundle is published again; it doubles with every attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
pub const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// One bundle: what is wanted on one consumer, what was last told of it, how far it was delivered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bundle {
    /// The work's uid.
    pub id: String,
    /// Equal to the id.
    pub name: String,
    /// Whose it is.
    pub source: String,
    /// Where it goes.
    pub consumer_name: String,
    /// Grows with every change of what is wanted.
    pub version: i32,
    /// Always `Bundle`; a column that searches may name.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it was created.
    pub created_at: Moment,
    /// When what is wanted last changed.
    pub updated_at: Moment,
    /// Since when it is to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<Moment>,
    /// The source's event, `metadata` being an object.
    pub payload: Box<RawValue>,
    /// The agent's last event, with the source's `metadata`.
    pub status: Option<Box<RawValue>>,
    /// How far it was delivered.
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

    /// Whether it is to go.
    pub fn is_deleting(&self) -> bool {
        self.deleted_at.is_some()
    }

    /// Whether its consumer has not answered for what is wanted now.
    pub fn is_undelivered(&self) -> bool {
        self.is_deleting() || self.delivery.observed_version < self.version
    }
}

/// How far what is wanted now got: stored → published → received → applied → observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRecord {
    /// The digest of the data.
    pub hash: String,
    /// The version this is about.
    pub version: i32,
    /// When it was stored.
    pub stored: Moment,
    /// When the broker first took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Moment>,
    /// When the agent had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Moment>,
    /// When all of it was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Moment>,
    /// When the last status was read off the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Moment>,
    /// The last version the agent told of.
    pub observed_version: i32,
    /// How often it was published again.
    pub attempts: u32,
    /// When it is due to be published again; nothing while there is no need to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Moment>,
    /// The sequence id of the last status that counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<String>,
    /// The last sequence id of a former bundle of this id: what is not newer speaks of that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<String>,
}

impl DeliveryRecord {
    /// Of something just stored.
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

    /// Of a change: what was told before stays told.
    pub fn renew(&self, hash: String, version: i32, now: Timestamp) -> Self {
        Self {
            observed_version: self.observed_version,
            sequence: self.sequence.clone(),
            ..Self::begin(hash, version, now, self.floor.clone())
        }
    }

    /// Counts an attempt and says when the next one is due.
    pub fn attempted(&mut self, now: Timestamp) {
        self.attempts = self.attempts.saturating_add(1);
        self.next_attempt = Some(after(now, pause(self.attempts)));
    }

    /// Whether it is due to be published again. A time further ahead than any pause was written by a clock that was wrong.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.next_attempt.is_some_and(|next| next.0 <= now || next > after(now, LONGEST_PAUSE))
    }

    /// Starts over: it has to be published again soon.
    pub fn again(&mut self, now: Timestamp) {
        self.attempts = 0;
        self.next_attempt = Some(after(now, FIRST_PAUSE));
    }
}

/// How long to wait after so many attempts.
fn pause(attempts: u32) -> Duration {
    LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.saturating_pow(attempts.min(10)))
}

fn after(now: Timestamp, pause: Duration) -> Moment {
    let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
    Moment(now.saturating_add(pause).unwrap_or(Timestamp::MAX))
}

/// What is left of a bundle for a while after it went, so that everybody who follows the feed can tell of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Farewell {
    /// The bundle's id.
    pub id: String,
    /// Whose it was.
    pub source: String,
    /// Where it was.
    pub consumer_name: String,
    /// Its last version.
    pub version: i32,
    /// When it went.
    pub removed_at: Moment,
    /// The source's event.
    pub payload: Box<RawValue>,
    /// The agent's last event: that everything is gone.
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
