//! The reconciler of clusters.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{Class, Classify};
use aro_control::saga::{Advance, DriveError, Driver, Journal, Phase, StepError};
use aro_control::{FencingToken, Gate, Outcome, Queue, Reason, Reconcile};
use aro_decisions::Outcome as Decided;
use aro_ocm::{ClusterId, ClusterState, Time, names, property};
use aro_store::{CollectionError, Fence, PartitionKey};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::checks;
use super::create::{CHECKS, CreateCluster, CreateCx};
use super::delete::{DeleteCluster, DeleteCx, Deletion};
use super::environment::Environment;
use super::infrastructure::{DATA_PLANE, Infrastructure, SERVICE};
use super::pools::PoolKey;
use super::render::{self, trace_of};
use super::rows;
use super::state::settle_cluster;
use super::target::{BadTarget, Target};
use crate::maestro::{PublishError, Route};
use crate::placement::Placement;
use crate::records::{
    ClusterRecord, ExternalAuthRecord, Provisioned, cluster_key, cluster_partition, shard_key,
};

/// Everything of a cluster is verified this often; the time of each cluster is shifted by its id.
const VERIFY: Duration = Duration::from_mins(10);
/// What cannot go on without an operator is looked at again.
const BLOCKED: Duration = Duration::from_secs(30);
/// The code of a creation that a step of the pipeline failed.
const STEP_FAILED: &str = "OCM4002";
/// Clusters whose next verification is remembered.
const MAX_DUE: usize = 50_000;

/// A cluster. Its printed form decides which replica works on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ClusterKey(pub(super) ClusterId);

impl fmt::Display for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a pass failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PassError {
    /// The store.
    #[error(transparent)]
    Store(#[from] CollectionError),
    /// A saga's journal.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// Maestro.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The cloud.
    #[error(transparent)]
    Step(#[from] StepError),
    /// Another replica works on the cluster now.
    #[error("withheld: {0:?}")]
    Withheld(Reason),
}

impl Classify for PassError {
    fn class(&self) -> Class {
        match self {
            Self::Store(error) => error.class(),
            Self::Drive(error) => error.class(),
            // A refused bundle is rendered anew: by another release, or after another change.
            Self::Publish(_) => Class::Retry,
            Self::Step(error) => match error.class() {
                Class::Terminal => Class::Wait(BLOCKED),
                class => class,
            },
            Self::Withheld(_) => Class::Wait(Duration::from_millis(100)),
        }
    }
}

/// Makes clusters real.
pub(super) struct Clusters {
    pub(super) environment: Arc<Environment>,
    pub(super) create: Driver<CreateCluster>,
    pub(super) delete: Driver<DeleteCluster>,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) fence: Fence,
    pub(super) placement: Arc<Placement>,
    pub(super) gate: Gate<ClusterKey>,
    pub(super) pools: Queue<PoolKey>,
    /// When a cluster is verified next.
    pub(super) due: Mutex<HashMap<ClusterId, Instant>>,
}

/// A cluster with everything that its names follow from.
struct Known {
    infrastructure: Arc<dyn Infrastructure>,
    target: Target,
    route: Route,
}

/// Why a cluster has no names.
enum Unknown {
    /// The record itself is wrong.
    Bad(BadTarget),
    /// Something that may come: the shard's record, the cloud.
    Missing(&'static str),
}

impl Reconcile for Clusters {
    type Key = ClusterKey;
    type Error = PassError;
    const NAME: &'static str = "clusters";

    async fn reconcile(&self, key: &ClusterKey) -> Result<Outcome, PassError> {
        let id = &key.0;
        let Some(found) = self.environment.records.clusters.find(&cluster_key(id)).await? else {
            self.due.lock().remove(id);
            return Ok(Outcome::Settled);
        };
        let token = self.gate.permit(key).map_err(PassError::Withheld)?.token;
        let record = found.value;
        self.environment.introduce(&record);
        if let Some(left) = self.environment.parked(&record) {
            return Ok(Outcome::RequeueAfter(left));
        }
        if record.deletion.is_some() {
            return self.remove(record, token).await;
        }
        match record.state() {
            ClusterState::Validating | ClusterState::Pending => self.make(record, token).await,
            ClusterState::Error => self.unwind(record, token).await,
            ClusterState::Installing | ClusterState::Ready | ClusterState::Updating => {
                self.converge(record).await
            }
            _ => Ok(Outcome::Settled),
        }
    }
}

impl Clusters {
    fn is_noop(&self, record: &ClusterRecord, property: &str) -> bool {
        self.environment.noop || record.cluster.has_property(property)
    }

