//! Answers the spec resync requests of agents.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_bundle::{Event, EventError, IdRange, SpecResync};
use aro_runtime::{Fault, Scope, TaskKind};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::StatusRequester;
use super::read_page;
use super::request_queue::RequestQueue;
use crate::encoder::AgentEncoder;
use crate::metrics::ServerMetrics;
use crate::orphans::OrphanDeleter;
use crate::publisher::Publisher;
use crate::rows::{Bundle, Rows};
use crate::status_receiver::Received;

/// Agents answered concurrently.
const AGENTS: usize = 8;
/// Attempts at one response, and the pauses between them.
const ATTEMPTS: usize = 20;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Sends agents the specs they do not have, and the deletion of orphans.
pub struct SpecResponder {
    pub rows: Rows,
    pub publisher: Arc<Publisher>,
    pub encoder: AgentEncoder,
    pub orphans: Arc<OrphanDeleter>,
    pub statuses: Arc<StatusRequester>,
    pub metrics: ServerMetrics,
}

/// Why a request has no response.
#[derive(Debug)]
enum Unanswered {
    Malformed(EventError),
    Failed(Fault),
}

impl From<Fault> for Unanswered {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault)
    }
}

impl SpecResponder {
    /// Answers requests until the scope closes.
    pub fn start(self, mut requests: mpsc::Receiver<Received>, scope: &Scope) {
        let responder = Arc::new(self);
        let inside = scope.clone();
        // One message per response under way, so there is always room.
        let (done, mut finished) = mpsc::channel(AGENTS);
        scope.spawn(TaskKind::Worker, "resyncs", async move {
            let mut queue: RequestQueue<Received> = RequestQueue::default();
            let mut free = AGENTS;
            loop {
                while free > 0
                    && let Some((consumer, (event, ack))) = queue.next()
                {
                    free -= 1;
                    let slot = Slot { consumer, done: done.clone() };
                    let responder = responder.clone();
                    inside.spawn(TaskKind::Helper, "resync", async move {
                        let _slot = slot;
                        responder.respond_with_retry(&event).await;
                        ack.done();
                        Ok::<_, Fault>(())
                    });
                }
                tokio::select! {
                    biased;
                    () = inside.cancelled() => return Ok(()),
                    Some(consumer) = finished.recv() => {
                        free += 1;
                        queue.finish(&consumer);
                    }
                    request = requests.recv() => {
                        let Some(request) = request else { return Ok::<_, Fault>(()) };
                        responder.enqueue(&mut queue, request);
                    }
                }
            }
        });
    }

    /// Enqueues a request. One that it displaces is acknowledged without a response.
    fn enqueue(&self, queue: &mut RequestQueue<Received>, (event, ack): Received) {
        let (consumer, range) = (event.cluster_name.clone(), IdRange::of(&event));
        let id = event.id.clone();
        if let Some((displaced, ack)) = queue.add(&consumer, range, (event, ack)) {
            // A newer request replaces an older one; if this one is returned, the queue is full.
            if displaced.id == id {
                self.metrics.refused("too_many_questions");
                tracing::error!(consumer, "resync queue full; request dropped until the agent reconnects");
            }
            ack.done();
        }
    }

