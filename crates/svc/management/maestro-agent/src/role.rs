//! The agent as a role: loads the records, starts the engine, the connection, the publisher and the writer.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aro_base::{SharedClock, chain};
use aro_bundle::Topics;
use aro_control::ReconcileMetrics;
use aro_mqtt::{Link, LinkPorts};
use aro_net::{Backoff, Resolve};
use aro_runtime::{
    BuildError, Checked, Component, Fault, LogLimiter, Metrics, Phase, Role, RunError, Scope, TaskKind,
};
use aro_store::SharedStore;
use aro_work_engine::{ApplyMetrics, Engine, EngineOptions};
use parking_lot::Mutex;
use sha2::Digest as _;
use tokio::sync::Notify;

use crate::agent::{Agent, SharedAgent};
use crate::agent_state::AgentState;
use crate::config::MaestroAgentConfig;
use crate::encoder::Encoder;
use crate::metrics::AgentMetrics;
use crate::ports::MaestroAgentPorts;
use crate::publisher::Publisher;
use crate::record::Record;
use crate::record_store::RecordStore;
use crate::writer;

/// The least time between resyncs caused by a server's list: the server may be unable to send one of the works.
const RESYNC_INTERVAL: Duration = Duration::from_secs(5);

/// Delays between attempts to load the records.
const STORE_RETRY: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));

/// Maestro's agent.
pub struct MaestroAgent {
    config: Checked<MaestroAgentConfig>,
    topics: Topics,
    client: kube::Client,
    store: SharedStore,
    resolve: Arc<dyn Resolve>,
    clock: SharedClock,
    metrics: Metrics,
    ready: Component,
}

impl Role for MaestroAgent {
    const NAME: &'static str = "maestro-agent";
    type Config = MaestroAgentConfig;
    type Ports = MaestroAgentPorts;

    fn build(config: Checked<MaestroAgentConfig>, ports: MaestroAgentPorts) -> Result<Self, BuildError> {
        let topics = config.topics().map_err(BuildError::new)?;
        Ok(Self {
            topics,
            client: ports.client,
            store: ports.store,
            resolve: ports.resolve,
            clock: ports.clock,
            metrics: ports.metrics,
            ready: ports.readiness.component("maestro-agent"),
            config,
        })
    }

    async fn run(self, scope: Scope) -> Result<(), RunError> {
        let Some((record_store, records)) = self.open_records(&scope).await else { return Ok(()) };
        tracing::info!(consumer = self.config.consumer, works = records.len(), "records loaded");
        let works: Vec<Record> = records.iter().filter(|record| !record.deleted).cloned().collect();
        let options = self.engine_options();
        let agent = Arc::new(Agent {
            consumer: self.config.consumer.clone(),
            topics: self.topics.clone(),
            state: Mutex::new(AgentState::load(records)),
            engine: OnceLock::new(),
            clock: self.clock.clone(),
            metrics: AgentMetrics::new(&self.metrics),
            ready: self.ready,
            reports_queued: Notify::new(),
            records_changed: Notify::new(),
            engine_waits: Notify::new(),
            resync_requested: AtomicBool::new(false),
            resync_limiter: LogLimiter::every(RESYNC_INTERVAL),
        });
        let engine =
            Engine::start(self.client, options, agent.clone(), &scope.child(Phase::Reconcilers, "apply"));
        for record in works {
            if record.deleting {
                engine.leave(record.work());
            } else {
                engine.put(record.work());
            }
        }
        engine.resume();
        // The only place that sets it.
        let _ = agent.engine.set(engine.clone());
        resync_unclaimed(agent.clone(), engine, &scope);
        agent.update_gauges(&agent.state.lock());
        agent.ready.not_ready("broker not connected yet");
        let ports = LinkPorts { resolve: self.resolve, clock: self.clock, metrics: self.metrics };
        let subscriptions = vec![self.topics.to_agent(&self.config.consumer)];
        let link = Link::start(self.config.link(), subscriptions, agent.clone(), ports, &scope);
        let publisher = Publisher {
            agent: agent.clone(),
            link,
            encoder: Encoder { agent: self.config.agent_id(), consumer: self.config.consumer.clone() },
            max_in_flight: self.config.sending,
        };
        let stop = scope.clone();
        scope.spawn(TaskKind::Worker, "publisher", async move {
            publisher.run(stop).await;
            Ok::<_, Fault>(())
        });
        let stop = scope.clone();
        scope.spawn(TaskKind::Worker, "writer", async move {
            writer::run(agent, record_store, stop).await;
            Ok::<_, Fault>(())
        });
        scope.cancelled().await;
        Ok(())
    }
}

impl MaestroAgent {
    /// The records of an earlier process; waits for the store. `None` if the scope closes first.
    async fn open_records(&self, scope: &Scope) -> Option<(RecordStore, Vec<Record>)> {
        let mut attempts = STORE_RETRY.attempts();
        loop {
            match RecordStore::open(self.store.clone(), &self.config.consumer).await {
                Ok(opened) => return Some(opened),
                Err(error) => {
                    self.ready.not_ready("store not available");
                    tracing::warn!(error = %chain(&error), "records not loaded; retrying");
                }
            }
            tokio::select! {
                () = scope.cancelled() => return None,
                () = attempts.wait() => {}
            }
        }
    }

    fn engine_options(&self) -> EngineOptions {
        let hub = self.config.hub_id.clone().unwrap_or_else(|| digest(&self.config.broker));
        EngineOptions {
            max_json_raw: usize::try_from(self.config.max_json_raw.get()).unwrap_or(usize::MAX),
            drift_check: self.config.drift_check.get(),
            eviction_grace: self.config.eviction_grace.map(|grace| grace.get()),
            workers: self.config.workers,
            metrics: ApplyMetrics::new(&self.metrics),
            passes: ReconcileMetrics::new(&self.metrics),
            // Two agents may serve one hub on one cluster: neither treats the other's works as orphans.
            agent_id: self.config.agent_id(),
            ..EngineOptions::new(hub, self.clock.clone())
        }
    }
}

/// Repeats the spec resync once the engine has listed the cluster, if there are works without a record: the first resync
/// may have been published before that.
fn resync_unclaimed(agent: SharedAgent, engine: Engine, scope: &Scope) {
    let stop = scope.clone();
    scope.spawn(TaskKind::Helper, "unclaimed", async move {
        tokio::select! {
            () = stop.cancelled() => return Ok::<_, Fault>(()),
            () = engine.synced() => {}
        }
        let unclaimed = engine.unclaimed().len();
        if unclaimed > 0 {
            tracing::info!(unclaimed, "cluster has works without a record; requesting a spec resync");
            agent.request_resync();
        }
        Ok(())
    });
}

/// The hub id where none is configured, as the original agent derives it.
fn digest(broker: &str) -> String {
    sha2::Sha256::digest(broker.as_bytes()).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