    async fn known(&self, record: &ClusterRecord) -> Result<Result<Known, Unknown>, PassError> {
        let environment = &self.environment;
        let (Some(infrastructure), Some(layout)) = (&environment.infrastructure, &environment.layout) else {
            return Ok(Err(Unknown::Missing("a cloud in the configuration")));
        };
        let Some(shard) = environment.records.shards.find(&shard_key(record.shard)).await? else {
            return Ok(Err(Unknown::Missing("the record of its provision shard")));
        };
        let Some(route) = environment.route(record, &shard.value) else {
            return Ok(Err(Unknown::Missing("a Maestro consumer of its provision shard")));
        };
        let target = match Target::of(record, &shard.value, layout) {
            Ok(target) => target,
            Err(bad) => return Ok(Err(Unknown::Bad(bad))),
        };
        Ok(Ok(Known { infrastructure: infrastructure.clone(), target, route }))
    }

    /// Writes a change of a record, unless it makes none.
    async fn change(
        &self,
        id: &ClusterId,
        change: impl FnMut(&mut ClusterRecord) -> bool,
    ) -> Result<(), PassError> {
        self.environment.records.clusters.update(&cluster_key(id), change).await?;
        Ok(())
    }

    /// Shows what a cluster waits for.
    async fn describe(&self, record: &ClusterRecord, text: &str) -> Result<(), PassError> {
        self.change(&record.id, |record| {
            let status = record.status_mut();
            let changed = status.description.as_deref() != Some(text);
            status.description = Some(text.to_owned());
            changed
        })
        .await
    }

    async fn fail(&self, record: &ClusterRecord, code: &str, message: &str) -> Result<(), PassError> {
        let mut failed = false;
        self.change(&record.id, |record| {
            let creating = matches!(record.state(), ClusterState::Validating | ClusterState::Pending);
            let known = record.status_mut().provision_error_message.as_deref() == Some(message);
            failed = record.deletion.is_none() && (creating || !known);
            if failed {
                record.set_error(code, message);
            }
            failed
        })
        .await?;
        if failed {
            let reason = format!("{code}: {message}");
            self.environment.decide(&record.id, "state", Decided::Failed { reason }, "error");
        }
        Ok(())
    }

    async fn make(&self, record: ClusterRecord, token: Option<FencingToken>) -> Result<Outcome, PassError> {
        if self.is_noop(&record, property::NOOP_PROVISION) {
            let now = Time(self.environment.clock.now());
            self.change(&record.id, |record| {
                let making = record.deletion.is_none()
                    && matches!(record.state(), ClusterState::Validating | ClusterState::Pending);
                if making {
                    record.provisioning.completed = Some(now);
                    record.observed.generation = record.generation;
                    record.set_state(ClusterState::Ready, "");
                }
                making
            })
            .await?;
            self.environment.decide(&record.id, "state", Decided::Done, "ready, without cloud and Maestro");
            return Ok(Outcome::Settled);
        }
        let known = match self.known(&record).await? {
            Ok(known) => known,
            Err(Unknown::Bad(bad)) => {
                self.fail(&record, STEP_FAILED, &bad.to_string()).await?;
                return Ok(Outcome::Settled);
            }
            Err(Unknown::Missing(on)) => {
                self.describe(&record, &format!("waits for {on}")).await?;
                return Ok(Outcome::Waiting { on, recheck: Some(BLOCKED) });
            }
        };
        self.advance(record, known, token).await
    }

    async fn advance(
        &self,
        record: ClusterRecord,
        known: Known,
        token: Option<FencingToken>,
    ) -> Result<Outcome, PassError> {
        let Known { infrastructure, target, route } = known;
        let id = record.id.clone();
        let cx = CreateCx { environment: self.environment.clone(), infrastructure, target, route, record };
        let advance = self.create.advance(id.as_str(), &cx, Provisioned::default, token).await?;
        match &advance {
            Advance::Completed(made) => self.complete(&cx, made).await?,
            Advance::Failing { step, reason } | Advance::Failed { step, reason } => {
                self.fail_step(&cx.record, step, reason).await?;
            }
            Advance::Stuck { step, reason } => {
                // The creation has failed already; what could not be undone is removed by the cluster's deletion.
                let failed = cx.record.state() == ClusterState::Error;
                if !failed {
                    self.fail_step(&cx.record, step, reason).await?;
                }
            }
            Advance::Parked { step, reason, after } => {
                self.environment.park(&cx.record, *after);
                if cx.record.state() != ClusterState::Error {
                    self.describe(&cx.record, &format!("{step}: {reason}")).await?;
                }
            }
            Advance::Gone => {}
            Advance::Unknown { reason } => {
                tracing::error!(cluster.id = %id, reason, "creation was begun by another release; left as it is");
                self.describe(&cx.record, &format!("creation was begun by another release: {reason}"))
                    .await?;
            }
        }
        Ok(match advance {
            Advance::Gone => Outcome::RequeueAfter(Duration::ZERO),
            other => other.outcome(),
        })
    }

