//! The delivery ledger: how far every version of every bundle got, and when.
//!
//! The times live in the rows ([`crate::rows::DeliveryRecord`]), written together with what they are about; this is how
//! they are shown, and the metrics that raise an alarm.

use std::time::Duration;

use aro_base::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::dispatch::Dispatcher;
use crate::rows::{Bundle, Moment};

/// How far a version got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// It is in the store.
    Stored,
    /// The broker took it.
    Published,
    /// The agent has it.
    Received,
    /// All of it is applied.
    Applied,
    /// Its status came back.
    Observed,
}

/// One line of the ledger.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// The bundle.
    pub id: String,
    /// Its consumer.
    pub consumer: String,
    /// Its source.
    pub source: String,
    /// The version this is about.
    pub version: i32,
    /// The digest of what is wanted.
    pub hash: String,
    /// Whether it is on its way out.
    pub deleting: bool,
    /// How far it got.
    pub stage: Stage,
    /// Whether the agent has confirmed it.
    pub delivered: bool,
    /// For how long it has been under way, in milliseconds; until it was observed, if it was.
    pub age_ms: i64,
    /// How often it was published again.
    pub republished: u32,
    /// When it was stored.
    pub stored: Moment,
    /// When the broker took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<Moment>,
    /// When the agent had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<Moment>,
    /// When it was applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<Moment>,
    /// When its status was read off the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<Moment>,
}

/// The line of a bundle. `published` is what this replica remembers and the row does not know yet.
pub fn entry(row: &Bundle, published: Option<Timestamp>, now: Timestamp) -> Entry {
    let record = &row.delivery;
    let delivered = !row.is_undelivered();
    let published = record.published.or(published.map(Moment));
    // Of a deletion nothing is heard before its end; what was heard of the version before is another delivery.
    let heard = record.observed_version == row.version && !row.is_deleting();
    let (received, applied, observed) =
        if heard { (record.received, record.applied, record.observed) } else { (None, None, None) };
    let stage = if observed.is_some() {
        Stage::Observed
    } else if applied.is_some() {
        Stage::Applied
    } else if received.is_some() {
        Stage::Received
    } else if published.is_some() {
        Stage::Published
    } else {
        Stage::Stored
    };
    let began = row.deleted_at.unwrap_or(record.stored).0;
    let ended = observed.filter(|_| delivered).map_or(now, |observed| observed.0);
    Entry {
        id: row.id.clone(),
        consumer: row.consumer_name.clone(),
        source: row.source.clone(),
        version: row.version,
        hash: record.hash.clone(),
        deleting: row.is_deleting(),
        stage,
        delivered,
        age_ms: i64::try_from(ended.duration_since(began).as_millis()).unwrap_or(i64::MAX).max(0),
        republished: record.attempts,
        stored: record.stored,
        published,
        received,
        applied,
        observed,
    }
}

/// How often the gauges are set.
pub const LOOK: Duration = Duration::from_millis(500);

/// Sets the gauges that alarms look at.
pub fn look(dispatcher: &Dispatcher, alarm: Duration) {
    let now = dispatcher.clock.now();
    let alarm = SignedDuration::try_from(alarm).unwrap_or(SignedDuration::MAX);
    let before = now.saturating_sub(alarm).unwrap_or(Timestamp::MIN);
    let (late, all, oldest) = dispatcher.backlog.waiting(before);
    let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    dispatcher.observer.undelivered.set(gauge(late));
    dispatcher.observer.unconfirmed.set(gauge(all));
    let age = oldest.map_or(0.0, |oldest| now.duration_since(oldest).as_secs_f64());
    dispatcher.observer.oldest.set(age.max(0.0));
}

impl crate::rest::Ledger for Dispatcher {
    fn line(&self, bundle: &Bundle) -> serde_json::Value {
        let line = entry(bundle, self.published_at(&bundle.id, bundle.version), self.clock.now());
        serde_json::to_value(line).unwrap_or_default()
    }

    fn marked(&self, bundle: Bundle) {
        self.stored(bundle);
    }
}
