//! Receives the events of agents.
//!
//! Statuses of one bundle are stored in order, those of different bundles concurrently (in lanes). A message is acknowledged
//! once its status is stored. What a crash interrupts, the broker or the next resync delivers again. While the store is
//! unavailable nothing is acknowledged, and the broker stops sending.

use std::sync::Arc;
use std::time::Duration;

use aro_bundle::{Event, Topics};
use aro_mqtt::{Ack, Delivery, Inbox};
use aro_runtime::{Fault, LogLimiter, Scope, TaskKind};
use async_trait::async_trait;
use tokio::sync::{Notify, mpsc};

use crate::agent_event::{AgentEvent, parse_agent_event};
use crate::metrics::ServerMetrics;
use crate::status_writer::StatusWriter;

/// Statuses stored concurrently.
const LANES: usize = 64;
/// Statuses that wait in each lane.
const LANE_DEPTH: usize = 64;
/// Resync requests of agents that wait.
const RESYNCS: usize = 1024;
/// The least time between log lines about dropped messages; every one is counted.
pub const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// An event and its acknowledgement.
pub type Received = (Event, Ack);

/// The receiving side of the broker connection.
pub struct StatusReceiver {
    topics: Topics,
    metrics: ServerMetrics,
    lanes: Vec<mpsc::Sender<Received>>,
    resyncs: mpsc::Sender<Received>,
    /// An agent that publishes invalid messages without pause must not fill the log.
    log_limiter: Arc<LogLimiter>,
    connected: Arc<Notify>,
}

impl StatusReceiver {
    /// Starts the lanes in a scope. Returns the resync requests of agents too.
    pub fn start(
        topics: Topics,
        metrics: ServerMetrics,
        writer: Arc<StatusWriter>,
        log_limiter: Arc<LogLimiter>,
        scope: &Scope,
    ) -> (Arc<Self>, mpsc::Receiver<Received>) {
        let mut lanes = Vec::with_capacity(LANES);
        for _ in 0..LANES {
            let (sender, receiver) = mpsc::channel(LANE_DEPTH);
            lanes.push(sender);
            let (writer, inside) = (writer.clone(), scope.clone());
            scope.spawn(TaskKind::Worker, "statuses", async move {
                store_lane(&writer, receiver, &inside).await;
                Ok::<_, Fault>(())
            });
        }
        let (resyncs, requests) = mpsc::channel(RESYNCS);
        let connected = Arc::new(Notify::new());
        (Arc::new(Self { topics, metrics, lanes, resyncs, log_limiter, connected }), requests)
    }

    /// Notified after every connect.
    pub fn connected(&self) -> Arc<Notify> {
        self.connected.clone()
    }
}

#[async_trait]
impl Inbox for StatusReceiver {
    fn connected(&self) {
        self.connected.notify_one();
    }

    async fn deliver(&self, delivery: Delivery) {
        let Delivery { topic, message, ack } = delivery;
        match parse_agent_event(&self.topics, &topic, &message) {
            Ok(AgentEvent::Status(event)) => {
                self.metrics.received(event.kind);
                let lane = lane_of(event.resource_id.as_deref().unwrap_or_default(), self.lanes.len());
                // A full lane blocks the delivery of further messages, and so the broker.
                let _ = self.lanes[lane].send((event, ack)).await;
            }
            Ok(AgentEvent::SpecResync(event)) => {
                self.metrics.received(event.kind);
                let _ = self.resyncs.send((event, ack)).await;
            }
            Err(rejection) => {
                self.metrics.refused(rejection.label());
                if let Some(suppressed) = self.log_limiter.permit() {
                    tracing::warn!(topic, reason = %rejection, suppressed, "agent message dropped");
                }
                ack.done();
            }
        }
    }
}

fn lane_of(bundle: &str, lanes: usize) -> usize {
    use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
    BuildHasherDefault::<DefaultHasher>::default().hash_one(bundle) as usize % lanes
}

/// Stores the statuses of one lane one after another.
async fn store_lane(writer: &StatusWriter, mut received: mpsc::Receiver<Received>, scope: &Scope) {
    loop {
        let next = tokio::select! {
            biased;
            () = scope.cancelled() => return,
            next = received.recv() => next,
        };
        let Some((event, ack)) = next else { return };
        tokio::select! {
            biased;
            () = scope.cancelled() => return,
            () = writer.store(&event) => ack.done(),
        }
    }
}
