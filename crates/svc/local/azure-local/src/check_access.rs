//! CheckAccess: what a principal may do on a resource, by the role assignments of the local cloud.
//!
//! The caller's token is of the tenant that the resource belongs to. A page has fifty decisions; the link to the next one is
//! followed with the same body.

use std::sync::Arc;

use aro_arm::ResourceId;
use aro_azure_local_directory::Verifier;
use aro_azure_local_engine::Cloud;
use aro_azure_local_engine::authorization::{Assignment, Decision};
use aro_base::SharedClock;
use aro_web::{BodyError, BodyLimits, RequestHead};
use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// The audience of its tokens.
const AUDIENCE: &str = "https://authorization.azure.net";
const VERSIONS: [&str; 2] = ["2021-06-01-preview", "2023-05-01"];
/// How many decisions a page has, and how many actions a request may name.
const PAGE: usize = 50;
const MOST_ACTIONS: usize = 1000;
/// How many groups of a subject count; tokens name at most as many.
const MOST_GROUPS: usize = 200;

/// What decisions are made of.
pub(crate) struct CheckAccess {
    pub verifier: Verifier,
    pub cloud: Cloud,
    pub clock: SharedClock,
    pub bodies: BodyLimits,
}

/// Its one endpoint.
pub(crate) fn router(service: CheckAccess) -> Router {
    Router::new().fallback(serve).with_state(Arc::new(service))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Question {
    subject: Subject,
    #[serde(default)]
    actions: Vec<Action>,
    resource: Resource,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Subject {
    attributes: Attributes,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attributes {
    object_id: String,
    #[serde(default)]
    groups: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Action {
    id: String,
    #[serde(default)]
    is_data_action: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Resource {
    id: String,
}

/// A refused request.
struct Refused(StatusCode, String);

impl Refused {
    fn bad(message: impl Into<String>) -> Self {
        Self(StatusCode::BAD_REQUEST, message.into())
    }
}

async fn serve(State(service): State<Arc<CheckAccess>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let head = RequestHead::new(parts);
    match answer(&service, &head, body).await {
        Ok(page) => (StatusCode::OK, axum::Json(page)).into_response(),
        Err(Refused(status, message)) => {
            (status, axum::Json(json!({"statusCode": status.as_u16(), "message": message}))).into_response()
        }
    }
}

async fn answer(service: &CheckAccess, head: &RequestHead, body: axum::body::Body) -> Result<Value, Refused> {
    let path = head.segments().unwrap_or_default().join("/");
    if !path.eq_ignore_ascii_case("providers/Microsoft.Authorization/checkAccess") {
        return Err(Refused(StatusCode::NOT_FOUND, "The requested path was not found.".to_owned()));
    }
    if head.method != Method::POST {
        return Err(Refused(StatusCode::METHOD_NOT_ALLOWED, "Use POST.".to_owned()));
    }
    let version = head.parameter("api-version").unwrap_or_default();
    if !VERSIONS.contains(&version) {
        let served = VERSIONS.join(", ");
        return Err(Refused::bad(format!(
            "The api-version '{version}' is not supported. Supported are: {served}."
        )));
    }
    let token = head.bearer().unwrap_or_default();
    let caller = service.verifier.verify(token, &[AUDIENCE]);
    let caller = caller.map_err(|error| Refused(StatusCode::UNAUTHORIZED, error.to_string()))?;
    let held = service
        .bodies
        .read(body)
        .await
        .map_err(|error: BodyError| Refused(error.status(), error.to_string()))?;
    let question: Question = serde_json::from_slice(&held.bytes())
        .map_err(|error| Refused::bad(format!("The request content is not valid: {error}.")))?;
    let resource = checked(service, &question, caller.tenant)?;
    let from = match head.parameter("$skipToken") {
        None => 0,
        Some(text) => text.parse().map_err(|_| Refused::bad("The skip token is not valid."))?,
    };
    let decided = question.actions.iter().skip(from).take(PAGE);
    let decisions: Vec<Value> =
        decided.map(|action| decision(service, &question.subject.attributes, &resource, action)).collect();
    let mut page = json!({"value": decisions});
    let next = from.saturating_add(PAGE);
    if next < question.actions.len()
        && let Some(host) = &head.host
    {
        let link = format!("https://{host}{}?api-version={version}&$skipToken={next}", head.raw_path);
        page["nextLink"] = json!(link);
    }
    Ok(page)
}

/// The resource of a question whose parts are valid.
fn checked(service: &CheckAccess, question: &Question, tenant: Uuid) -> Result<ResourceId, Refused> {
    if question.actions.is_empty() || question.actions.len() > MOST_ACTIONS {
        return Err(Refused::bad(format!("A request names between 1 and {MOST_ACTIONS} actions.")));
    }
    if Uuid::try_parse(&question.subject.attributes.object_id).is_err() {
        return Err(Refused::bad("The subject's ObjectId is not a GUID."));
    }
    let id = ResourceId::parse(&question.resource.id)
        .map_err(|error| Refused::bad(format!("The resource id is not valid: {error}.")))?;
    if let Some(subscription) = id.subscription() {
        let known = service.cloud.subscription(subscription);
        let own = known.is_ok_and(|facts| facts.tenant.eq_ignore_ascii_case(&tenant.to_string()));
        if !own {
            let message = format!("The subscription '{subscription}' is not in the tenant '{tenant}'.");
            return Err(Refused(StatusCode::FORBIDDEN, message));
        }
    }
    Ok(id)
}

fn decision(service: &CheckAccess, subject: &Attributes, resource: &ResourceId, action: &Action) -> Value {
    let now = service.clock.now();
    let groups = subject.groups.iter().flatten().take(MOST_GROUPS);
    let granting = [&subject.object_id].into_iter().chain(groups).find_map(|principal| {
        let decided = service.cloud.grants().decide(
            principal,
            resource.as_str(),
            &action.id,
            action.is_data_action,
            now,
        );
        match decided {
            Decision::Allowed(assignment) => Some((assignment, principal == &subject.object_id)),
            Decision::NotAllowed => None,
        }
    });
    let mut shown = json!({
        "actionId": action.id, "isDataAction": action.is_data_action,
        "accessDecision": if granting.is_some() { "Allowed" } else { "NotAllowed" },
        // A decision holds until the next change of an assignment, which no client can foresee.
        "timeToLiveInMs": 0,
    });
    if let Some((assignment, own)) = granting {
        shown["roleAssignment"] = shown_assignment(&assignment, own);
    }
    shown
}

fn shown_assignment(assignment: &Assignment, own: bool) -> Value {
    json!({
        "id": assignment.id,
        "roleDefinitionId": assignment.role,
        "principalId": assignment.principal,
        "principalType": if own { "ServicePrincipal" } else { "Group" },
        "scope": if assignment.scope.is_empty() { "/" } else { &assignment.scope },
    })
}
