//! The controller that completes deletions too large for one batch.
//!
//! A cascade document names only the root; what is left to do is found by reading. So a pass may run on several replicas at
//! once and may be cut off anywhere. A cascade ends when nothing is left to mark.
//!
//! The replica that stored a cascade enqueues it. The change feed enqueues it in the other replicas too, but so late that
//! they find it only if the first one died.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::resource::Resource;
use aro_arm::operation::ProvisioningState;
use aro_arm::subscription::{State, Subscription};
use aro_arm_server::Failure;
use aro_base::{Class, Classify, chain};
use aro_control::{Outcome, Reconcile, ReconcileMetrics, Runner};
use aro_rp_store::{Cascade, ListOf, RESOURCES, RpDocument as _, Write};
use aro_runtime::{Phase, Scope};
use aro_store::{Document, DocumentSource, Page, StoreError};

use crate::handlers::{cluster_by_cascade, mark_children};
use crate::shared::Shared;

/// How long a cascade is left to the replica that stored it.
const TAKE_OVER_AFTER: Duration = Duration::from_secs(30);

/// Clusters of a subscription that are read at once.
const CLUSTERS_AT_ONCE: usize = 50;

/// Starts the controller in the frontend's scope.
pub fn start(shared: &Arc<Shared>, metrics: &ReconcileMetrics, scope: &Scope) {
    let store = shared.documents.store().clone();
    let source = DocumentSource::new(store, RESOURCES, Cascade::KIND.resource_type(), root_of)
        .with_delay(TAKE_OVER_AFTER);
    Runner::new(Arc::new(Cascades { shared: shared.clone() }), &shared.cascades)
        .with_metrics(metrics)
        .with_source(source)
        .start(&scope.child(Phase::Reconcilers, "cascade"));
}

fn root_of(document: &Document) -> Option<ResourceId> {
    match Cascade::KIND.decode(document.clone()) {
        Ok(cascade) => Some(cascade.value.root),
        Err(error) => {
            tracing::error!(document = %document.key, error = %chain(&error), "cascade document is not readable");
            None
        }
    }
}

struct Cascades {
    shared: Arc<Shared>,
}

/// Why a cascade is not complete yet.
#[derive(Debug)]
struct CascadeError {
    root: ResourceId,
    failure: Failure,
}

impl fmt::Display for CascadeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "continue the deletion below `{}`", self.root)?;
        match self.failure.cause() {
            Some(_) => Ok(()),
            None => write!(f, ": {:?}", self.failure),
        }
    }
}

impl Error for CascadeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.failure.cause().map(|cause| cause as _)
    }
}

impl Classify for CascadeError {
    /// A deletion that was accepted is never given up.
    fn class(&self) -> Class {
        Class::Retry
    }
}

impl Reconcile for Cascades {
    type Key = ResourceId;
    type Error = CascadeError;
    const NAME: &'static str = "cascade";

    async fn reconcile(&self, root: &ResourceId) -> Result<Outcome, CascadeError> {
        let ended = carry_on(&self.shared, &Cascade { root: root.clone() }).await;
        match ended {
            Ok(()) => Ok(Outcome::Settled),
            Err(failure) => Err(CascadeError { root: root.clone(), failure }),
        }
    }
}

/// Marks what is left below the root of a cascade, and ends it. May be cut off at any point and called again.
async fn carry_on(shared: &Shared, cascade: &Cascade) -> Result<(), Failure> {
    if !shared.documents.exists(&cascade.id()).await? {
        return Ok(());
    }
    if cascade.root.resource_group().is_some() {
        return carry_on_cluster(shared, cascade).await;
    }
    while next_clusters(shared, &cascade.root).await? {}
    finish(shared, cascade).await
}

/// The same for the cascade of a cluster.
pub async fn carry_on_cluster(shared: &Shared, cascade: &Cascade) -> Result<(), Failure> {
    loop {
        match mark_children(shared, &cascade.root).await {
            Ok(true) | Err(Failure::Contention) => {}
            Ok(false) => return finish(shared, cascade).await,
            Err(failure) => return Err(failure),
        }
    }
}

/// Deletes some of the clusters of a deleted subscription; `false` when none are left. A subscription that was registered
/// again keeps what it still has.
async fn next_clusters(shared: &Shared, subscription: &ResourceId) -> Result<bool, Failure> {
    let stored = shared.documents.find::<Subscription>(subscription).await?;
    if stored.is_none_or(|stored| stored.value.state != State::Deleted) {
        return Ok(false);
    }
    let list = ListOf::<Cluster>::in_subscription(subscription.name());
    let mut page = Page::first(CLUSTERS_AT_ONCE);
    let mut any = false;
    loop {
        let listed = shared.documents.page(&list, page).await?;
        for cluster in &listed.items {
            if cluster.value.provisioning_state() == ProvisioningState::Deleting {
                continue;
            }
            match cluster_by_cascade(shared, cluster.value.id()).await {
                Ok(()) => any = true,
                // Another writer deleted it meanwhile.
                Err(Failure::NotFound(_) | Failure::Conflict { .. }) => {}
                Err(failure) => return Err(failure),
            }
        }
        match listed.next {
            Some(next) => page = Page { size: CLUSTERS_AT_ONCE, after: Some(next) },
            None => return Ok(any),
        }
    }
}

async fn finish(shared: &Shared, cascade: &Cascade) -> Result<(), Failure> {
    let id = cascade.id();
    let Some(stored) = shared.documents.find::<Cascade>(&id).await? else { return Ok(()) };
    let mut write = Write::new(cascade.root.subscription().unwrap_or_default());
    write.delete(&id, &stored.etag);
    match write.commit(shared.documents.store()).await {
        Ok(_) => {
            tracing::info!(resource_id = %cascade.root, "everything below {} is being deleted", cascade.root);
            Ok(())
        }
        // Another replica was faster.
        Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
