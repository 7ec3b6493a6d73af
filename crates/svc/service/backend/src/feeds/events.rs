//! The event feed of Clusters Service: what changed there, in commit order, at least once, by long poll.
//!
//! An event enqueues the resource that its object belongs to. The position is kept in memory only: when it is lost (a new
//! process, an expired cursor), every resource is enqueued once and looked at. That costs what a restart costs anyway, and a
//! stored position could only be behind what was already looked at.

use std::sync::Arc;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_base::chain;
use aro_net::Backoff;
use aro_ocm::event::Event;
use aro_ocm::{ClusterId, Href};
use aro_peers::CallError;
use aro_runtime::{Fault, LogLimiter, Scope, TaskKind};

use super::documents::enqueue_all;
use crate::error::WorkError;
use crate::key::{Key, owner_of};
use crate::shared::Shared;

/// Delays while Clusters Service is not available.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
/// One warning in this time while it is away.
const LOG_INTERVAL: Duration = Duration::from_secs(30);

/// Starts to follow.
pub fn start(shared: &Arc<Shared>, wait: Duration, scope: &Scope) {
    let shared = shared.clone();
    scope.spawn(TaskKind::Helper, "follow-events", async move {
        run(&shared, wait).await;
        Ok::<_, Fault>(())
    });
}

async fn run(shared: &Shared, wait: Duration) {
    let mut attempts = BACKOFF.attempts();
    let limiter = LogLimiter::every(LOG_INTERVAL);
    loop {
        let error = match follow(shared, wait, &mut attempts).await {
            Ok(()) => {
                tracing::info!("event cursor expired; every resource is looked at");
                continue;
            }
            Err(error) => error,
        };
        if let Some(suppressed) = limiter.permit() {
            tracing::warn!(error = %chain(&error), suppressed, "events of Clusters Service not read");
        }
        attempts.wait().await;
    }
}

/// Follows from the feed's end until the cursor expires.
async fn follow(shared: &Shared, wait: Duration, attempts: &mut aro_net::Attempts) -> Result<(), WorkError> {
    let mut cursor = shared.clusters_service.latest_cursor().await?;
    enqueue_all(shared).await?;
    attempts.reset();
    loop {
        let page = match shared.clusters_service.events_after(&cursor, wait).await {
            Ok(page) => page,
            Err(CallError::Gone { .. }) => return Ok(()),
            // The position is still good: the same request is repeated.
            Err(error) => {
                tracing::debug!(error = %chain(&error), "events not read");
                attempts.wait().await;
                continue;
            }
        };
        attempts.reset();
        shared.metrics.events_received(page.items.len());
        page.items.iter().for_each(|event| enqueue(shared, event));
        cursor = page.cursor;
    }
}

/// Enqueues the resource of an object. An object of a cluster that no resource has concerns no controller.
fn enqueue(shared: &Shared, event: &Event) {
    let Some((_, href)) = Href::parse(&event.href) else { return };
    let Some(cluster) = href.cluster() else { return };
    let Some(id) = resource_of(shared, cluster, event) else { return };
    match &href {
        Href::NodePool(_, pool) | Href::NodePoolUpgradePolicy(_, pool, _) => {
            shared.queues.node_pools.add(Key(id.child("nodePools", pool.as_str())));
        }
        Href::ExternalAuth(_, auth) => {
            shared.queues.external_auths.add(Key(id.child("externalAuths", auth.as_str())));
        }
        _ => shared.queues.clusters.add(Key(id)),
    }
}

/// The resource of a cluster: as the change feed showed it, which is before the cluster is created, or as a cluster names it
/// itself, should the change feed be late.
fn resource_of(shared: &Shared, id: &ClusterId, event: &Event) -> Option<ResourceId> {
    shared.index.find(id).or_else(|| {
        let cluster: aro_ocm::Cluster = serde_json::from_value(event.object.clone()?).ok()?;
        owner_of(&cluster)
    })
}
