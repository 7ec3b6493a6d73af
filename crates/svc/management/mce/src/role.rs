//! The role: its dependencies and how it runs.

use std::sync::Arc;
use std::time::Duration;

use aro_control::{Queue, ReconcileMetrics, Runner, RunnerOptions};
use aro_crds::work::v1::ManifestWork;
use aro_kube::informer::Informer;
use aro_net::Backoff;
use aro_runtime::{BuildError, Checked, Component, Phase, Role, RunError, Scope};
use aro_work_engine::{ApplyMetrics, Engine, EngineOptions};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};

use crate::agent::Agent;
use crate::config::MceConfig;
use crate::pending_reports::PendingReports;
use crate::ports::McePorts;
use crate::translate::{has_finalizer, hub_hash, is_leaving};

/// Between passes of a work that fails.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(30));

/// The multicluster engine.
pub struct Mce {
    config: Checked<MceConfig>,
    hub: Client,
    spoke: Client,
    options: EngineOptions,
    passes: ReconcileMetrics,
    ready: Component,
}

impl Role for Mce {
    const NAME: &'static str = "mce";
    type Config = MceConfig;
    type Ports = McePorts;

    fn build(config: Checked<MceConfig>, ports: McePorts) -> Result<Self, BuildError> {
        let hub = if config.hub_id.is_empty() { &ports.hub_address } else { &config.hub_id };
        let passes = ReconcileMetrics::new(&ports.metrics);
        let options = EngineOptions {
            max_json_raw: usize::try_from(config.max_json_raw.get()).unwrap_or(usize::MAX),
            drift_check: config.drift_check.get(),
            workers: config.workers,
            metrics: ApplyMetrics::new(&ports.metrics),
            passes: passes.clone(),
            ..EngineOptions::new(hub_hash(hub), ports.clock)
        };
        let ready = ports.readiness.component("mce");
        Ok(Self { config, hub: ports.hub, spoke: ports.spoke, options, passes, ready })
    }

    async fn run(self, scope: Scope) -> Result<(), RunError> {
        if self.config.work_agent {
            self.start_work_agent(&scope.child(Phase::Reconcilers, "work-agent")).await;
        }
        self.ready.ready();
        scope.cancelled().await;
        Ok(())
    }
}

impl Mce {
    /// Returns when all works are listed and handed to the engine.
    async fn start_work_agent(&self, scope: &Scope) {
        let namespace = self.config.namespace.clone();
        let queue: Queue<String> = Queue::new();
        let pending_reports = Arc::new(PendingReports::new(queue.clone()));
        let engine = Engine::start(self.spoke.clone(), self.options.clone(), pending_reports.clone(), scope);
        let works: Informer<ManifestWork> = Informer::default();
        let changed = queue.clone();
        works.subscribe(move |change| changed.add(change.object().name_any()));
        let api = Api::namespaced(self.hub.clone(), &namespace);
        works.run(api.clone(), watcher::Config::default(), scope);
        let given = parking_lot::Mutex::default();
        let agent = Arc::new(Agent { namespace, api, works, engine, pending_reports, given });
        let known = futures::future::join(agent.works.synced(), agent.engine.synced());
        if scope.token().run_until_cancelled(known).await.is_none() {
            return;
        }
        // After a restart all works are handed over at once, so that the engine finds the orphans.
        for object in agent.works.cache().all() {
            if has_finalizer(&object) && !is_leaving(&object) {
                agent.give(&object);
            }
        }
        agent.engine.resume();
        let options = RunnerOptions { tasks: 1, concurrency: self.config.workers, backoff: BACKOFF };
        Runner::new(agent, &queue).with_options(options).with_metrics(&self.passes).start(scope);
    }
}
