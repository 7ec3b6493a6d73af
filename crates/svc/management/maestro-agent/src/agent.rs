//! Receives spec events and engine reports, and updates the agent's state.
//!
//! [`Agent`] is what the receiving side, the publisher and the writer share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use aro_base::SharedClock;
use aro_bundle::{Action, Event, IdRange, SequenceId, StatusResync, Subresource, Topics};
use aro_crds::work::v1::ManifestWorkStatus;
use aro_mqtt::{Delivery, Inbox};
use aro_runtime::{Component, LogLimiter};
use aro_work_engine::{Engine, Reports, Times};
use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::agent_state::AgentState;
use crate::metrics::AgentMetrics;
use crate::record::Record;
use crate::spec_event::{self, Decision};

/// The state and the signals that the tasks of an agent share.
pub struct Agent {
    pub consumer: String,
    pub topics: Topics,
    pub state: Mutex<AgentState>,
    /// Set before the first message can be delivered.
    pub engine: OnceLock<Engine>,
    pub clock: SharedClock,
    pub metrics: AgentMetrics,
    pub ready: Component,
    /// Wakes the publisher.
    pub reports_queued: Notify,
    /// Wakes the writer.
    pub records_changed: Notify,
    /// Wakes the writer at once: the engine waits for a record to be stored.
    pub engine_waits: Notify,
    /// A spec resync request has to be published.
    pub resync_requested: AtomicBool,
    /// Limits the resyncs that a server's status resync causes.
    pub resync_limiter: LogLimiter,
}

impl Agent {
    /// Handles a message. One that is not a valid event for this consumer is counted and dropped.
    fn receive(&self, topic: &str, message: &aro_mqtt::Message) {
        self.metrics.received.inc();
        if self.topics.source_topic_consumer(topic) != Some(self.consumer.as_str()) {
            return self.drop_event("topic of another consumer", topic);
        }
        let event = match aro_bundle::mqtt::read(message) {
            Ok(event) => event,
            Err(error) => return self.drop_event(&error.to_string(), topic),
        };
        if event.cluster_name != self.consumer {
            return self.drop_event("event for another consumer", &event.cluster_name);
        }
        match (event.kind.subresource, event.kind.action) {
            (Subresource::Status, Action::ResyncRequest) => self.resync_statuses(&event),
            (Subresource::Spec, Action::ResyncRequest) | (Subresource::Status, _) => {
                self.drop_event("event type that only agents publish", &event.source);
            }
            (Subresource::Spec, _) => self.handle_spec(&event),
        }
    }

    /// Queues the statuses that the server does not have.
    fn resync_statuses(&self, event: &Event) {
        let request: StatusResync = match event.payload() {
            Ok(request) => request,
            Err(error) => return self.drop_event(&error.to_string(), &event.source),
        };
        let range = IdRange::of_status_list(event);
        let mut state = self.state.lock();
        let queued = state.resync(&request, range.as_ref());
        let missing = request.status_hashes.iter().filter(|listed| !state.knows(&listed.id)).count();
        drop(state);
        tracing::debug!(listed = request.status_hashes.len(), queued, missing, "status resync received");
        // The server lists works that this agent does not have: a spec resync makes it send them.
        if missing > 0 && self.resync_limiter.permit().is_some() {
            tracing::info!(missing, "server lists unknown works; requesting a spec resync");
            self.request_resync();
        }
        self.reports_queued.notify_one();
    }

    fn handle_spec(&self, event: &Event) {
        let Some(engine) = self.engine.get() else { return };
        let id = event.resource_id.as_deref().unwrap_or_default();
        let mut state = self.state.lock();
        if let Some(known) = event.sequence_id.as_deref().and_then(SequenceId::parse) {
            state.raise_sequence(known);
        }
        let decision = spec_event::plan(event, state.get(id), self.clock.now());
        // The engine is called after the lock is released, since it reports into the state.
        let next = match decision {
            Decision::Apply(record) if state.get(id).is_none() => Next::Put(Box::new(state.upsert(*record))),
            Decision::Apply(record) => {
                state.upsert_stored_first(*record);
                Next::StoreFirst
            }
            Decision::Delete(record) => {
                tracing::info!(id, version = record.version, "deleting a work");
                if record.deleted {
                    // Nothing is left to delete; the report is published again.
                    let record = state.upsert(*record);
                    state.record_deleted(&record.name);
                    Next::Nothing
                } else {
                    state.upsert_stored_first(*record);
                    Next::StoreFirst
                }
            }
            Decision::Republish => {
                state.request_status(id);
                Next::Nothing
            }
            Decision::Reject(record, reason) => {
                self.metrics.refused.inc();
                tracing::warn!(id, version = record.version, reason, "bundle rejected");
                state.reject(*record, reason);
                Next::Nothing
            }
            Decision::Drop(reason) => {
                drop(state);
                return self.drop_event(reason, id);
            }
        };
        self.update_gauges(&state);
        drop(state);
        match next {
            Next::Put(record) => engine.put(record.work()),
            Next::StoreFirst => self.engine_waits.notify_one(),
            Next::Nothing => {}
        }
        self.reports_queued.notify_one();
        self.records_changed.notify_one();
    }

    fn drop_event(&self, reason: &str, subject: &str) {
        self.metrics.dropped.inc();
        tracing::debug!(reason, subject, "event dropped");
    }

    /// Sets the gauges of the state.
    pub fn update_gauges(&self, state: &AgentState) {
        self.metrics.works.set(state.len() as i64);
        self.metrics.waiting.set(state.queued() as i64);
    }

    /// Makes the publisher publish a spec resync request.
    pub fn request_resync(&self) {
        self.resync_requested.store(true, Ordering::Release);
        self.reports_queued.notify_one();
    }

    /// Whether a spec resync request is due; it no longer is afterwards.
    pub fn take_resync_request(&self) -> bool {
        self.resync_requested.swap(false, Ordering::AcqRel)
    }
}

/// How a spec event goes on after the state is updated.
enum Next {
    /// The engine applies it.
    Put(Box<Record>),
    /// The engine gets it from the writer once it is stored. Otherwise an agent that restarts would return to the stored
    /// version: it would delete objects that only the new version has, or restore a work that is being deleted.
    StoreFirst,
    Nothing,
}

#[async_trait]
impl Inbox for Agent {
    fn connected(&self) {
        self.ready.ready();
        self.request_resync();
    }

    fn disconnected(&self) {
        self.ready.not_ready("broker not connected; known works are still enforced");
    }

    async fn deliver(&self, delivery: Delivery) {
        self.receive(&delivery.topic, &delivery.message);
        // The state holds it. Should the process end before it is stored, the next resync brings it again.
        delivery.ack.done();
    }
}

impl Reports for Agent {
    fn status(&self, name: &str, generation: i64, status: ManifestWorkStatus, times: Times) {
        let mut state = self.state.lock();
        state.record_status(name, generation, status, times);
        self.update_gauges(&state);
        drop(state);
        self.reports_queued.notify_one();
        self.records_changed.notify_one();
    }

    fn gone(&self, name: &str) {
        let received_again = self.state.lock().record_deleted(name);
        // The engine ignores a put of a work that it is deleting.
        if let (Some(record), Some(engine)) = (received_again, self.engine.get()) {
            engine.put(record.work());
        }
        self.reports_queued.notify_one();
        self.records_changed.notify_one();
    }
}

/// The agent, shared by its tasks.
pub type SharedAgent = Arc<Agent>;
