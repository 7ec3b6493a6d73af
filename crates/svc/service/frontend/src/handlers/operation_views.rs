//! What clients poll: the status of an operation, and its result.

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::operation::{Operation, Request as Asked};
use aro_arm::hcp::resource::Resource;
use aro_arm::json;
use aro_arm::operation::ProvisioningState;
use aro_arm_server::{Answer, Failure, operations as server};
use aro_rp_store::{RpDocument, operation_document_id};
use http::StatusCode;

use crate::operations;
use crate::shared::{Request, Shared};

/// The status, for callers that may see the operation.
pub async fn status(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    let operation = find(shared, request).await?.ok_or(Failure::OperationHidden)?;
    Ok(server::status(&operation.status_view(), shared.clock.now()))
}

/// The result. It is final as soon as the status is terminal.
pub async fn result(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    let Some(operation) = find(shared, request).await? else {
        let name = request.matched.name("operation");
        return Err(Failure::NotFound(operation_document_id(request.matched.subscription(), name)));
    };
    match operation.status {
        ProvisioningState::Succeeded => succeeded(shared, request, operation).await,
        ProvisioningState::Failed | ProvisioningState::Canceled => {
            Err(server::result_failed(operation.error))
        }
        _ => {
            let result_id = operations::result_id(&operation);
            let followed = operations::followed(&operation, &result_id);
            Ok(server::result_pending(&request.caller, request.api_version, &followed, shared.clock.now()))
        }
    }
}

async fn succeeded(shared: &Shared, request: &Request, operation: Operation) -> Result<Answer, Failure> {
    match operation.request {
        Asked::Create => resource(shared, request, &operation, StatusCode::CREATED).await,
        Asked::Update => resource(shared, request, &operation, StatusCode::OK).await,
        Asked::Delete | Asked::RevokeCredentials => Ok(Answer::empty(StatusCode::NO_CONTENT)),
        Asked::RequestCredential => match &operation.credential {
            Some(credential) => Ok(Answer::json(StatusCode::OK, credential)),
            None => Err(Failure::NotFound(operation.operation_id)),
        },
    }
}

async fn resource(
    shared: &Shared,
    request: &Request,
    operation: &Operation,
    status: StatusCode,
) -> Result<Answer, Failure> {
    let id = &operation.external_id;
    let body = if id.is_type(NodePool::TYPE) {
        render::<NodePool>(shared, request, operation).await?
    } else if id.is_type(ExternalAuth::TYPE) {
        render::<ExternalAuth>(shared, request, operation).await?
    } else {
        render::<Cluster>(shared, request, operation).await?
    };
    Ok(Answer::bytes(status, body))
}

async fn render<T: Resource + RpDocument>(
    shared: &Shared,
    request: &Request,
    operation: &Operation,
) -> Result<Vec<u8>, Failure> {
    let id = &operation.external_id;
    let stored = shared.documents.find::<T>(id).await?.ok_or_else(|| Failure::NotFound(id.clone()))?;
    Ok(json::to_body(&stored.value.render(request.version)))
}

/// The operation, if this caller may see it. Another caller's is indistinguishable from none.
async fn find(shared: &Shared, request: &Request) -> Result<Option<Operation>, Failure> {
    if !request.matched.name("location").eq_ignore_ascii_case(&shared.location) {
        return Ok(None);
    }
    let id = operation_document_id(request.matched.subscription(), request.matched.name("operation"));
    let operation = shared.documents.find::<Operation>(&id).await?.map(|stored| stored.value);
    let object_id = request.caller.object_id.as_deref().unwrap_or_default();
    Ok(operation.filter(|operation| operation.visible_to(request.tenant_id(), object_id)))
}
