//! GET, list, PUT and PATCH of clusters, node pools and external auths. DELETE has its own file.

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::operation::{Operation, Request as Asked};
use aro_arm::hcp::resource::Resource;
use aro_arm::operation::ProvisioningState;
use aro_arm::{FieldError, FieldPath, ResourceId, json};
use aro_arm_server::{Answer, Failure, paging, retry_conflicts};
use aro_base::ETag;
use aro_rp_store::{ListOf, Write, operation_document_id};
use aro_store::{CollectionError, StoreError, Typed, Written};
use http::{Method, StatusCode};
use serde_json::Value;

use super::delete;
use super::kind::{Kind, Surroundings};
use crate::claims;
use crate::conflict;
use crate::operations::{self, Cause};
use crate::shared::{Request, Shared};

/// All methods of one resource.
pub async fn handle<T: Kind>(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    match request.method {
        Method::GET => get::<T>(shared, request).await,
        Method::DELETE => delete::handle::<T>(shared, request).await,
        Method::PUT => {
            let body = request.json()?;
            retry_conflicts(|attempt| put::<T>(shared, request, &body, attempt)).await
        }
        _ => {
            let patch = request.json()?;
            retry_conflicts(|_| update::<T>(shared, request, &patch)).await
        }
    }
}

async fn get<T: Kind>(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    let id = request.matched.resource_id();
    let document = shared.documents.read(&id).await?.ok_or(Failure::NotFound(id))?;
    if request.caller.preconditions.is_unmodified(&document.etag) {
        return Ok(Answer::empty(StatusCode::NOT_MODIFIED).etag(Some(&document.etag)));
    }
    let body = shared.rendered.body(&document, request.version, || {
        let stored = shared.documents.of::<T>().decode(document.clone())?;
        Ok::<_, CollectionError>(json::to_body(&stored.value.render(request.version)))
    })?;
    Ok(Answer::bytes(StatusCode::OK, body).etag(Some(&document.etag)))
}

/// Clusters of a subscription or of one of its groups.
pub async fn list_clusters(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    let (subscription, group) = (request.matched.subscription(), request.matched.group());
    let all = ListOf::<Cluster>::in_subscription(subscription);
    let list = match group.is_empty() {
        true => all,
        false => all.below(&format!("/subscriptions/{subscription}/resourceGroups/{group}")),
    };
    list_page(shared, request, &list).await
}

/// Children of a cluster; the cluster must exist.
pub async fn list_children<T: Kind>(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    let cluster = request.matched.root_id();
    if !shared.documents.exists(&cluster).await? {
        return Err(Failure::NotFound(cluster));
    }
    let list = ListOf::<T>::in_subscription(request.matched.subscription()).below(cluster.as_str());
    list_page(shared, request, &list).await
}

async fn list_page<T: Kind>(shared: &Shared, request: &Request, list: &ListOf<T>) -> Result<Answer, Failure> {
    let page = request.query.page().map_err(Failure::BadParameter)?;
    let listed = shared.documents.page(list, page).await?;
    let value: Vec<Value> = listed.items.iter().map(|stored| stored.value.render(request.version)).collect();
    Ok(paging::page(&request.caller, &value, listed.next.as_ref()))
}

async fn put<T: Kind>(
    shared: &Shared,
    request: &Request,
    body: &Value,
    attempt: u32,
) -> Result<Answer, Failure> {
    let id = request.matched.resource_id();
    match shared.documents.find::<T>(&id).await? {
        None => create::<T>(shared, request, body, attempt).await,
        Some(stored) => change(shared, request, body, stored).await,
    }
}

async fn update<T: Kind>(shared: &Shared, request: &Request, patch: &Value) -> Result<Answer, Failure> {
    let id = request.matched.resource_id();
    let stored = shared.documents.find::<T>(&id).await?.ok_or(Failure::NotFound(id))?;
    change(shared, request, patch, stored).await
}