    async fn fail_step(&self, record: &ClusterRecord, step: &str, reason: &str) -> Result<(), PassError> {
        match step {
            CHECKS => self.fail(record, checks::CODE, reason).await,
            step => self.fail(record, STEP_FAILED, &format!("{step}: {reason}")).await,
        }
    }

    /// Everything is made and published: the cluster is being installed on its management cluster.
    async fn complete(&self, cx: &CreateCx, made: &Provisioned) -> Result<(), PassError> {
        let now = Time(self.environment.clock.now());
        let mut moved = false;
        self.change(&cx.record.id, |record| {
            let making = matches!(record.state(), ClusterState::Validating | ClusterState::Pending);
            moved = making && record.deletion.is_none();
            if !moved {
                return false;
            }
            record.provisioning = Provisioned { completed: Some(now), ..made.clone() };
            take_over(record, &cx.target);
            record.set_state(ClusterState::Installing, "");
            // The status may have been faster than the end of the creation.
            settle_cluster(record);
            true
        })
        .await?;
        self.postpone(&cx.record.id);
        if moved {
            self.environment.decide(&cx.record.id, "state", Decided::Done, "installing");
            for pool in rows::pools_of(&self.environment.records, &cx.record.id).await? {
                self.pools.add(PoolKey { cluster: pool.cluster_id, pool: pool.id });
            }
        }
        Ok(())
    }

    /// A creation that failed is undone.
    async fn unwind(&self, record: ClusterRecord, token: Option<FencingToken>) -> Result<Outcome, PassError> {
        let journal = self.create.look(record.id.as_str()).await.map_err(DriveError::from)?;
        if !journal.is_some_and(|journal| matches!(journal.phase, Phase::Undoing { .. })) {
            return Ok(Outcome::Settled);
        }
        match self.known(&record).await? {
            Ok(known) => self.advance(record, known, token).await,
            Err(Unknown::Bad(_)) => Ok(Outcome::Settled),
            Err(Unknown::Missing(on)) => Ok(Outcome::Waiting { on, recheck: Some(BLOCKED) }),
        }
    }

    /// A cluster that was made stays as it should be.
    async fn converge(&self, record: ClusterRecord) -> Result<Outcome, PassError> {
        if self.is_noop(&record, property::NOOP_PROVISION) {
            self.change(&record.id, |record| {
                let updating = record.state() == ClusterState::Updating;
                if updating {
                    record.observed.generation = record.generation;
                    record.set_state(ClusterState::Ready, "");
                }
                updating
            })
            .await?;
            return self.remove_auths(&record).await.map(|()| Outcome::Settled);
        }
        let known = match self.known(&record).await? {
            Ok(known) => known,
            Err(Unknown::Bad(bad)) => {
                self.describe(&record, &bad.to_string()).await?;
                return Ok(Outcome::Settled);
            }
            Err(Unknown::Missing(on)) => return Ok(Outcome::Waiting { on, recheck: Some(BLOCKED) }),
        };
        self.publish(&record, &known).await?;
        self.remove_auths(&record).await?;
        self.change(&record.id, settle_cluster).await?;
        if Instant::now() >= self.due_of(&record.id) {
            self.postpone(&record.id);
            if let Err(error) = self.verify(&record, &known).await {
                // Desired changes go on; what cannot be repaired now is tried again sooner.
                let on = aro_base::chain(&error).to_string();
                tracing::warn!(cluster.id = %record.id, on, "cluster differs from what it should be");
                self.environment.decide(&record.id, "verify", Decided::Waiting { on }, "");
                self.due.lock().insert(record.id.clone(), Instant::now() + BLOCKED);
            }
            self.publish(&record, &known).await?;
        }
        Ok(Outcome::RequeueAfter(self.due_of(&record.id).saturating_duration_since(Instant::now())))
    }

    async fn auths(&self, id: &ClusterId) -> Result<Vec<ExternalAuthRecord>, PassError> {
        let auths = &self.environment.records.auths;
        let all = auths.all(&auths.in_partition(&cluster_partition(id))).await?.complete()?;
        Ok(all.into_iter().map(|auth| auth.value).collect())
    }

