//! The controller of clusters. See `cluster/README.md`.

mod complete;
mod create;
mod delete;
mod mirror;
mod observe;
mod state;
mod update;

use std::sync::Arc;

use aro_arm::ResourceId;
use aro_arm::hcp::cluster::Cluster;
use aro_base::Timestamp;
use aro_control::{Controller, Outcome, Permit, Plan};
use aro_ocm::ClusterId;
use aro_peers::{CallError, ClustersService, translate};
use tracing::Instrument as _;

use crate::act::{Act, call_context, note_blocker, operation_of, reject, span, wake_children};
use crate::change::OperationSeen;
use crate::error::WorkError;
use crate::key::Key;
use crate::refusal::{of_change, of_deletion};
use crate::shared::{Shared, service_id};

pub use observe::Seen;

/// Makes clusters of Clusters Service equal to their resources, and resources show what is observed.
pub struct Clusters {
    shared: Arc<Shared>,
}

impl Clusters {
    /// A controller.
    pub fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: shared.clone() }
    }

    /// The document as it is just before an act, with the operation that the act is made for.
    async fn target(&self, id: &ResourceId) -> Result<Option<Target>, WorkError> {
        let Some(stored) = self.shared.documents.find::<Cluster>(id).await? else { return Ok(None) };
        let operation = operation_of(&self.shared, id, &stored.value.service).await?;
        let Some(service_id) = service_id(&stored.value) else { return Ok(None) };
        let calls = self.shared.clusters_service.in_context(call_context(operation.as_ref()));
        Ok(Some(Target { cluster: stored.value, operation, service_id, calls }))
    }

    /// Creates, unless a deletion was asked for since the plan was made. A conflict is resolved by looking: the id may be taken
    /// by an earlier attempt whose reply was lost, or the resource may have a cluster under another id.
    async fn create(&self, target: &Target, body: &serde_json::Value) -> Result<(), WorkError> {
        if target.cluster.service.deletion_timestamp.is_some() {
            return Ok(());
        }
        let Err(error) = target.calls.create_cluster(body).await else { return Ok(()) };
        if matches!(error, CallError::Conflict { .. } | CallError::Refused { .. }) {
            if target.calls.find_cluster(&target.service_id).await?.is_some_and(|found| target.owns(&found)) {
                return Ok(());
            }
            if let Some(found) = self.find_other(target).await? {
                return self.adopt(target, &found).await;
            }
        }
        Err(of_change(error, target.operation.as_ref().map(OperationSeen::name)))
    }

    /// A live cluster of the resource under another id: made before its id was recorded.
    async fn find_other(&self, target: &Target) -> Result<Option<ClusterId>, WorkError> {
        let tenant = observe::tenant(&self.shared, &target.cluster.id, target.operation.as_ref()).await?;
        let search = translate::cluster::search(&target.cluster, &tenant);
        let found = target.calls.clusters(Some(&search)).await?;
        let live = found.iter().filter(|found| found.state != Some(aro_ocm::ClusterState::Uninstalling));
        let mut ids = live.filter(|found| target.owns(found)).filter_map(|found| found.id.as_deref());
        Ok(ids.find_map(|id| ClusterId::parse(id).ok()))
    }

    async fn adopt(&self, target: &Target, found: &ClusterId) -> Result<(), WorkError> {
        tracing::warn!(resource_id = %target.cluster.id, cluster = %found, "cluster adopted from Clusters Service");
        let key = aro_rp_store::key_of(&target.cluster.id);
        let adopted = |cluster: &mut Cluster| {
            if cluster.service.cluster_service_id.is_some() {
                return false;
            }
            cluster.hosting.pending_cluster_service_id = Some(found.to_string());
            true
        };
        self.shared.documents.of::<Cluster>().update(&key, adopted).await?;
        Ok(())
    }

    async fn perform(&self, key: &Key, act: &Act<Cluster>, target: &Target) -> Result<(), WorkError> {
        let operation = target.operation.as_ref().map(OperationSeen::name);
        let (calls, id): (&ClustersService, _) = (&target.calls, &target.service_id);
        match act {
            Act::Create(body) => self.create(target, body).await,
            Act::Update(body, _) => {
                calls.update_cluster(id, body).await.map_err(|error| of_change(error, operation))?;
                Ok(())
            }
            Act::Delete => {
                let Err(error) = calls.delete_cluster(id).await else { return Ok(()) };
                if let Some(refusal) = error.refusal() {
                    note_blocker(&self.shared, &key.0, target.operation.as_ref(), &refusal.reason);
                }
                Err(of_deletion(error))
            }
            Act::Upgrade(version) => {
                calls.upgrade(id, version).await.map_err(|error| of_change(error, None))?;
                Ok(())
            }
            Act::WakeChildren => wake_children(&self.shared, &key.0).await,
            Act::Note(blocker) => {
                note_blocker(&self.shared, &key.0, target.operation.as_ref(), blocker);
                Ok(())
            }
            Act::Record(change) => change.commit(&self.shared).await,
        }
    }
}

/// What an act is applied to.
struct Target {
    cluster: Cluster,
    operation: Option<OperationSeen>,
    service_id: ClusterId,
    calls: ClustersService,
}

impl Target {
    /// Whether a cluster of Clusters Service is the resource's.
    fn owns(&self, found: &aro_ocm::Cluster) -> bool {
        let found = serde_json::to_value(found).unwrap_or_default();
        translate::cluster::belongs_to(&found, &self.cluster.id)
    }
}

impl Controller for Clusters {
    type Key = Key;
    type Seen = Seen;
    type Act = Act<Cluster>;
    type Error = WorkError;
    const NAME: &'static str = "clusters";

    async fn observe(&self, key: &Key) -> Result<Seen, WorkError> {
        Seen::read(&self.shared, &key.0).await
    }

    fn plan(&self, seen: &Seen, now: Timestamp) -> Plan<Act<Cluster>> {
        plan(seen, now)
    }

    async fn apply(&self, key: &Key, act: &Act<Cluster>, _: Permit) -> Result<(), WorkError> {
        // Writes name the versions they were decided on; a replica that lost its shard meanwhile fails on them.
        if let Act::Record(change) = act {
            return change.commit(&self.shared).await;
        }
        if matches!(act, Act::WakeChildren) {
            return wake_children(&self.shared, &key.0).await;
        }
        let Some(target) = self.target(&key.0).await? else { return Ok(()) };
        let span = span(&act.to_string(), key, target.operation.as_ref());
        self.perform(key, act, &target).instrument(span).await
    }

    async fn on_terminal(&self, key: &Key, error: &WorkError) -> Result<(), WorkError> {
        reject::<Cluster>(&self.shared, &key.0, error).await?;
        // They fail with it.
        wake_children(&self.shared, &key.0).await
    }
}

/// What a pass does.
pub fn plan(seen: &Seen, now: Timestamp) -> Plan<Act<Cluster>> {
    if seen.cluster.is_none() {
        return Plan { acts: Vec::new(), outcome: Outcome::Settled };
    }
    Plan::chain(
        seen,
        now,
        &[
            delete::plan,
            create::plan_identity,
            create::plan_create,
            update::plan_missing,
            update::plan_update,
            complete::plan,
        ],
    )
}

#[cfg(test)]
mod tests;
