//! Starts the pipelines.

use std::sync::Arc;
use std::time::Duration;

use aro_control::saga::{Driver, Journal};
use aro_control::{
    Gate, Outcome, Queue, Reconcile, ReconcileMetrics, ReplicaId, Runner, RunnerOptions, ShardOptions, Shards,
};
use aro_event_service::Client;
use aro_ocm::{ClusterId, NodePoolId, ShardId};
use aro_runtime::{Fault, Phase, RunError, Scope};
use aro_store::{Document, DocumentJournal, DocumentLease, DocumentSource, Fence, PartitionKey};
use parking_lot::Mutex;
use uuid::Uuid;

use super::azure::Azure;
use super::clusters::{ClusterKey, Clusters};
use super::create::CreateCluster;
use super::delete::DeleteCluster;
use super::environment::Environment;
use super::infrastructure::Infrastructure;
use super::keys::KeyPool;
use super::observe::Observer;
use super::pools::{PoolKey, Pools};
use crate::maestro::{Shard, Sources, Subscriptions};
use crate::placement::Placement;
use crate::records::{CONTAINER, ClusterRecord, ExternalAuthRecord, NodePoolRecord, Record, ShardRecord};
use crate::shared::Shared;
use crate::versions::Catalogue;

/// The name of the lease, and of the fence in the partitions of clusters.
const LEASE: &str = "clusters-service";
/// Replicas share clusters by so many shards.
const SHARDS: usize = 32;
/// A replica that died is replaced after this long. Renewing costs a small write every third of it.
const LEASE_DURATION: Duration = Duration::from_secs(3);
/// Clusters in a pass at once: most of a pass waits for the cloud.
const CONCURRENCY: usize = 128;

/// Subscribes to the statuses of a shard.
struct Listener {
    environment: Arc<Environment>,
    subscriptions: Subscriptions,
    scope: Scope,
}

impl Reconcile for Listener {
    type Key = ShardId;
    type Error = Fault;
    const NAME: &'static str = "shard-subscriptions";

    async fn reconcile(&self, id: &ShardId) -> Result<Outcome, Fault> {
        let source = self.environment.name.source_id(*id);
        self.subscriptions.ensure(&Shard { source }, &self.scope);
        Ok(Outcome::Settled)
    }
}

/// Starts the pipelines; they run until the scope is cancelled.
pub fn start(shared: &Arc<Shared>, scope: &Scope) -> Result<(), RunError> {
    let workers = scope.child(Phase::Reconcilers, "pipelines");
    let transports = scope.child(Phase::Transports, "maestro");
    let clock = shared.clock.clone();
    let step_deadline = shared.config.step_deadline.get();
    let client = Client::to(shared.maestro.clone(), shared.resolve.clone(), clock.clone())
        .map_err(|error| RunError::caused("set up the connection to Maestro", error))?;
    let infrastructure: Option<Arc<dyn Infrastructure>> = shared.cloud.clone().map(|access| {
        let keys = KeyPool::start(clock.clone(), scope);
        let azure: Arc<dyn Infrastructure> = Arc::new(Azure::new(access, keys, step_deadline, clock.clone()));
        azure
    });
    let environment = Arc::new(Environment {
        name: shared.environment.clone(),
        records: shared.records.clone(),
        clock: clock.clone(),
        decisions: shared.decisions.clone(),
        infrastructure,
        publisher: Arc::new(Sources::new(client.clone(), clock.clone())),
        layout: shared.cloud.as_ref().map(|access| access.layout.clone()),
        catalogue: Catalogue::embedded(),
        step_deadline,
        check_deadline: shared.config.check_deadline.get().min(step_deadline),
        noop: shared.config.noop,
        subjects: Mutex::default(),
        parked: Mutex::default(),
    });
    let store = shared.records.store().clone();
    let replica = ReplicaId::new(format!("{LEASE}-{}", Uuid::new_v4().simple()));
    let lease = Arc::new(DocumentLease::new(store.clone(), LEASE));
    let options = ShardOptions { replica, shards: SHARDS, duration: LEASE_DURATION };
    let shards = Shards::start(lease, options, scope);
    let (clusters, pools) = (Queue::<ClusterKey>::new(), Queue::<PoolKey>::new());
    let observer = Arc::new(Observer {
        environment: environment.clone(),
        clusters: clusters.clone(),
        pools: pools.clone(),
    });
    let subscriptions = Subscriptions::new(client, clock.clone(), observer);
    let metrics = ReconcileMetrics::new(&shared.metrics);
    let fence = Fence::new(store.clone(), CONTAINER, LEASE);
    let journal: Arc<dyn Journal> =
        Arc::new(DocumentJournal::new(store.clone(), CONTAINER, fence.clone(), |key| {
            (PartitionKey::new(key), String::new())
        }));
    let gate = Gate::sharded(&clusters, shards.clone());
    let reconciler = Clusters {
        create: driver::<CreateCluster>(&journal, &environment),
        delete: driver::<DeleteCluster>(&journal, &environment),
        environment: environment.clone(),
        journal,
        fence,
        placement: Arc::new(Placement::new(shared.records.clone(), clock, shared.config.shard_capacity)),
        gate: gate.clone(),
        pools: pools.clone(),
        due: Mutex::default(),
    };
    let options = RunnerOptions { tasks: 2, concurrency: CONCURRENCY, ..RunnerOptions::default() };
    let source = |kind: &str, key: fn(&Document) -> Option<ClusterKey>| {
        DocumentSource::new(store.clone(), CONTAINER, kind, key)
    };
    Runner::new(Arc::new(reconciler), &clusters)
        .with_options(options)
        .with_metrics(&metrics)
        .with_gate(&gate)
        .with_source(source(ClusterRecord::KIND.resource_type(), cluster_of))
        .with_source(source(ExternalAuthRecord::KIND.resource_type(), cluster_of))
        .start(&workers);
    let gate = Gate::sharded(&pools, shards);
    Runner::new(Arc::new(Pools { environment: environment.clone(), gate: gate.clone() }), &pools)
        .with_options(options)
        .with_metrics(&metrics)
        .with_gate(&gate)
        .with_source(DocumentSource::new(
            store.clone(),
            CONTAINER,
            NodePoolRecord::KIND.resource_type(),
            pool_of,
        ))
        .start(&workers);
    let listener = Listener { environment, subscriptions, scope: transports };
    Runner::new(Arc::new(listener), &Queue::new())
        .with_metrics(&metrics)
        .with_source(DocumentSource::new(store, CONTAINER, ShardRecord::KIND.resource_type(), shard_of))
        .start(&workers);
    Ok(())
}

fn driver<S: aro_control::saga::Saga>(
    journal: &Arc<dyn Journal>,
    environment: &Arc<Environment>,
) -> Driver<S> {
    let (observed, steps) = (environment.clone(), S::steps().names());
    Driver::new(journal.clone(), environment.clock.clone())
        .with_observer(move |key, progress| observed.progress(key, &steps, progress))
}

fn cluster_of(document: &Document) -> Option<ClusterKey> {
    ClusterId::parse(document.key.partition.as_str()).ok().map(ClusterKey)
}

fn pool_of(document: &Document) -> Option<PoolKey> {
    let cluster = ClusterId::parse(document.key.partition.as_str()).ok()?;
    let pool = NodePoolId::parse(document.key.id.as_str().strip_prefix("pool.")?).ok()?;
    Some(PoolKey { cluster, pool })
}

fn shard_of(document: &Document) -> Option<ShardId> {
    ShardId::parse(document.key.id.as_str().strip_prefix("shard.")?).ok()
}
