//! The worker that carries on deletions too large for one batch.
//!
//! It is level-driven: a cascade document names only the root; what is left to do is found by looking. So it may
//! run on several replicas at once and may be cut off anywhere. A cascade ends when nothing is left to mark.

use std::sync::Arc;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::resource::Resource;
use aro_arm::operation::ProvisioningState;
use aro_arm::subscription::{State, Subscription};
use aro_base::chain;
use aro_documents::{CASCADE_TYPE, Cascade, ListOf, Stored, Write};
use aro_runtime::{Phase, RunError, Scope, TaskKind};
use aro_store::{Page, StoreError};
use tokio::time::timeout;

use crate::error::Failure;
use crate::handlers::{cluster_by_cascade, mark_children};
use crate::shared::Shared;

/// How long the worker waits for a call before it looks by itself: for what another replica left behind.
const SWEEP: Duration = Duration::from_secs(30);

/// How many clusters of a subscription are looked at in one go.
const CLUSTERS_AT_ONCE: usize = 50;

/// Starts the worker in the frontend's scope.
pub fn start(shared: &Arc<Shared>, scope: &Scope) {
    let (shared, scope) = (shared.clone(), scope.child(Phase::Reconcilers, "cascade"));
    let owner = scope.clone();
    owner.spawn(TaskKind::Worker, "cascade", async move {
        loop {
            if let Err(failure) = sweep(&shared, &scope).await {
                let cause =
                    failure.cause().map_or_else(|| format!("{failure:?}"), |cause| chain(cause).to_string());
                tracing::warn!(error = cause, "a large deletion could not be carried on; trying again");
            }
            tokio::select! {
                () = scope.cancelled() => return Ok::<(), RunError>(()),
                _ = timeout(SWEEP, shared.cascade.notified()) => {}
            }
        }
    });
}

async fn sweep(shared: &Shared, scope: &Scope) -> Result<(), Failure> {
    for cascade in shared.documents.all(&ListOf::<Cascade>::everywhere(CASCADE_TYPE)).await? {
        let root = &cascade.value.root;
        loop {
            if scope.is_cancelled() {
                return Ok(());
            }
            let step = match root.resource_group() {
                Some(_) => mark_children(shared, root).await,
                None => next_clusters(shared, root).await,
            };
            match step {
                Ok(true) | Err(Failure::Contention) => {}
                Ok(false) => break,
                Err(failure) => return Err(failure),
            }
        }
        finish(shared, &cascade).await?;
    }
    Ok(())
}

/// Deletes some of the clusters of a subscription that goes; `false` when none are left. A subscription that came back
/// keeps what it still has.
async fn next_clusters(shared: &Shared, subscription: &ResourceId) -> Result<bool, Failure> {
    let stored = shared.documents.find::<Subscription>(subscription).await?;
    if stored.is_none_or(|stored| stored.value.state != State::Deleted) {
        return Ok(false);
    }
    let list = ListOf::<Cluster>::in_subscription(subscription.name(), Cluster::TYPE);
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
                // Somebody else deleted it meanwhile.
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

async fn finish(shared: &Shared, cascade: &Stored<Cascade>) -> Result<(), Failure> {
    let root = &cascade.value.root;
    let mut write = Write::new(root.subscription().unwrap_or_default());
    write.delete(&cascade.value.id(), &cascade.etag);
    match write.commit(shared.documents.store()).await {
        // Another replica was faster.
        Ok(_) | Err(StoreError::Conflict { .. }) => {
            tracing::info!(resource_id = %root, "everything below {root} is being deleted");
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
