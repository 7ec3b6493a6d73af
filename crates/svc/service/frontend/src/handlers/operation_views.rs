//! What clients poll: the status of an operation, and its result.

use aro_arm::hcp::cluster::Cluster;
use aro_arm::hcp::external_auth::ExternalAuth;
use aro_arm::hcp::node_pool::NodePool;
use aro_arm::hcp::resource::Resource;
use aro_arm::operation::{Operation, OperationError, ProvisioningState, Request as Asked};
use aro_arm::{Code, json};
use aro_rp_store::{RpDocument, operation_document_id};
use http::StatusCode;

use crate::answer::Answer;
use crate::error::Failure;
use crate::operations;
use crate::shared::{Request, Shared};

/// Always 200 for whoever may see it; what happened is in the body.
pub async fn status(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    let operation = find(shared, request).await?.ok_or(Failure::OperationHidden)?;
    let answer = Answer::json(StatusCode::OK, &operation.status_view());
    Ok(match operation.status.is_terminal() {
        true => answer,
        false => answer.retry_after(Some(operations::poll_after(&operation, shared.clock.now()))),
    })
}

/// What the operation gave. It is final the moment the status says so.
pub async fn result(shared: &Shared, request: &Request) -> Result<Answer, Failure> {
    let Some(operation) = find(shared, request).await? else {
        let name = &request.matched.name;
        return Err(Failure::NotFound(operation_document_id(&request.matched.subscription, name)));
    };
    match operation.status {
        ProvisioningState::Succeeded => succeeded(shared, request, operation).await,
        ProvisioningState::Failed | ProvisioningState::Canceled => {
            let unexplained = || OperationError {
                code: Code::InternalServerError.as_str().to_owned(),
                message: "The operation failed without saying why.".to_owned(),
                target: None,
                details: Vec::new(),
            };
            Err(Failure::OperationFailed(operation.error.unwrap_or_else(unexplained)))
        }
        _ => Ok(Answer::empty(StatusCode::ACCEPTED)
            .header("location", &operations::result_link(request, &operation, request.version))
            .retry_after(Some(operations::poll_after(&operation, shared.clock.now())))),
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

/// The operation, if there is one that this caller may see. Somebody else's looks like none at all.
async fn find(shared: &Shared, request: &Request) -> Result<Option<Operation>, Failure> {
    if !request.matched.location.eq_ignore_ascii_case(&shared.location) {
        return Ok(None);
    }
    let id = operation_document_id(&request.matched.subscription, &request.matched.name);
    let operation = shared.documents.find::<Operation>(&id).await?.map(|stored| stored.value);
    let object_id = request.caller.object_id.as_deref().unwrap_or_default();
    Ok(operation.filter(|operation| operation.visible_to(request.tenant_id(), object_id)))
}
