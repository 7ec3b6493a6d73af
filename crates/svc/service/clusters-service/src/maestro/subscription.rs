//! Receives statuses: one stream for each shard, for as long as the shard exists.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{SharedClock, chain};
use aro_bundle::{Event, KnownStatus, SequenceId, StatusResync, Subresource};
use aro_event_service::{Client, ClientError, Subscription};
use aro_net::Backoff;
use aro_runtime::{Fault, Phase, Scope, TaskKind};
use parking_lot::Mutex;
use tonic::transport::Channel;

use super::event;
use super::status::{Received, StatusHandler};

/// Between two attempts to subscribe.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(10)).with_jitter(50);
/// A stream without a heartbeat for this long is dead: the server sends one every ten seconds.
const SILENCE: Duration = Duration::from_secs(25);
/// Entries of one resync request.
const MAX_RESYNC: usize = 5000;

/// A shard to listen to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Shard {
    /// The source id.
    pub(crate) source: String,
}

/// What was handed on of a bundle.
#[derive(Debug, Clone, Default)]
struct Known {
    sequence: String,
    hash: String,
}

/// The subscriptions of all shards.
#[derive(Clone)]
pub(crate) struct Subscriptions {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client<Channel>,
    clock: SharedClock,
    handler: Arc<dyn StatusHandler>,
    running: Mutex<HashMap<String, Scope>>,
}

impl Subscriptions {
    pub(crate) fn new(client: Client<Channel>, clock: SharedClock, handler: Arc<dyn StatusHandler>) -> Self {
        Self { inner: Arc::new(Inner { client, clock, handler, running: Mutex::default() }) }
    }

    /// Subscribes to a shard's statuses, unless it is done already.
    pub(crate) fn ensure(&self, shard: &Shard, scope: &Scope) {
        let mut running = self.inner.running.lock();
        if running.contains_key(&shard.source) {
            return;
        }
        let own = scope.child(Phase::Transports, &shard.source);
        running.insert(shard.source.clone(), own.clone());
        drop(running);
        let (inner, source) = (self.inner.clone(), shard.source.clone());
        own.spawn(TaskKind::Helper, "statuses", async move {
            inner.run(&source).await;
            Ok::<_, Fault>(())
        });
    }
}

impl Inner {
    async fn run(&self, source: &str) {
        let mut known: HashMap<String, Known> = HashMap::new();
        let mut attempts = BACKOFF.attempts();
        loop {
            let error = match self.subscribe(source, &known).await {
                Ok(mut subscription) => {
                    attempts.reset();
                    tracing::info!(source, "subscribed to Maestro");
                    self.receive(&mut subscription, &mut known).await
                }
                Err(error) => error,
            };
            tracing::warn!(source, error = %chain(&error), "Maestro subscription lost; subscribing again");
            attempts.wait().await;
        }
    }

    /// Opens the stream, then requests what differs from what is known: nothing that happened before is lost.
    async fn subscribe(
        &self,
        source: &str,
        known: &HashMap<String, Known>,
    ) -> Result<Subscription, ClientError> {
        let mut client = self.client.clone();
        let silent = |_| ClientError::Unreachable("no answer in time".to_owned());
        let subscription =
            tokio::time::timeout(SILENCE, client.subscribe(source)).await.map_err(silent)??;
        let mut hashes: Vec<KnownStatus> = known
            .iter()
            .filter(|(_, known)| !known.hash.is_empty())
            .map(|(id, known)| KnownStatus { id: id.clone(), hash: known.hash.clone() })
            .collect();
        // Only what is listed is compared, and an empty list asks for everything: a long list is not split.
        if hashes.len() > MAX_RESYNC {
            hashes.clear();
        }
        let request = event::resync(source, &StatusResync { status_hashes: hashes }, self.clock.now())?;
        tokio::time::timeout(SILENCE, client.publish(&request)).await.map_err(silent)??;
        Ok(subscription)
    }

    async fn receive(&self, from: &mut Subscription, known: &mut HashMap<String, Known>) -> ClientError {
        loop {
            match tokio::time::timeout(SILENCE, from.next()).await {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(event))) => {
                    if let Err(error) = self.take(&event, known).await {
                        return error;
                    }
                }
                Ok(Err(error @ ClientError::Event(_))) => {
                    tracing::warn!(error = %chain(&error), "status of a bundle cannot be read");
                }
                Ok(Err(error)) => return error,
                Err(_) => return ClientError::Unreachable(format!("no heartbeat for {SILENCE:?}")),
            }
        }
    }

    async fn take(&self, event: &Event, known: &mut HashMap<String, Known>) -> Result<(), ClientError> {
        if event.kind.subresource != Subresource::Status {
            return Ok(());
        }
        let received = match Received::read(event) {
            Ok(received) => received,
            Err(error) => {
                tracing::warn!(bundle = event.resource_id, error = %chain(&error), "status of a bundle cannot be read");
                return Ok(());
            }
        };
        let last = known.get(&received.bundle).map(|known| known.sequence.as_str());
        if !received.deleted && last.is_some() && !SequenceId::supersedes(&received.sequence, last) {
            return Ok(());
        }
        // The stream is opened again, and the status is among those that are requested then.
        self.handler.handle(&received).await.map_err(|error| {
            ClientError::Unreachable(format!("the status was not stored: {}", chain(&error)))
        })?;
        if received.deleted {
            known.remove(&received.bundle);
        } else {
            let entry = Known { sequence: received.sequence, hash: received.hash };
            known.insert(received.bundle, entry);
        }
        Ok(())
    }
}
