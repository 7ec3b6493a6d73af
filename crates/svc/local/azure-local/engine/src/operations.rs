//! Long-running operations as clients follow them. Their state follows from the resource and the clock (see
//! [`aro_cloud_store::Operation`]); the URL carries the resource id, so that nothing has to be stored beside the resource.

use aro_arm::ResourceId;
use aro_arm_server::{Answer, Failure};
use aro_base::Timestamp;
use aro_cloud_store::Resource;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::cloud::{Cloud, GROUP};
use crate::provider::{CloudRequest, Permissions as _};
use crate::refusal::Refusal;
use crate::spec::{Effect, TypeSpec};
use crate::{render, types};

/// The answer to a write that was accepted.
pub(crate) fn accepted(
    request: &CloudRequest,
    spec: &TypeSpec,
    stored: &Resource,
    shown: Value,
    creates: bool,
) -> Answer {
    let created = StatusCode::from_u16(spec.created_status).unwrap_or(StatusCode::CREATED);
    let status = if creates { created } else { StatusCode::OK };
    let answer = Answer::json(status, &shown);
    match &stored.operation {
        Some(operation) if spec.long_running && request.method != Method::PATCH => {
            let url = url(request, spec, stored, &operation.id, "operations");
            answer.header("azure-asyncoperation", &url).retry_after(Some(0))
        }
        _ => answer,
    }
}

/// The answer to a deletion that was accepted or done. That of a role assignment or definition shows what was deleted: clients
/// decode it.
pub(crate) fn deleted(request: &CloudRequest, spec: &TypeSpec, stored: &Resource, now: Timestamp) -> Answer {
    match &stored.operation {
        Some(operation) if spec.long_running => Answer::empty(StatusCode::ACCEPTED)
            .header("azure-asyncoperation", &url(request, spec, stored, &operation.id, "operations"))
            .header("location", &url(request, spec, stored, &operation.id, "operationResults"))
            .retry_after(Some(0)),
        _ if spec.effect == Effect::Authorization => {
            Answer::json(StatusCode::OK, &render::resource(spec, stored, None, now))
        }
        _ => Answer::empty(StatusCode::OK),
    }
}

fn url(request: &CloudRequest, spec: &TypeSpec, stored: &Resource, operation: &str, word: &str) -> String {
    let location = stored.body.get("location").and_then(Value::as_str).unwrap_or("global");
    let subscription = ResourceId::parse(&stored.id).ok();
    let subscription = subscription.as_ref().and_then(ResourceId::subscription).unwrap_or_default();
    let id = ResourceId::in_subscription(
        subscription,
        spec.namespace,
        &[("locations", location), (word, operation)],
    );
    follow(request, &id, &stored.id)
}

/// The URL of an operation, with the resource it works on.
pub(crate) fn follow(request: &CloudRequest, operation: &ResourceId, resource: &str) -> String {
    let resource: String = url::form_urlencoded::byte_serialize(resource.as_bytes()).collect();
    format!("{}&t={resource}", request.caller.url().to(operation, request.api_version))
}

impl Cloud {
    /// The status of an operation, or its result.
    pub(crate) async fn operation(&self, request: &CloudRequest, result: bool) -> Result<Answer, Failure> {
        let operation = request.matched.name("operation").to_owned();
        let id = request.query.get("t").and_then(|text| ResourceId::parse(text).ok());
        let id = id.ok_or_else(|| {
            let message = format!("The operation '{operation}' was not found.");
            Refusal::new(StatusCode::NOT_FOUND, "OperationNotFound", message)
        })?;
        let full = match id.namespace() {
            None => GROUP.to_owned(),
            Some(_) => id.resource_type(),
        };
        request.may(self, &read_action(&full), id.as_str())?;
        let stored = match full == GROUP || types::find(&full).is_some() {
            true => self.find(&full, &id).await?,
            false => None,
        };
        let stored = match stored {
            Some(stored) if is_own(&stored.value, &operation) => Some(self.polled(&full, stored).await?),
            stored => stored,
        };
        let running = stored.as_ref().is_some_and(|stored| is_running(&stored.value, &operation, self.now()));
        Ok(match (result, running) {
            (false, true) => status(&operation, "InProgress").retry_after(Some(1)),
            (false, false) => status(&operation, "Succeeded"),
            (true, true) => {
                let again = request.caller.url();
                Answer::empty(StatusCode::ACCEPTED).header("location", &again.here()).retry_after(Some(1))
            }
            (true, false) => Answer::empty(StatusCode::OK),
        })
    }
}

fn read_action(full: &str) -> String {
    match full {
        GROUP => "Microsoft.Resources/subscriptions/resourceGroups/read".to_owned(),
        full => format!("{full}/read"),
    }
}

/// A resource that is gone, or has a newer operation, ended this one.
fn is_running(stored: &Resource, operation: &str, now: Timestamp) -> bool {
    let own = stored.operation.as_ref().filter(|own| own.id == operation);
    own.is_some_and(|own| stored.deleting || !own.is_settled(now))
}

fn is_own(stored: &Resource, operation: &str) -> bool {
    stored.operation.as_ref().is_some_and(|own| own.id == operation)
}

fn status(operation: &str, state: &str) -> Answer {
    Answer::json(StatusCode::OK, &json!({"name": operation, "status": state}))
}
