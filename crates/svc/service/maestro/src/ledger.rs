//! The delivery ledger: which stage every version of every bundle has reached, and when.
//!
//! The times are in the rows ([`crate::rows::DeliveryRecord`]), written together with the change they belong to. This module
//! renders them, and sets the gauges that alarms use.

use std::sync::Arc;
use std::time::Duration;

use aro_base::{SharedClock, SignedDuration, Timestamp};
use serde::Serialize;

use crate::backlog::Backlog;
use crate::metrics::ServerMetrics;
use crate::publish_times::PublishTimes;
use crate::rows::{Bundle, Moment};
use crate::spec_queue::SpecQueue;

/// The stage of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// The store has it.
    Stored,
    /// The broker acknowledged it.
    Published,
    /// The agent received it.
    Received,
    /// All of it is applied.
    Applied,
    /// Its status was received.
    Observed,
}

/// One entry of the ledger.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// The bundle.
    pub id: String,
    /// Its consumer.
    pub consumer: String,
    /// Its source.
    pub source: String,
    /// The version.
    pub version: i32,
    /// The digest of the spec.
    pub hash: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The stage it has reached.
    pub stage: Stage,
    /// Whether the agent has confirmed it.
    pub delivered: bool,
    /// Milliseconds since it was stored; until it was observed, if it was.
    pub age_ms: i64,
    /// How often it was published again.
    pub republished: u32,
    /// When it was stored.
    pub stored: Moment,
    /// When the broker acknowledged it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<Moment>,
    /// When the agent received it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<Moment>,
    /// When it was applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<Moment>,
    /// When its status was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<Moment>,
}

/// The entry of a bundle. `published` is this replica's publish time, which the row does not have yet.
pub fn entry(row: &Bundle, published: Option<Timestamp>, now: Timestamp) -> Entry {
    let record = &row.delivery;
    let delivered = !row.is_undelivered();
    let published = record.published.or(published.map(Moment));
    // A deletion has no status before its end; the status of the version before belongs to another delivery.
    let has_status = record.observed_version == row.version && !row.is_deleting();
    let (received, applied, observed) =
        if has_status { (record.received, record.applied, record.observed) } else { (None, None, None) };
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

/// Sets the gauges that alarms use.
pub fn set_gauges(backlog: &Backlog, metrics: &ServerMetrics, now: Timestamp, alarm: Duration) {
    let alarm = SignedDuration::try_from(alarm).unwrap_or(SignedDuration::MAX);
    let summary = backlog.summary(now.saturating_sub(alarm).unwrap_or(Timestamp::MIN));
    let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    metrics.undelivered.set(gauge(summary.late));
    metrics.unconfirmed.set(gauge(summary.total));
    let age = summary.oldest.map_or(0.0, |oldest| now.duration_since(oldest).as_secs_f64());
    metrics.oldest.set(age.max(0.0));
}

/// The ledger as the REST API uses it.
pub(crate) struct DeliveryLedger {
    pub times: Arc<PublishTimes>,
    pub queue: Arc<SpecQueue>,
    pub clock: SharedClock,
}

impl crate::rest::Ledger for DeliveryLedger {
    fn entry(&self, bundle: &Bundle) -> serde_json::Value {
        let published = self.times.find(&bundle.id, bundle.version);
        serde_json::to_value(entry(bundle, published, self.clock.now())).unwrap_or_default()
    }

    fn deletion_stored(&self, bundle: Bundle) {
        self.queue.enqueue_stored(bundle);
    }
}