async fn create<T: Kind>(
    shared: &Shared,
    request: &Request,
    body: &Value,
    attempt: u32,
) -> Result<Answer, Failure> {
    let id = request.matched.resource_id();
    request.caller.preconditions.check_write(None).map_err(Failure::Precondition)?;
    let parent = parent_for_write::<T>(shared, request, "create").await?;
    let now = shared.clock.now();
    let context = shared.context(request, &id, now)?;
    let around = Surroundings { shared, parent: parent.as_ref(), experimental: context.experimental };

    let mut resource = T::create(request.version, body, &context).map_err(Failure::Problems)?;
    let mut problems = resource.admit_create(&around).await?;
    let mut write = Write::new(request.matched.subscription());
    let wanted = resource.claims(&around);
    problems.extend(claims::take(&shared.documents, &mut write, &id, &wanted, attempt > 0).await?);
    if !problems.is_empty() {
        return Err(Failure::Problems(problems));
    }
    resource.preflight(shared, request).await?;

    let operation = operations::begin(shared, &Cause::Request(request), Asked::Create, &id, now);
    accept(&mut resource, &operation);
    write.create(&id, &resource)?.create_operation(&operation)?.owe(&operations::owed(&operation))?;
    if let Some(parent) = &parent {
        // If the cluster begins to go meanwhile, its new child must not slip in.
        write.unchanged(&parent.value.id, &parent.etag);
    }
    let etag = commit(shared, write, &operation, wanted.len()).await?;
    let answer = Answer::bytes(StatusCode::CREATED, json::to_body(&resource.render(request.version)));
    Ok(operations::follow(answer.etag(etag.as_ref()), request, &operation, false))
}

/// PUT or PATCH of what exists.
async fn change<T: Kind>(
    shared: &Shared,
    request: &Request,
    body: &Value,
    stored: Typed<T>,
) -> Result<Answer, Failure> {
    // The id keeps the case it was created with.
    let id = stored.value.id().clone();
    request.caller.preconditions.check_write(Some(&stored.etag)).map_err(Failure::Precondition)?;
    let parent = parent_for_write::<T>(shared, request, "update").await?;
    conflict::check_update(&id, stored.value.provisioning_state())?;
    if stored.value.service().deletion_timestamp.is_some() {
        let problem = FieldError::forbidden(&FieldPath::new("id"), "the resource is being deleted");
        return Err(Failure::Problems(vec![problem]));
    }
    let now = shared.clock.now();
    let context = shared.context(request, &id, now)?;
    let around = Surroundings { shared, parent: parent.as_ref(), experimental: context.experimental };

    let is_patch = request.method == Method::PATCH;
    let changed = match is_patch {
        true => stored.value.patch(request.version, body, &context),
        false => stored.value.replace(request.version, body, &context),
    };
    let mut resource = changed.map_err(Failure::Problems)?;
    let problems = resource.admit_update(&stored.value, &around).await?;
    if !problems.is_empty() {
        return Err(Failure::Problems(problems));
    }

    let operation = operations::begin(shared, &Cause::Request(request), Asked::Update, &id, now);
    accept(&mut resource, &operation);
    let mut write = Write::new(request.matched.subscription());
    write
        .replace(&id, &resource, &stored.etag)?
        .create_operation(&operation)?
        .owe(&operations::owed(&operation))?;
    let etag = commit(shared, write, &operation, 0).await?;
    let status = if is_patch { StatusCode::ACCEPTED } else { StatusCode::OK };
    let answer = Answer::bytes(status, json::to_body(&resource.render(request.version)));
    Ok(operations::follow(answer.etag(etag.as_ref()), request, &operation, is_patch))
}

/// The cluster of a child, if its state lets children be written.
pub async fn parent_for_write<T: Kind>(
    shared: &Shared,
    request: &Request,
    verb: &str,
) -> Result<Option<Typed<Cluster>>, Failure> {
    if !T::IS_CHILD {
        return Ok(None);
    }
    let cluster = request.matched.root_id();
    let parent = shared.documents.find::<Cluster>(&cluster).await?.ok_or(Failure::NotFound(cluster))?;
    conflict::check_parent(&request.matched.resource_id(), verb, parent.value.provisioning_state())?;
    Ok(Some(parent))
}

fn accept<T: Resource>(resource: &mut T, operation: &Operation) {
    resource.set_provisioning_state(ProvisioningState::Accepted);
    resource.service_mut().active_operation_id = Some(operation.operation_id.name().to_owned());
}

/// Commits the batch of an operation; the resource is at this index in it. If the store's reply is lost, the operation's
/// document shows whether the batch was written.
pub async fn commit(
    shared: &Shared,
    write: Write,
    operation: &Operation,
    resource_index: usize,
) -> Result<Option<ETag>, Failure> {
    match write.commit(shared.documents.store()).await {
        Ok(written) => Ok(written.into_iter().nth(resource_index).map(|Written { etag, .. }| etag)),
        Err(StoreError::Unavailable(cause)) => {
            let proof = operation_proof(operation);
            match shared.documents.exists(&proof).await {
                Ok(true) => Ok(None),
                _ => Err(Failure::Unavailable(cause)),
            }
        }
        Err(error) => Err(error.into()),
    }
}

fn operation_proof(operation: &Operation) -> ResourceId {
    let id = &operation.operation_id;
    operation_document_id(id.subscription().unwrap_or_default(), id.name())
}