    /// Publishes what differs from what was published.
    async fn publish(&self, record: &ClusterRecord, known: &Known) -> Result<(), PassError> {
        let (environment, Known { infrastructure, target, route }) = (&self.environment, known);
        let (secrets, auths) = futures::join!(infrastructure.secrets(target), self.auths(&record.id));
        let (secrets, auths) = (secrets?, auths?);
        let made = &record.provisioning;
        let bundles = render::cluster(environment, target, route, record, made, &auths, &secrets);
        let trace = trace_of(&record.trace);
        for bundle in &bundles {
            if environment.publisher.put(route, bundle, &trace).await? {
                let detail = format!("{} to {} as {}", bundle.object, route.consumer, bundle.id);
                environment.decide(&record.id, "publish", Decided::Done, detail);
            }
        }
        Ok(())
    }

    /// External auths that are being deleted are no longer rendered: their records go.
    async fn remove_auths(&self, record: &ClusterRecord) -> Result<(), PassError> {
        let auths = &self.environment.records.auths;
        let partition = cluster_partition(&record.id);
        for auth in auths.all(&auths.in_partition(&partition)).await?.complete()? {
            if auth.value.deletion.is_some() {
                let batch = auths.batch(&partition).with(auths.delete(&auth));
                auths.store().write(batch).await.map_err(CollectionError::from)?;
            }
        }
        Ok(())
    }

    /// Makes the cloud as it should be, whatever happened to it.
    async fn verify(&self, record: &ClusterRecord, known: &Known) -> Result<(), PassError> {
        let Known { infrastructure, target, .. } = known;
        let (identities, group, issuer, pull_secret, certificates, address) = futures::join!(
            infrastructure.ensure_identities(target),
            infrastructure.ensure_group(target),
            infrastructure.ensure_issuer(target),
            infrastructure.ensure_pull_secret(target),
            infrastructure.ensure_certificates(target),
            infrastructure.ensure_records(target),
        );
        let mut made = record.provisioning.clone();
        made.identities = identities?;
        made.managed_resource_group = Some(group?);
        made.issuer_url = Some(issuer?);
        made.pull_secret = Some(pull_secret?);
        made.certificates = certificates?;
        made.ingress_address = Some(address?);
        let (roles, egress, zone, nsg, federation) = futures::join!(
            infrastructure.ensure_roles(target, &made.identities),
            infrastructure.ensure_egress(target),
            infrastructure.ensure_zone(target),
            infrastructure.ensure_nsg(target),
            infrastructure.ensure_federation(target),
        );
        nsg?;
        federation?;
        made.role_assignments = roles?;
        let (egress, zone) = (egress?, zone?);
        made.load_balancer = Some(egress.load_balancer);
        made.egress_address_id = Some(egress.address_id);
        made.egress_address = Some(egress.address);
        made.zone = Some(zone.id);
        made.name_servers = zone.name_servers;
        for (_, bundle) in crate::manifests::cluster_bundle_ids(&known.route.source, &record.id) {
            self.environment.publisher.forget(bundle);
        }
        for pool in rows::pools_of(&self.environment.records, &record.id).await? {
            let bundle = crate::manifests::pool_bundle_id(&known.route.source, &record.id, &pool.id);
            self.environment.publisher.forget(bundle);
            self.pools.add(PoolKey { cluster: pool.cluster_id, pool: pool.id });
        }
        self.change(&record.id, |record| {
            let changed = record.provisioning != made;
            if changed {
                record.provisioning = made.clone();
                take_over(record, target);
            }
            changed
        })
        .await
    }