    /// Responds, with retries: no other message carries the deletion of orphans.
    async fn respond_with_retry(&self, event: &Event) {
        let consumer = &event.cluster_name;
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        if matches!(self.rows.consumer_by_name(consumer).await, Ok(None)) {
            tracing::warn!(consumer, "resync request of an unknown consumer (wrong name, or not created?)");
        }
        for _ in 0..ATTEMPTS {
            match self.respond(event).await {
                Ok(sent) => {
                    tracing::info!(consumer, sent, "spec resync answered");
                    self.metrics.spec_resync.observe(began.elapsed().as_secs_f64());
                    return self.request_statuses(event).await;
                }
                Err(Unanswered::Malformed(error)) => {
                    tracing::warn!(consumer, %error, "resync request cannot be decoded; dropped");
                    return;
                }
                Err(Unanswered::Failed(error)) => {
                    tracing::warn!(consumer, error = %chain(&error), "spec resync interrupted; retrying");
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        tracing::error!(consumer, "spec resync abandoned until the agent reconnects");
    }

    /// Publishes every spec that is newer than the agent's, and the deletion of orphans. Returns how many.
    async fn respond(&self, event: &Event) -> Result<usize, Unanswered> {
        let request: SpecResync = event.payload().map_err(Unanswered::Malformed)?;
        let range = IdRange::of(event);
        let consumer = &event.cluster_name;
        let mut listed: HashMap<String, i64> =
            request.resource_versions.into_iter().map(|known| (known.id, known.version)).collect();
        let mut sent = 0;
        let mut after = None;
        loop {
            let (rows, next) = read_page(&self.rows, consumer, after).await?;
            let mut events = Vec::new();
            for row in rows.into_iter().map(|row| row.value).filter(|row| range.contains(&row.id)) {
                let version = listed.remove(&row.id).unwrap_or_default();
                events.extend(self.respond_for(row, version).await?);
            }
            sent += self.publisher.publish_all(consumer, events).await?;
            after = next;
            if after.is_none() {
                break;
            }
        }
        listed.retain(|id, _| range.contains(id));
        if listed.is_empty() && range == IdRange::default() {
            // If this fails, the next resync repeats it.
            if let Err(error) = self.rows.unblock_orphan_deletion(consumer).await {
                tracing::debug!(consumer, error = %chain(&error), "consumer not unblocked");
            }
        }
        Ok(sent + self.orphans.delete_listed(consumer, listed).await?)
    }

    /// The event for one row of which the agent has a version, or none (0).
    async fn respond_for(&self, row: Bundle, version: i64) -> Result<Option<Event>, Fault> {
        let row = if is_ahead(&row, version) { self.raise_version(&row, version).await? } else { Some(row) };
        let Some(row) = row.filter(|row| is_missing(row, version)) else { return Ok(None) };
        match self.encoder.spec(&row, true) {
            Ok(event) => Ok(Some(event)),
            // One invalid row must not block the others.
            Err(error) => {
                tracing::error!(bundle = row.id, %error, "stored bundle cannot be decoded");
                Ok(None)
            }
        }
    }

    /// Gives a bundle a version above the agent's. `None` if another writer changes it at the same time: that change is
    /// published by itself.
    async fn raise_version(&self, row: &Bundle, above: i64) -> Result<Option<Bundle>, Fault> {
        let raised = self.rows.raise_version(&row.id, above).await;
        let raised = raised.map_err(|error| Fault::caused("raise the version of a bundle", error))?;
        if let Some(row) = &raised {
            tracing::warn!(
                bundle = row.id,
                consumer = row.consumer_name,
                agent_version = above,
                version = row.version,
                "agent has a newer version than the store; version raised above it"
            );
        }
        Ok(raised)
    }

    /// Requests the statuses of an agent that has reconnected. Its last ones may be lost with a broker that had acknowledged
    /// them, and it may have been disconnected when the server requested them after its own connect.
    async fn request_statuses(&self, event: &Event) {
        // The last page of a list is enough.
        if IdRange::of(event).to.is_some() {
            return;
        }
        let consumer = &event.cluster_name;
        if let Err(error) = self.statuses.request(consumer).await {
            tracing::warn!(consumer, error = %chain(&error), "statuses not requested until the agent reconnects");
        }
    }
}

/// Whether the agent lacks what a row wants.
fn is_missing(row: &Bundle, agent_version: i64) -> bool {
    row.is_deleting() || i64::from(row.version) > agent_version
}

/// Whether the agent has a newer version than the row: the bundle was created again while the agent was disconnected, or
/// the store was restored. The agent would drop every spec as stale.
fn is_ahead(row: &Bundle, agent_version: i64) -> bool {
    !row.is_deleting() && agent_version > i64::from(row.version)
}

/// The response to one consumer. Dropping it reports that it is finished, however it ended.
struct Slot {
    consumer: String,
    done: mpsc::Sender<String>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let _ = self.done.try_send(std::mem::take(&mut self.consumer));
    }
}
