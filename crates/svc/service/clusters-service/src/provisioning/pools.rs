//! The reconciler of node pools.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{Class, Classify as _, SignedDuration};
use aro_control::saga::Wait;
use aro_control::{Gate, Outcome, Reconcile};
use aro_decisions::Outcome as Decided;
use aro_ocm::{ClusterId, ClusterState, NodePoolId, NodePoolStateValue as State, Time, names, property};

use super::clusters::PassError;
use super::delete;
use super::environment::Environment;
use super::infrastructure::Infrastructure;
use super::render::{self, trace_of};
use super::rows;
use super::state::settle_pool;
use super::target::Target;
use crate::maestro::Route;
use crate::manifests;
use crate::records::{ClusterRecord, NodePoolRecord, cluster_key, node_pool_key, shard_key};

/// A published pool is published again this often, in case Maestro lost it.
const VERIFY: Duration = Duration::from_mins(10);
/// Between two looks at a cluster that is not made yet. Its end of creation wakes the pools earlier.
const CLUSTER: Duration = Duration::from_secs(5);

/// A node pool. Its printed form is that of its cluster: one replica works on both.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PoolKey {
    pub(super) cluster: ClusterId,
    pub(super) pool: NodePoolId,
}

impl fmt::Display for PoolKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cluster.fmt(f)
    }
}

/// Makes node pools real.
pub(super) struct Pools {
    pub(super) environment: Arc<Environment>,
    pub(super) gate: Gate<PoolKey>,
}

struct Known {
    infrastructure: Arc<dyn Infrastructure>,
    target: Target,
    route: Route,
}

impl Reconcile for Pools {
    type Key = PoolKey;
    type Error = PassError;
    const NAME: &'static str = "node-pools";

    async fn reconcile(&self, key: &PoolKey) -> Result<Outcome, PassError> {
        let records = &self.environment.records;
        let (pool, cluster) = (node_pool_key(&key.cluster, &key.pool), cluster_key(&key.cluster));
        let (pool, cluster) = futures::try_join!(records.pools.find(&pool), records.clusters.find(&cluster))?;
        let (Some(pool), Some(cluster)) = (pool, cluster) else { return Ok(Outcome::Settled) };
        self.gate.permit(key).map_err(PassError::Withheld)?;
        let (pool, cluster) = (pool.value, cluster.value);
        // The deletion of a cluster includes its pools.
        if cluster.deletion.is_some() {
            return Ok(Outcome::Settled);
        }
        self.environment.introduce(&cluster);
        if pool.deletion.is_some() {
            return self.remove(&cluster, &pool).await;
        }
        match pool.state() {
            State::Error | State::RecoverableError | State::Uninstalling => Ok(Outcome::Settled),
            _ => self.converge(&cluster, &pool).await,
        }
    }
}

impl Pools {
    fn is_noop(&self, cluster: &ClusterRecord, property: &str) -> bool {
        self.environment.noop || cluster.cluster.has_property(property)
    }

    async fn known(&self, cluster: &ClusterRecord) -> Result<Option<Known>, PassError> {
        let environment = &self.environment;
        let (Some(infrastructure), Some(layout)) = (&environment.infrastructure, &environment.layout) else {
            return Ok(None);
        };
        let Some(shard) = environment.records.shards.find(&shard_key(cluster.shard)).await? else {
            return Ok(None);
        };
        let Some(route) = environment.route(cluster, &shard.value) else { return Ok(None) };
        let target = Target::of(cluster, &shard.value, layout).ok();
        Ok(target.map(|target| Known { infrastructure: infrastructure.clone(), target, route }))
    }

    async fn change(
        &self,
        pool: &NodePoolRecord,
        change: impl FnMut(&mut NodePoolRecord) -> bool,
    ) -> Result<(), PassError> {
        let key = node_pool_key(&pool.cluster_id, &pool.id);
        let (mut change, mut before, mut after) = (change, pool.state(), pool.state());
        let stored = self.environment.records.pools.update(&key, |record| {
            before = record.state();
            let changed = record.deletion.is_none() && change(record);
            after = record.state();
            changed
        });
        if let (Some(stored), true) = (stored.await?, before != after) {
            let detail = format!("{before} → {after}");
            self.environment.decide_pool(&stored.value, "state", Decided::Done, detail);
        }
        Ok(())
    }