    async fn remove(&self, record: ClusterRecord, token: Option<FencingToken>) -> Result<Outcome, PassError> {
        let id = record.id.clone();
        let noop = self.is_noop(&record, property::NOOP_DEPROVISION) || self.environment.noop;
        let known = match self.known(&record).await? {
            Ok(known) => known,
            // A cluster without usable names was never made.
            Err(Unknown::Bad(_)) => return self.forget(&record, token).await,
            Err(Unknown::Missing(_)) if noop => return self.forget(&record, token).await,
            Err(Unknown::Missing(on)) => {
                self.describe(&record, &format!("waits for {on}")).await?;
                return Ok(Outcome::Waiting { on, recheck: Some(BLOCKED) });
            }
        };
        if noop {
            return self.forget(&record, token).await;
        }
        let Known { infrastructure, target, route } = known;
        let pools = rows::pools_of(&self.environment.records, &id).await?;
        let trace = record.deletion.as_ref().map_or(&record.trace, |deletion| &deletion.trace);
        let cx = DeleteCx {
            environment: self.environment.clone(),
            infrastructure,
            target,
            route,
            pools: pools.into_iter().map(|pool| pool.id).collect(),
            trace: trace_of(trace),
        };
        match self.delete.advance(id.as_str(), &cx, Deletion::default, token).await? {
            Advance::Completed(_) => self.forget(&record, token).await,
            Advance::Parked { step, reason, after } => {
                self.environment.park(&record, after);
                self.describe(&record, &format!("{step}: {reason}")).await?;
                Ok(Outcome::RequeueAfter(after))
            }
            Advance::Stuck { step, reason } => {
                // A deletion is never given up: the blocker is shown, and tried again.
                let after = self.environment.step_deadline.min(BLOCKED);
                self.environment.park(&record, after);
                self.describe(&record, &format!("blocked at {step}: {reason}")).await?;
                self.delete.resume(id.as_str(), token).await.map_err(DriveError::from)?;
                Ok(Outcome::RequeueAfter(after))
            }
            Advance::Unknown { reason } => {
                tracing::error!(cluster.id = %id, reason, "deletion was begun by another release; left as it is");
                self.describe(&record, &format!("deletion was begun by another release: {reason}")).await?;
                Ok(Outcome::RequeueAfter(BLOCKED))
            }
            other => Ok(other.outcome()),
        }
    }

    /// Nothing of the cluster is left but its records.
    async fn forget(
        &self,
        record: &ClusterRecord,
        token: Option<FencingToken>,
    ) -> Result<Outcome, PassError> {
        let (id, environment) = (&record.id, &self.environment);
        rows::remove_cluster(&environment.records, &*self.journal, id, token).await?;
        self.placement.release(id, record.shard).await?;
        if let Some(token) = token {
            let partition = PartitionKey::new(id.as_str());
            if let Err(error) = self.fence.lower(&partition, token).await {
                tracing::debug!(cluster.id = %id, error = %aro_base::chain(&error), "fence of a deleted cluster stays");
            }
        }
        environment.decide(id, "state", Decided::Done, "deleted");
        self.due.lock().remove(id);
        Ok(Outcome::Settled)
    }

    /// When a cluster is verified next. After a start the times of clusters are spread over the interval.
    fn due_of(&self, id: &ClusterId) -> Instant {
        let mut due = self.due.lock();
        if due.len() >= MAX_DUE {
            due.clear();
        }
        *due.entry(id.clone()).or_insert_with(|| Instant::now() + shift(id))
    }

    fn postpone(&self, id: &ClusterId) {
        self.due.lock().insert(id.clone(), Instant::now() + VERIFY + shift(id) / 10);
    }
}

/// A part of the interval that follows from the id.
fn shift(id: &ClusterId) -> Duration {
    let sum = id.as_str().bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    VERIFY * (sum % 1000) / 1000
}

/// What the API shows of what was made.
fn take_over(record: &mut ClusterRecord, target: &Target) {
    let made = record.provisioning.clone();
    record.observed.internal_allowed_cidrs = render::internal_cidrs(&made);
    let cluster = &mut record.cluster;
    cluster.infra_id = Some(target.infra_id.clone());
    cluster.external_id.clone_from(&made.cluster_uuid);
    let (prefix, domain) = (&target.domain_prefix, &target.base_domain);
    cluster.api.get_or_insert_default().url = Some(names::api_url(prefix, domain));
    cluster.console.get_or_insert_default().url = Some(names::console_url(prefix, domain));
    let azure = cluster.azure.get_or_insert_default();
    azure.oidc_issuer_url.clone_from(&made.issuer_url);
    let identities = azure.operators_authentication.as_mut().and_then(|all| all.managed_identities.as_mut());
    if let Some(identities) = identities {
        for (operator, resolved) in made.identities.iter().filter(|(name, _)| !name.starts_with(DATA_PLANE)) {
            let (client_id, principal_id) = (resolved.client_id.clone(), resolved.principal_id.clone());
            if operator == SERVICE {
                if let Some(service) = &mut identities.service_managed_identity {
                    (service.client_id, service.principal_id) = (Some(client_id), Some(principal_id));
                }
            } else if let Some(known) = identities
                .control_plane_operators_managed_identities
                .as_mut()
                .and_then(|operators| operators.get_mut(operator))
            {
                (known.client_id, known.principal_id) = (Some(client_id), Some(principal_id));
            }
        }
    }
    let status = record.status_mut();
    (status.dns_ready, status.oidc_ready) = (Some(true), Some(true));
}
