//! The controllers of node pools and external auths. See `child/README.md`.

mod external_auth;
mod node_pool;
mod observe;
mod plan;

use std::marker::PhantomData;
use std::sync::Arc;

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::openshift_version::Release;
use aro_arm::hcp::operation::Request;
use aro_base::Timestamp;
use aro_control::{Controller, Permit, Plan};
use aro_ocm::ClusterId;
use aro_peers::translate::Canonical;
use aro_peers::{CallError, ClustersService};
use aro_rp_store::ClaimKind;
use serde_json::Value;
use tracing::Instrument as _;

use crate::act::{Act, call_context, note_blocker, operation_of, reject, span};
use crate::change::{Draft, OperationSeen};
use crate::error::WorkError;
use crate::key::Key;
use crate::kind::Kind;
use crate::progress::Progress;
use crate::refusal::{goes_with_cluster, of_change, of_deletion};
use crate::shared::{Shared, service_id};

pub use observe::Seen;
pub use plan::plan;

/// A resource inside a cluster, and its counterpart in Clusters Service.
pub trait Child: Kind {
    /// The counterpart.
    type Observed: Clone + PartialEq + std::fmt::Debug + Send + Sync;

    /// Its reference in a cluster.
    fn href(&self, cluster: &ClusterId) -> Option<String>;

    /// The body that creates it.
    fn create_body(&self, cluster: &Cluster, release: &Release) -> Value;

    /// The body that changes it.
    fn update_body(&self, cluster: &Cluster) -> Value;

    /// What decides whether it is as desired.
    fn canonical(value: &Value) -> Canonical;

    /// The counterpart as JSON.
    fn value(observed: &Self::Observed) -> Value;

    /// Whether it can be changed now.
    fn is_updatable(observed: &Self::Observed) -> bool;

    /// Whether it is being deleted.
    fn is_uninstalling(observed: &Self::Observed) -> bool;

    /// How far an operation is, by the counterpart's state.
    fn judge(&self, observed: &Self::Observed, request: Request) -> Progress;

    /// Shows what is observed.
    fn mirror(draft: &mut Draft<'_, Self>, observed: &Self::Observed, now: Timestamp);

    /// The release to upgrade to, if one is due.
    fn upgrade(&self, observed: &Self::Observed) -> Option<Release>;

    /// What it holds beside its own document.
    fn claims(&self, cluster: Option<&Cluster>) -> Vec<(ClaimKind, String)>;

    /// Reads the counterpart.
    fn find(
        &self,
        calls: &ClustersService,
        cluster: &ClusterId,
    ) -> impl Future<Output = Result<Option<Self::Observed>, CallError>> + Send;

    /// The upgrade that was asked for last.
    fn latest_upgrade(
        &self,
        calls: &ClustersService,
        cluster: &ClusterId,
    ) -> impl Future<Output = Result<Option<String>, CallError>> + Send;

    /// Carries out an act in Clusters Service.
    fn perform(
        &self,
        calls: &ClustersService,
        cluster: &ClusterId,
        act: &Act<Self>,
    ) -> impl Future<Output = Result<(), CallError>> + Send;
}

/// Makes node pools or external auths of Clusters Service equal to their resources.
pub struct Children<T> {
    shared: Arc<Shared>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Child> Children<T> {
    /// A controller.
    pub fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: shared.clone(), kind: PhantomData }
    }

    async fn perform(&self, key: &Key, act: &Act<T>) -> Result<(), WorkError> {
        let documents = &self.shared.documents;
        let Some(stored) = documents.find::<T>(&key.0).await? else { return Ok(()) };
        let operation = operation_of(&self.shared, &key.0, stored.value.service()).await?;
        if let Act::Note(blocker) = act {
            note_blocker(&self.shared, &key.0, operation.as_ref(), blocker);
            return Ok(());
        }
        let Some(cluster) = documents.find::<Cluster>(&key.cluster()).await? else { return Ok(()) };
        let Some(cluster) = service_id(&cluster.value) else { return Ok(()) };
        // A deletion that was asked for since the plan was made: nothing is created any more.
        let deleting = stored.value.service().deletion_timestamp.is_some();
        if deleting && matches!(act, Act::Create(_)) {
            return Ok(());
        }
        let calls = self.shared.clusters_service.in_context(call_context(operation.as_ref()));
        let span = span(&act.to_string(), key, operation.as_ref());
        let performed = stored.value.perform(&calls, &cluster, act).instrument(span.clone()).await;
        let Err(error) = performed else { return Ok(()) };
        match act {
            Act::Delete if goes_with_cluster(&error) => Ok(()),
            // An earlier attempt whose reply was lost: the next pass finds it.
            Act::Create(_)
                if matches!(error, CallError::Conflict { .. })
                    && stored.value.find(&calls, &cluster).instrument(span).await?.is_some() =>
            {
                Ok(())
            }
            Act::Create(_) | Act::Update(..) => {
                Err(of_change(error, operation.as_ref().map(OperationSeen::name)))
            }
            Act::Upgrade(_) => Err(of_change(error, None)),
            _ => Err(of_deletion(error)),
        }
    }
}

/// The names of the controllers.
pub trait Named {
    /// The name in logs and metrics.
    const NAME: &'static str;
}

impl<T: Child + Named> Controller for Children<T> {
    type Key = Key;
    type Seen = Seen<T>;
    type Act = Act<T>;
    type Error = WorkError;
    const NAME: &'static str = <T as Named>::NAME;

    async fn observe(&self, key: &Key) -> Result<Seen<T>, WorkError> {
        Seen::read(&self.shared, key).await
    }

    fn plan(&self, seen: &Seen<T>, now: Timestamp) -> Plan<Act<T>> {
        plan(seen, now)
    }

    async fn apply(&self, key: &Key, act: &Act<T>, _: Permit) -> Result<(), WorkError> {
        match act {
            Act::Record(change) => change.commit(&self.shared).await,
            _ => self.perform(key, act).await,
        }
    }

    async fn on_terminal(&self, key: &Key, error: &WorkError) -> Result<(), WorkError> {
        reject::<T>(&self.shared, &key.0, error).await
    }
}