    async fn converge(&self, cluster: &ClusterRecord, pool: &NodePoolRecord) -> Result<Outcome, PassError> {
        let now = Time(self.environment.clock.now());
        if self.is_noop(cluster, property::NOOP_PROVISION) {
            self.change(pool, |record| {
                let moving = record.state() != State::Ready;
                if moving {
                    record.observed.generation = record.generation;
                    record.provisioning.completed.get_or_insert(now);
                    record.set_state(State::Ready, "", now);
                }
                moving
            })
            .await?;
            return Ok(Outcome::Settled);
        }
        let made = cluster.provisioning.completed.is_some();
        if !made {
            let on = match cluster.state() {
                ClusterState::Error => "its cluster failed",
                _ => "its cluster",
            };
            return Ok(Outcome::Waiting { on, recheck: Some(CLUSTER) });
        }
        let Some(known) = self.known(cluster).await? else {
            return Ok(Outcome::Waiting { on: "the names of its cluster", recheck: Some(CLUSTER) });
        };
        if pool.provisioning.completed.is_none()
            && let Err(error) = known.infrastructure.check_pool(&known.target, &pool.pool).await
        {
            return self.check_failed(pool, &error, now).await;
        }
        let (environment, route) = (&self.environment, &known.route);
        let bundle = render::pool(environment, &known.target, route, cluster, pool);
        if environment.publisher.put(route, &bundle, &trace_of(&pool.trace)).await? {
            let detail = format!("{} to {} as {}", bundle.object, route.consumer, bundle.id);
            environment.decide_pool(pool, "publish", Decided::Done, detail);
        }
        let generation = pool.generation;
        self.change(pool, |record| {
            let mut changed = record.provisioning.completed.is_none();
            record.provisioning.completed.get_or_insert(now);
            // A newer change is published by the pass that it caused.
            let next = match record.state() {
                State::Validating | State::Pending => Some(State::Installing),
                State::ValidatingUpdate | State::PendingUpdate if record.generation == generation => {
                    Some(State::Updating)
                }
                _ => None,
            };
            if let Some(next) = next {
                record.set_state(next, "", now);
                changed = true;
            }
            settle_pool(record, now) || changed
        })
        .await?;
        Ok(Outcome::RequeueAfter(VERIFY))
    }

    async fn check_failed(
        &self,
        pool: &NodePoolRecord,
        error: &aro_control::saga::StepError,
        now: Time,
    ) -> Result<Outcome, PassError> {
        let waited = now.0.duration_since(pool.created.0);
        let patience =
            SignedDuration::try_from(self.environment.check_deadline).unwrap_or(SignedDuration::MAX);
        let after = match error.class() {
            Class::Terminal => None,
            _ if waited >= patience => None,
            Class::Wait(after) => Some(after),
            Class::Retry => Some(Duration::from_secs(1)),
        };
        let (message, state) = match after {
            Some(_) => (error.message().to_owned(), pool.state()),
            None => (error.message().to_owned(), State::Error),
        };
        self.change(pool, |record| {
            let known = record.pool.status.as_ref().and_then(|status| status.message.as_deref());
            let changed = known != Some(message.as_str()) || record.state() != state;
            if changed {
                record.set_state(state, message.clone(), now);
            }
            changed
        })
        .await?;
        Ok(after.map_or(Outcome::Settled, Outcome::RequeueAfter))
    }

    async fn remove(&self, cluster: &ClusterRecord, pool: &NodePoolRecord) -> Result<Outcome, PassError> {
        let environment = &self.environment;
        let known = if self.is_noop(cluster, property::NOOP_DEPROVISION) {
            None
        } else {
            self.known(cluster).await?
        };
        if let Some(Known { route, .. }) = known {
            let trace = pool.deletion.as_ref().map_or(&pool.trace, |deletion| &deletion.trace);
            let bundle = (
                names::node_pool_work(&cluster.id, &pool.id),
                manifests::pool_bundle_id(&route.source, &cluster.id, &pool.id),
            );
            let wait = delete::remove(environment, &route, &trace_of(trace), &[bundle]).await?;
            if let Wait::Pending { on, recheck } = wait {
                let now = Time(environment.clock.now());
                let key = node_pool_key(&pool.cluster_id, &pool.id);
                let change = |record: &mut NodePoolRecord| {
                    let known = record.pool.status.as_ref().and_then(|status| status.message.as_deref());
                    let changed = known != Some(on.as_str());
                    record.set_state(State::Uninstalling, on.clone(), now);
                    changed
                };
                environment.records.pools.update(&key, change).await?;
                return Ok(Outcome::RequeueAfter(recheck));
            }
        }
        rows::remove_pool(&environment.records, &cluster.id, &pool.id).await?;
        environment.decide_pool(pool, "state", Decided::Done, "deleted".to_owned());
        Ok(Outcome::Settled)
    }
}
