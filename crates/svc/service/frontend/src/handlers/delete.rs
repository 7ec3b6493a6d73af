//! Deleting: mark the resource, cancel operations under way, leave the removal to the backend.
//!
//! A cluster takes its children along. One batch holds a hundred operations; what does not fit, and what slipped in
//! meanwhile, is the cascade's, which finds the rest by looking, so that a crash in between loses nothing. The
//! cluster itself is always in the first batch: once it is deleting, none of its children can be written any more.

use aro_arm::ResourceId;
use aro_arm::hcp::admission;
use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::operation::{Operation, Request as Asked};
use aro_arm::hcp::resource::Resource;
use aro_arm::operation::ProvisioningState;
use aro_arm_server::{Answer, Failure, retry_conflicts};
use aro_base::Timestamp;
use aro_rp_store::{Cascade, ListOf, RpDocument, Write};
use aro_store::{CollectionError, Filter, MAX_BATCH, Typed};
use http::StatusCode;

use super::kind::Kind;
use super::resources::{commit, parent_for_write};
use crate::cascade;
use crate::conflict;
use crate::operations::{self, Cause};
use crate::shared::{Request, Shared};

/// Deletes a cluster, a node pool or an external auth.
pub async fn handle<T: Kind>(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    retry_conflicts(|_| async {
        let id = request.matched.resource_id();
        let Some(stored) = shared.documents.find::<T>(&id).await? else {
            return Ok(Answer::empty(StatusCode::NO_CONTENT));
        };
        request.caller.preconditions.check_write(Some(&stored.etag)).map_err(Failure::Precondition)?;
        conflict::check_delete(stored.value.id(), stored.value.provisioning_state())?;
        let cause = Cause::Request(request);
        let operation = match T::IS_CHILD {
            true => child(shared, request, &cause, &stored).await?,
            false => cluster(shared, &cause, stored.value.id()).await?,
        };
        Ok(operations::follow(Answer::empty(StatusCode::ACCEPTED), request, &operation, true))
    })
    .await
}

/// Deletes a cluster because its subscription goes.
pub async fn cluster_by_cascade(shared: &Shared, id: &ResourceId) -> Result<(), Failure> {
    retry_conflicts(|_| cluster(shared, &Cause::Cascade, id)).await.map(drop)
}

async fn child<T: Kind>(
    shared: &Shared,
    request: &Request,
    cause: &Cause<'_>,
    stored: &Typed<T>,
) -> Result<Operation, Failure> {
    parent_for_write::<T>(shared, request, "delete").await?;
    let (id, now) = (stored.value.id(), shared.clock.now());
    let operation = operations::begin(shared, cause, Asked::Delete, id, now);
    let mut write = Write::new(request.matched.subscription());
    if T::TYPE == NodePool::TYPE {
        keep_one_node_pool(shared, request, id, &mut write).await?;
    }
    let active = active_operations(shared, id).await?;
    mark(&mut write, stored, &operation, &active, now)?;
    write.owe(&operations::owed(&operation))?;
    commit(shared, write, &operation, 0).await?;
    Ok(operation)
}

/// A cluster keeps its last node pool. The batch depends on another one being as it was read, so that two deletes
/// at once cannot take the last two.
async fn keep_one_node_pool(
    shared: &Shared,
    request: &Request,
    id: &ResourceId,
    write: &mut Write,
) -> Result<(), Failure> {
    let cluster = request.matched.root_id();
    let siblings = children::<NodePool>(shared, &cluster).await?;
    let others: Vec<_> = siblings
        .iter()
        .filter(|other| {
            other.value.id() != id && other.value.provisioning_state() != ProvisioningState::Deleting
        })
        .collect();
    let problems = admission::node_pool::admit_delete(others.len());
    if !problems.is_empty() {
        return Err(Failure::Problems(problems));
    }
    if let Some(other) = others.first() {
        write.unchanged(other.value.id(), &other.etag);
    }
    Ok(())
}

