//! The backend as a role: builds the parts and connects them.

use std::sync::Arc;
use std::time::Duration;

use aro_control::{
    Controller, Gate, Lease, Planned, Queue, ReconcileMetrics, ReplicaId, Runner, RunnerOptions,
    ShardOptions, Shards,
};
use aro_decisions::Decisions;
use aro_net::Backoff;
use aro_peers::Versions;
use aro_rp_store::Documents;
use aro_runtime::{BuildError, Checked, Component, Phase, Role, RunError, Scope};
use aro_store::{DocumentLease, UnreadableDocuments};
use uuid::Uuid;

use crate::child::Children;
use crate::cluster::Clusters;
use crate::config::BackendConfig;
use crate::ended::EndedOperations;
use crate::feeds::{documents, events};
use crate::key::Key;
use crate::metrics::BackendMetrics;
use crate::periodic::{Periodic, Task};
use crate::ports::BackendPorts;
use crate::shared::{ClusterIndex, Notes, Queues, Shared, Timing};

/// Delays of a resource whose pass fails: after an outage work goes on within seconds.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(5));

/// The name of the lease.
const LEASE: &str = "backend";

/// The resource provider's backend.
pub struct Backend {
    config: Checked<BackendConfig>,
    shared: Arc<Shared>,
    ready: Component,
    reconciles: ReconcileMetrics,
}

impl Role for Backend {
    const NAME: &'static str = "backend";
    type Config = BackendConfig;
    type Ports = BackendPorts;

    fn build(config: Checked<BackendConfig>, ports: BackendPorts) -> Result<Self, BuildError> {
        let decisions = Decisions::new(&ports.store, Self::NAME, ports.clock.clone(), &ports.metrics);
        let shared = Arc::new(Shared {
            documents: Documents::new(ports.store, UnreadableDocuments::new(&ports.metrics)),
            versions: Versions::new(&ports.clusters_service),
            clusters_service: ports.clusters_service,
            clock: ports.clock,
            decisions,
            metrics: BackendMetrics::new(&ports.metrics),
            queues: Queues::default(),
            index: ClusterIndex::default(),
            notes: Notes::default(),
            timing: Timing {
                create_grace: config.create_grace.get(),
                update_deadline: config.update_deadline.get(),
            },
        });
        let ready = ports.readiness.component(Self::NAME);
        let reconciles = ReconcileMetrics::new(&ports.metrics);
        Ok(Self { config, shared, ready, reconciles })
    }

    async fn run(self, scope: Scope) -> Result<(), RunError> {
        let Self { config, shared, ready, reconciles } = self;
        let store = shared.documents.store();
        store.ping().await.map_err(|error| RunError::caused("reach the document store", error))?;
        let workers = scope.child(Phase::Reconcilers, "controllers");
        shared.decisions.start(&scope);
        let lease: Arc<dyn Lease> = Arc::new(DocumentLease::new(store.clone(), LEASE));
        let replica = ReplicaId::new(format!("backend-{}", Uuid::new_v4().simple()));
        let options = ShardOptions { replica, shards: config.shards, duration: config.lease.get() };
        let shards = Shards::start(lease, options, &scope);

        let starter =
            Starter { shared: &shared, shards, reconciles, concurrency: config.concurrency, scope: &workers };
        starter.start(Clusters::new(&shared), &shared.queues.clusters);
        starter.start(Children::<aro_arm::hcp::node_pool::NodePool>::new(&shared), &shared.queues.node_pools);
        starter.start(
            Children::<aro_arm::hcp::external_auth::ExternalAuth>::new(&shared),
            &shared.queues.external_auths,
        );
        starter.start_others(&config);
        documents::start(&shared, ready, &workers);
        events::start(&shared, config.event_wait.get(), &workers);
        scope.cancelled().await;
        Ok(())
    }
}

/// Starts controllers that share what follows.
struct Starter<'a> {
    shared: &'a Arc<Shared>,
    shards: Shards,
    reconciles: ReconcileMetrics,
    concurrency: usize,
    scope: &'a Scope,
}

impl Starter<'_> {
    fn start<C: Controller<Key = Key>>(&self, controller: C, queue: &Queue<Key>) {
        let gate = Gate::sharded(queue, self.shards.clone());
        let planned = Planned::new(Arc::new(controller), &gate, self.shared.clock.clone());
        Runner::new(Arc::new(planned), queue)
            .with_options(self.options())
            .with_metrics(&self.reconciles)
            .with_gate(&gate)
            .start(self.scope);
    }

    /// What is not about one resource.
    fn start_others(&self, config: &BackendConfig) {
        let ended = &self.shared.queues.ended;
        let gate = Gate::sharded(ended, self.shards.clone());
        Runner::new(Arc::new(EndedOperations::new(self.shared)), ended)
            .with_options(self.options())
            .with_metrics(&self.reconciles)
            .with_gate(&gate)
            .start(self.scope);
        let tasks = Queue::new();
        tasks.add(Task::Sweep);
        tasks.add(Task::Census);
        let periodic = Periodic::new(self.shared, config.sweep_period.get(), config.orphan_age.get());
        let gate = Gate::sharded(&tasks, self.shards.clone());
        Runner::new(Arc::new(periodic), &tasks)
            .with_metrics(&self.reconciles)
            .with_gate(&gate)
            .start(self.scope);
    }

    fn options(&self) -> RunnerOptions {
        RunnerOptions { concurrency: self.concurrency, backoff: BACKOFF, ..RunnerOptions::default() }
    }
}
