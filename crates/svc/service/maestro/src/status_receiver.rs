//! Receives the events of agents.
//!
//! Statuses are stored by a number of workers, fairly over consumers ([`StatusQueue`]). Statuses of one bundle are stored in
//! order. A message is acknowledged once its status is stored, or dropped because its consumer sends more than can be stored:
//! then the consumer's statuses are requested again later. What a crash interrupts, the broker or the next resync delivers
//! again. Receiving never waits for the store: a message of one consumer does not keep those of others waiting.

use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_bundle::{Event, Topics};
use aro_mqtt::{Ack, Delivery, Inbox};
use aro_runtime::{Fault, LogLimiter, Scope, TaskKind};
use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use crate::agent_event::{AgentEvent, parse_agent_event};
use crate::metrics::ServerMetrics;
use crate::resync::StatusRequester;
use crate::status_queue::{QueueLimits, StatusQueue, Taken};
use crate::status_writer::StatusWriter;

/// Statuses stored concurrently.
const WORKERS: usize = 64;
/// What may wait. All consumers together stay within the broker connection's receive window.
const LIMITS: QueueLimits = QueueLimits {
    messages: 500,
    bytes: 16 * 1024 * 1024,
    total_bytes: 256 * 1024 * 1024,
    concurrency: WORKERS / 4,
};
/// The pause before dropped statuses are requested again: an agent that floods the server must not make it read all its bundles
/// without pause.
const REQUEST_PAUSE: Duration = Duration::from_secs(10);
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
    statuses: Arc<Statuses>,
    resyncs: mpsc::Sender<Received>,
    /// An agent that publishes invalid messages without pause must not fill the log.
    log_limiter: Arc<LogLimiter>,
    connected: Arc<Notify>,
}

/// The statuses that wait, and the workers' signal.
struct Statuses {
    queue: Mutex<StatusQueue<Received>>,
    added: Notify,
}

impl StatusReceiver {
    /// Starts the workers in a scope. Returns the resync requests of agents too.
    pub fn start(
        topics: Topics,
        metrics: ServerMetrics,
        writer: Arc<StatusWriter>,
        requester: &Arc<StatusRequester>,
        log_limiter: Arc<LogLimiter>,
        scope: &Scope,
    ) -> (Arc<Self>, mpsc::Receiver<Received>) {
        let queue = Mutex::new(StatusQueue::new(LIMITS));
        let statuses = Arc::new(Statuses { queue, added: Notify::new() });
        for _ in 0..WORKERS {
            let (statuses, writer, requester) = (statuses.clone(), writer.clone(), requester.clone());
            let inside = scope.clone();
            scope.spawn(TaskKind::Worker, "statuses", async move {
                store_statuses(&statuses, &writer, &requester, &inside).await;
                Ok::<_, Fault>(())
            });
        }
        let (resyncs, requests) = mpsc::channel(RESYNCS);
        let connected = Arc::new(Notify::new());
        (Arc::new(Self { topics, metrics, statuses, resyncs, log_limiter, connected }), requests)
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
                self.enqueue(event, message.payload.len(), ack);
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

impl StatusReceiver {
    /// Enqueues a status. One that does not fit is acknowledged: it must not occupy the receive window of the others.
    fn enqueue(&self, event: Event, bytes: usize, ack: Ack) {
        let (consumer, bundle) = (event.cluster_name.clone(), event.resource_id.clone().unwrap_or_default());
        let added = self.statuses.queue.lock().add(&consumer, &bundle, bytes, (event, ack));
        match added {
            Ok(()) => self.statuses.added.notify_one(),
            Err((_, ack)) => {
                self.metrics.refused("flooding");
                if let Some(suppressed) = self.log_limiter.permit() {
                    tracing::warn!(
                        consumer,
                        suppressed,
                        "status queue of a consumer full; status dropped until it is requested again"
                    );
                }
                ack.done();
            }
        }
    }
}

/// Stores statuses one after another.
async fn store_statuses(
    statuses: &Statuses,
    writer: &StatusWriter,
    requester: &Arc<StatusRequester>,
    scope: &Scope,
) {
    loop {
        let taken = statuses.queue.lock().next();
        let Some(Taken { consumer, bundle, bytes, status: (event, ack) }) = taken else {
            tokio::select! {
                biased;
                () = scope.cancelled() => return,
                () = statuses.added.notified() => continue,
            }
        };
        tokio::select! {
            biased;
            () = scope.cancelled() => return,
            () = writer.store(&event) => ack.done(),
        }
        if statuses.queue.lock().finish(&consumer, &bundle, bytes) {
            request_dropped(requester.clone(), consumer, scope);
        }
    }
}

/// Requests the statuses of a consumer after a pause.
fn request_dropped(requester: Arc<StatusRequester>, consumer: String, scope: &Scope) {
    let inside = scope.clone();
    scope.spawn(TaskKind::Helper, "dropped statuses", async move {
        tokio::select! {
            biased;
            () = inside.cancelled() => return Ok::<_, Fault>(()),
            () = tokio::time::sleep(REQUEST_PAUSE) => {}
        }
        // If the broker is not connected, the resync after the next connect requests them.
        if let Err(error) = requester.request(&consumer).await {
            tracing::warn!(consumer, error = %chain(&error), "dropped statuses could not be requested");
        }
        Ok(())
    });
}
