//! The deletion of a cluster, as a saga that only goes forward: a step that meets its deadline is shown as the blocker and
//! tried again.
//!
//! What is on the management cluster goes first: HyperShift removes nodes and their resources with the credentials of the
//! cluster's identities. Everything in the cloud goes at once afterwards, each part whether or not the others are there.

use std::sync::Arc;
use std::time::Duration;

use aro_control::saga::{Saga, StepError, Steps, Wait};
use aro_ocm::{ClusterId, NodePoolId};
use futures::FutureExt as _;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::environment::Environment;
use super::infrastructure::Infrastructure;
use super::target::Target;
use crate::maestro::{Route, Trace};
use crate::manifests;

/// Between two looks whether a bundle is gone. Statuses wake the saga earlier.
const RECHECK: Duration = Duration::from_millis(500);

/// The deletion of a cluster.
pub(super) struct DeleteCluster;

/// One pass of it.
pub(super) struct DeleteCx {
    pub(super) environment: Arc<Environment>,
    pub(super) infrastructure: Arc<dyn Infrastructure>,
    pub(super) target: Target,
    pub(super) route: Route,
    pub(super) pools: Vec<NodePoolId>,
    pub(super) trace: Trace,
}

/// Nothing has to be remembered: every name follows from the record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Deletion {}

impl Saga for DeleteCluster {
    const NAME: &'static str = "clusters.delete";
    const VERSION: u16 = 1;
    type State = Deletion;
    type Cx = DeleteCx;

    fn steps() -> Steps<Self> {
        let cloud = Steps::<Self>::new()
            .step("managed-resource-group", |cx, _| {
                async { cx.infrastructure.delete_group(&cx.target).await }.boxed()
            })
            .step("identity-credentials", |cx, _| {
                async { cx.infrastructure.delete_identities(&cx.target).await }.boxed()
            })
            .step("oidc-issuer", |cx, _| async { cx.infrastructure.delete_issuer(&cx.target).await }.boxed())
            .step("pull-secret", |cx, _| {
                async { cx.infrastructure.delete_pull_secret(&cx.target).await }.boxed()
            })
            .step("certificates", |cx, _| {
                async { cx.infrastructure.delete_certificates(&cx.target).await }.boxed()
            })
            .step("dns-records", |cx, _| async { cx.infrastructure.delete_records(&cx.target).await }.boxed())
            .step("federated-credentials", |cx, _| {
                async { cx.infrastructure.delete_federation(&cx.target).await }.boxed()
            });
        // Nodes and their disks take minutes to go; the blocker is shown meanwhile.
        const PATIENCE: Duration = Duration::from_hours(1);
        Steps::<Self>::new()
            .commit_point()
            .wait("manifests", |cx, _| manifests_gone(cx).boxed(), PATIENCE)
            .wait("namespaces", |cx, _| namespaces_gone(cx).boxed(), PATIENCE)
            .together(cloud)
    }

    fn deadline(cx: &DeleteCx) -> Duration {
        cx.environment.step_deadline
    }
}

/// The bundles that go first: the ManagedCluster, the HostedCluster and the node pools, independently of each other.
fn first(route: &Route, id: &ClusterId, pools: &[NodePoolId]) -> Vec<(String, Uuid)> {
    let [managed_cluster, cluster, _] = manifests::cluster_bundle_ids(&route.source, id);
    let pools = pools.iter().map(|pool| {
        (aro_ocm::names::node_pool_work(id, pool), manifests::pool_bundle_id(&route.source, id, pool))
    });
    [managed_cluster, cluster].into_iter().chain(pools).collect()
}

async fn manifests_gone(cx: &DeleteCx) -> Result<Wait, StepError> {
    let bundles = first(&cx.route, &cx.target.id, &cx.pools);
    remove(&cx.environment, &cx.route, &cx.trace, &bundles).await
}

async fn namespaces_gone(cx: &DeleteCx) -> Result<Wait, StepError> {
    let [_, _, namespaces] = manifests::cluster_bundle_ids(&cx.route.source, &cx.target.id);
    remove(&cx.environment, &cx.route, &cx.trace, &[namespaces]).await
}

/// Requests the deletion of bundles, and looks which are still there.
pub(super) async fn remove(
    environment: &Environment,
    route: &Route,
    trace: &Trace,
    bundles: &[(String, Uuid)],
) -> Result<Wait, StepError> {
    let looks = bundles.iter().map(|(name, id)| async move {
        environment.publisher.delete(route, *id, trace).await?;
        Ok::<_, crate::maestro::PublishError>((name, environment.publisher.is_gone(route, *id).await?))
    });
    let looks = futures::future::try_join_all(looks).await.map_err(|error| StepError::of(&error))?;
    let left: Vec<&str> = looks.iter().filter(|(_, gone)| !gone).map(|(name, _)| name.as_str()).collect();
    Ok(match left.as_slice() {
        [] => Wait::Over,
        left => Wait::Pending {
            on: format!("management cluster {} still has {}", route.consumer, left.join(", ")),
            recheck: RECHECK,
        },
    })
}

/// Removes every bundle of a cluster, for the undo of its creation.
pub(super) async fn withdraw(
    environment: &Environment,
    route: &Route,
    id: &ClusterId,
    trace: &Trace,
    pools: &[NodePoolId],
) -> Result<(), StepError> {
    for bundles in
        [first(route, id, pools), vec![manifests::cluster_bundle_ids(&route.source, id)[2].clone()]]
    {
        if let Wait::Pending { on, recheck } = remove(environment, route, trace, &bundles).await? {
            return Err(StepError::wait(on, recheck));
        }
    }
    Ok(())
}
