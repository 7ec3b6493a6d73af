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
use aro_arm_server::Failure;
use aro_base::chain;
use aro_rp_store::{Cascade, ListOf, Write};
use aro_runtime::{Phase, RunError, Scope, TaskKind};
use aro_store::{Page, StoreError};
use tokio::time::timeout;

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
    for cascade in shared.documents.all(&ListOf::<Cascade>::everywhere()).await?.items {
        if scope.is_cancelled() {
            return Ok(());
        }
        carry_on(shared, &cascade.value).await?;
        tracing::info!(resource_id = %cascade.value.root, "everything below {} is being deleted", cascade.value.root);
    }
    Ok(())
}

/// Marks what is left below the root of a cascade, and ends it. May be cut off at any point and called again.
async fn carry_on(shared: &Shared, cascade: &Cascade) -> Result<(), Failure> {
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

/// Deletes some of the clusters of a subscription that goes; `false` when none are left. A subscription that came back
/// keeps what it still has.
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
        // Another replica was faster.
        Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
