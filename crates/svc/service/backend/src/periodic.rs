//! Work that no change asks for: the sweep for clusters without a resource, and the census of operations. One replica does
//! it, the one that holds the shard of its key.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::operation::Operation;
use aro_arm::operation::ProvisioningState;
use aro_base::{SignedDuration, chain};
use aro_control::{Outcome, Preview, Reconcile};
use aro_decisions::{Entry, Outcome as Decided};
use aro_ocm::{Cluster as OcmCluster, ClusterId, ClusterState};
use aro_rp_store::{RESOURCES, RpDocument as _};
use aro_store::{Filter, Order, Path, Query, Slice};

use crate::error::WorkError;
use crate::key::owner_of;
use crate::shared::{Shared, service_id};

/// How often operations are counted.
const CENSUS_PERIOD: Duration = Duration::from_secs(30);
/// Orphans that one sweep deletes: what is wrong with more of them is not the orphans.
const MAX_ORPHANS: usize = 100;

/// A periodic task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Task {
    /// Deletes clusters without a resource.
    Sweep,
    /// Counts operations.
    Census,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sweep => "sweep",
            Self::Census => "census",
        })
    }
}

/// Runs the tasks.
pub struct Periodic {
    shared: Arc<Shared>,
    sweep_period: Duration,
    orphan_age: Duration,
}

impl Periodic {
    /// A controller.
    pub fn new(shared: &Arc<Shared>, sweep_period: Duration, orphan_age: Duration) -> Self {
        Self { shared: shared.clone(), sweep_period, orphan_age }
    }

    /// Deletes every cluster that is older than the limit and that no resource knows. Its resource is stored before it is
    /// created, so an old cluster without one has lost it.
    async fn sweep(&self) -> Result<(), WorkError> {
        let now = self.shared.clock.now();
        let age = SignedDuration::try_from(self.orphan_age).unwrap_or_default();
        let mut deleted = 0;
        for found in self.shared.clusters_service.clusters(None).await? {
            let created = found.creation_timestamp.map(|time| time.0);
            let old =
                created.and_then(|created| created.checked_add(age).ok()).is_some_and(|limit| now >= limit);
            if !old || found.state == Some(ClusterState::Uninstalling) || self.is_known(&found).await? {
                continue;
            }
            let Some(id) = found.id.as_deref().and_then(|id| ClusterId::parse(id).ok()) else { continue };
            self.shared.clusters_service.delete_cluster(&id).await?;
            self.shared.metrics.orphan_deleted();
            tracing::warn!(cluster = %id, "cluster without a resource deleted in Clusters Service");
            self.shared.decisions.record(Entry {
                correlation_id: None,
                subjects: owner_of(&found).map(|id| id.to_string()).into_iter().chain(found.href).collect(),
                step: "sweep",
                outcome: Decided::Done,
                detail: format!("cluster {id} has no resource; deletion asked for in Clusters Service"),
            });
            deleted += 1;
            if deleted == MAX_ORPHANS {
                tracing::warn!(deleted, "sweep ended early: too many clusters without a resource");
                break;
            }
        }
        Ok(())
    }

    async fn is_known(&self, found: &OcmCluster) -> Result<bool, WorkError> {
        let Some(id) = owner_of(found) else { return Ok(false) };
        let Some(stored) = self.shared.documents.find::<Cluster>(&id).await? else { return Ok(false) };
        // Without an id of its own the resource may still adopt this one.
        Ok(service_id(&stored.value).is_none_or(|known| Some(known.as_str()) == found.id.as_deref()))
    }

    async fn census(&self) -> Result<(), WorkError> {
        let store = self.shared.documents.store();
        for state in UNDER_WAY {
            let query = Query::all(RESOURCES)
                .of_type(Operation::KIND.resource_type())
                .filter(Filter::Eq("status", state.as_str().to_owned()));
            let count = store.count(&query).await?;
            let slice = Slice {
                order: vec![Order::ascending(Path::member("startTime"))],
                size: 1,
                ..Slice::default()
            };
            let oldest = if count > 0 { store.slice(&query, &slice).await? } else { Vec::new() };
            let oldest = oldest.into_iter().next().and_then(|document| Operation::KIND.decode(document).ok());
            let oldest = oldest.map(|operation| operation.value.start_time);
            self.shared.metrics.operations(state, count, oldest, self.shared.clock.now());
        }
        Ok(())
    }
}

/// The states in which an operation is under way.
const UNDER_WAY: [ProvisioningState; 5] = [
    ProvisioningState::Accepted,
    ProvisioningState::Provisioning,
    ProvisioningState::Updating,
    ProvisioningState::Deleting,
    ProvisioningState::AwaitingSecret,
];

impl Reconcile for Periodic {
    type Key = Task;
    type Error = WorkError;
    const NAME: &'static str = "periodic";

    async fn reconcile(&self, task: &Task) -> Result<Outcome, WorkError> {
        let (ended, period) = match task {
            Task::Sweep => (self.sweep().await, self.sweep_period),
            Task::Census => (self.census().await, CENSUS_PERIOD),
        };
        if let Err(error) = ended {
            tracing::debug!(%task, error = %chain(&error), "periodic task failed");
            return Err(error);
        }
        Ok(Outcome::RequeueAfter(period))
    }

    async fn preview(&self, _: &Task) -> Result<Preview, WorkError> {
        Ok(Preview::Pending { plan: None })
    }
}