/// The first batch of a cluster's deletion, with as many children as fit.
async fn cluster(shared: &Shared, cause: &Cause<'_>, id: &ResourceId) -> Result<Operation, Failure> {
    let stored = shared.documents.find::<Cluster>(id).await?.ok_or_else(|| Failure::NotFound(id.clone()))?;
    conflict::check_delete(id, stored.value.provisioning_state())?;
    let now = shared.clock.now();
    let operation = operations::begin(shared, cause, Asked::Delete, stored.value.id(), now);
    let mut write = Write::new(id.subscription().unwrap_or_default());
    let active = active_operations(shared, id).await?;
    mark(&mut write, &stored, &operation, &active, now)?;
    write.owe(&operations::owed(&operation))?;

    let node_pools = children::<NodePool>(shared, id).await?;
    let external_auths = children::<ExternalAuth>(shared, id).await?;
    // The cascade is always recorded: a child may have slipped in between the look and the commit.
    let cascade = Cascade { root: stored.value.id().clone() };
    write.create(&cascade.id(), &cascade)?;
    let all_fit = mark_while_room(shared, &mut write, &node_pools, MAX_BATCH, now).await?
        && mark_while_room(shared, &mut write, &external_auths, MAX_BATCH, now).await?;
    commit(shared, write, &operation, 0).await?;
    // Usually nothing is left and the cascade ends here; if not, or if this fails, the controller continues.
    if !all_fit || cascade::carry_on_cluster(shared, &cascade).await.is_err() {
        shared.cascades.add(cascade.root);
    }
    Ok(operation)
}

/// Marks the next children of a deleting cluster; `false` when none are left.
pub async fn mark_children(shared: &Shared, cluster: &ResourceId) -> Result<bool, Failure> {
    let mut write = Write::new(cluster.subscription().unwrap_or_default());
    let now = shared.clock.now();
    let node_pools = children::<NodePool>(shared, cluster).await?;
    let external_auths = children::<ExternalAuth>(shared, cluster).await?;
    if mark_while_room(shared, &mut write, &node_pools, MAX_BATCH, now).await? {
        mark_while_room(shared, &mut write, &external_auths, MAX_BATCH, now).await?;
    }
    if write.is_empty() {
        return Ok(false);
    }
    write.commit(shared.documents.store()).await?;
    shared.metrics.cascades.inc();
    Ok(true)
}

/// Adds children that are not deleting yet, as long as the batch has room; `false` when some had to stay out.
async fn mark_while_room<T: Kind>(
    shared: &Shared,
    write: &mut Write,
    children: &[Typed<T>],
    room: usize,
    now: Timestamp,
) -> Result<bool, Failure> {
    for child in
        children.iter().filter(|child| child.value.provisioning_state() != ProvisioningState::Deleting)
    {
        let active = active_operations(shared, child.value.id()).await?;
        if write.len() + 2 + active.len() > room {
            return Ok(false);
        }
        let operation = operations::begin(shared, &Cause::Cascade, Asked::Delete, child.value.id(), now);
        mark(write, child, &operation, &active, now)?;
    }
    Ok(true)
}

/// Marks one resource, records its operation and ends the ones it supersedes.
fn mark<T: Resource + RpDocument>(
    write: &mut Write,
    stored: &Typed<T>,
    operation: &Operation,
    active: &[Typed<Operation>],
    now: Timestamp,
) -> Result<(), CollectionError> {
    let mut resource = stored.value.clone();
    resource.set_provisioning_state(ProvisioningState::Deleting);
    let service = resource.service_mut();
    service.active_operation_id = Some(operation.operation_id.name().to_owned());
    service.deletion_timestamp.get_or_insert(now);
    let timeout = aro_base::SignedDuration::from_secs(service.delete_timeout_seconds());
    service.delete_operation_completion_deadline = now.checked_add(timeout).ok();
    write.replace(resource.id(), &resource, &stored.etag)?;
    write.create_operation(operation)?;
    for superseded in active {
        let mut ended = superseded.value.clone();
        if ended.supersede(now) {
            write.replace_operation(&ended, &superseded.etag)?;
        }
    }
    Ok(())
}

async fn children<T: Kind>(shared: &Shared, cluster: &ResourceId) -> Result<Vec<Typed<T>>, CollectionError> {
    let subscription = cluster.subscription().unwrap_or_default();
    let list = ListOf::<T>::in_subscription(subscription).below(cluster.as_str());
    // A deletion must not miss a child, not even one that cannot be decoded.
    shared.documents.all(&list).await?.complete()
}

/// The states in which an operation is still under way.
const UNDER_WAY: [ProvisioningState; 5] = [
    ProvisioningState::Accepted,
    ProvisioningState::Provisioning,
    ProvisioningState::Updating,
    ProvisioningState::Deleting,
    ProvisioningState::AwaitingSecret,
];

/// The operations under way on exactly this resource.
pub async fn active_operations(
    shared: &Shared,
    id: &ResourceId,
) -> Result<Vec<Typed<Operation>>, CollectionError> {
    let states = UNDER_WAY.iter().map(|state| state.as_str().to_owned()).collect();
    let list = ListOf::<Operation>::in_subscription(id.subscription().unwrap_or_default())
        .filter(Filter::EqIgnoreCase("externalId", id.as_str().to_owned()))
        .filter(Filter::In("status", states));
    shared.documents.all(&list).await?.complete()
}
