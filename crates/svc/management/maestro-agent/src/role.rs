//! The agent as a role.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aro_base::{SharedClock, chain};
use aro_bundle::Topics;
use aro_control::ReconcileMetrics;
use aro_mqtt::{Link, LinkPorts};
use aro_net::Resolve;
use aro_runtime::{
    BuildError, Checked, Component, Fault, Metrics, Phase, Role, RunError, Scope, Seldom, TaskKind,
};
use aro_store::SharedStore;
use aro_work_engine::{ApplyMetrics, Engine, EngineOptions};
use parking_lot::Mutex;
use sha2::Digest as _;
use tokio::sync::Notify;

use crate::agent::{Agent, SharedAgent};
use crate::book::Book;
use crate::config::MaestroAgentConfig;
use crate::ledger::Ledger;
use crate::metrics::AgentMetrics;
use crate::ports::MaestroAgentPorts;
use crate::record::Record;
use crate::sender;
use crate::speech::Speaker;

/// How often the server is asked for what it believes to be here: it may be unable to send something.
const ASKING: Duration = Duration::from_secs(5);

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
        let Some((ledger, records)) = self.remembered(&scope).await else { return Ok(()) };
        tracing::info!(
            consumer = self.config.consumer,
            works = records.len(),
            "the agent continues with what it knew"
        );
        let works: Vec<Record> = records.iter().filter(|record| !record.gone).cloned().collect();
        let options = self.engine_options();
        let agent = Arc::new(Agent {
            consumer: self.config.consumer.clone(),
            topics: self.topics.clone(),
            book: Mutex::new(Book::load(records)),
            engine: OnceLock::new(),
            clock: self.clock.clone(),
            metrics: AgentMetrics::new(&self.metrics),
            ready: self.ready,
            to_say: Notify::new(),
            to_write: Notify::new(),
            held: Notify::new(),
            resync: Mutex::new(false),
            asking: Seldom::every(ASKING),
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
        // Nobody else sets it.
        let _ = agent.engine.set(engine.clone());
        tell_unclaimed(agent.clone(), engine, &scope);
        agent.count(&agent.book.lock());
        agent.ready.not_ready("the broker is not connected yet");
        let ports = LinkPorts { resolve: self.resolve, clock: self.clock, metrics: self.metrics };
        let heard = vec![self.topics.to_agent(&self.config.consumer)];
        let link = Link::start(self.config.link(), heard, agent.clone(), ports, &scope);
        let speaker = Speaker { agent: self.config.agent_id(), consumer: self.config.consumer.clone() };
        let (saying, most, stop) = (agent.clone(), self.config.sending, scope.clone());
        scope.spawn(TaskKind::Worker, "sender", async move {
            sender::run(saying, link, speaker, most, stop).await;
            Ok::<_, Fault>(())
        });
        let stop = scope.clone();
        scope.spawn(TaskKind::Worker, "ledger", async move {
            sender::remember(agent, ledger, stop).await;
            Ok::<_, Fault>(())
        });
        scope.cancelled().await;
        Ok(())
    }
}

impl MaestroAgent {
    /// What was known before; waits for the store. Nothing if the scope closes first.
    async fn remembered(&self, scope: &Scope) -> Option<(Ledger, Vec<Record>)> {
        let mut pause = Duration::from_millis(100);
        loop {
            match Ledger::open(self.store.clone(), &self.config.consumer).await {
                Ok(opened) => return Some(opened),
                Err(error) => {
                    self.ready.not_ready("the store does not answer");
                    tracing::warn!(error = %chain(&error), "what was known cannot be read; trying again");
                }
            }
            tokio::select! {
                () = scope.cancelled() => return None,
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(Duration::from_secs(10)),
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
            // Two agents may work on one cluster for one hub: neither takes the other's works for forgotten ones.
            agent_id: self.config.agent_id(),
            ..EngineOptions::new(hub, self.clock.clone())
        }
    }
}

/// Should the server have been told what is known before the cluster answered, it is told once more.
fn tell_unclaimed(agent: SharedAgent, engine: Engine, scope: &Scope) {
    let stop = scope.clone();
    scope.spawn(TaskKind::Helper, "unclaimed", async move {
        tokio::select! {
            () = stop.cancelled() => return Ok::<_, Fault>(()),
            () = engine.synced() => {}
        }
        let unclaimed = engine.unclaimed().len();
        if unclaimed > 0 {
            tracing::info!(unclaimed, "the cluster has works that are not written down; the server is asked");
            *agent.resync.lock() = true;
            agent.to_say.notify_one();
        }
        Ok(())
    });
}

/// The name of a hub that has no other: as the original agent makes it.
fn digest(broker: &str) -> String {
    sha2::Sha256::digest(broker.as_bytes()).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
