//! The part of Microsoft Graph that Azure's clients call to look up and register applications.
//!
//! Every request carries a token of this directory for Graph; it sees the token's tenant only. Applications change through an
//! application that may write the directory.

mod applications;
mod filter;
mod objects;
mod render;

use std::sync::Arc;

use aro_base::chain;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use crate::http::{Head, json as respond, read_body};
use crate::model::Application;
use crate::{Directory, DirectoryError, Endpoints, Principal};

const AUDIENCES: [&str; 2] = ["https://graph.microsoft.com", "00000003-0000-0000-c000-000000000000"];

/// A refused request: status, code, message.
pub(crate) type Refused = (StatusCode, &'static str, String);

/// What a handler answers: a status and, unless it is 204, a body.
pub(crate) type Answer = Result<(StatusCode, Value), Refused>;

/// A request of a known caller.
pub(crate) struct Call<'a> {
    directory: &'a Directory,
    caller: Principal,
    head: Head,
}

/// Microsoft Graph.
pub fn graph_router(endpoints: Arc<Endpoints>) -> Router {
    Router::new().fallback(serve).with_state(endpoints)
}

async fn serve(State(endpoints): State<Arc<Endpoints>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(head) = Head::of(parts, "graph.microsoft.com") else {
        return refused(bad_request("The path is not UTF-8.".to_owned()));
    };
    let verified = head.bearer().map(|token| endpoints.verifier.verify(token, &AUDIENCES));
    let caller = match verified {
        Some(Ok(caller)) => caller,
        Some(Err(error)) => return unauthenticated(&error.to_string()),
        None => return unauthenticated("Access token is empty."),
    };
    let call = Call { directory: &endpoints.directory, caller, head };
    match dispatch(&call, &endpoints, body).await {
        Ok((StatusCode::NO_CONTENT, _)) => StatusCode::NO_CONTENT.into_response(),
        Ok((status, body)) => respond(status, &body),
        Err(problem) => refused(problem),
    }
}

fn unauthenticated(message: &str) -> Response {
    let mut response = refused((StatusCode::UNAUTHORIZED, "InvalidAuthenticationToken", message.to_owned()));
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"\""));
    response
}

fn refused((status, code, message): Refused) -> Response {
    respond(status, &json!({"error": {"code": code, "message": message}}))
}

fn bad_request(message: String) -> Refused {
    (StatusCode::BAD_REQUEST, "Request_BadRequest", message)
}

fn not_found(name: &str) -> Refused {
    let message = format!(
        "Resource '{name}' does not exist or one of its queried reference-property objects are not present."
    );
    (StatusCode::NOT_FOUND, "Request_ResourceNotFound", message)
}

fn failed(error: &DirectoryError) -> Refused {
    match error {
        DirectoryError::UnknownApplication(id) => not_found(&id.to_string()),
        DirectoryError::TooMany(_) | DirectoryError::Invalid(_) => bad_request(error.to_string()),
        DirectoryError::Key(_) => bad_request("A key or certificate cannot be read.".to_owned()),
        _ => {
            tracing::error!(error = %chain(error), "directory request failed");
            (StatusCode::SERVICE_UNAVAILABLE, "UnknownError", "Try again later.".to_owned())
        }
    }
}

async fn dispatch(call: &Call<'_>, endpoints: &Endpoints, body: Body) -> Answer {
    let path: Vec<&str> = call.head.path.iter().map(String::as_str).collect();
    let ["v1.0" | "beta", rest @ ..] = path.as_slice() else { return Err(not_found("version")) };
    let lower: Vec<String> = rest.iter().map(|part| part.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let get = call.head.method == Method::GET;
    match lower.as_slice() {
        ["serviceprincipals"] if get => objects::list_principals(call),
        ["serviceprincipals", id] if get => objects::get_principal(call, id),
        ["applications"] if get => objects::list_applications(call),
        ["applications", id] if get => objects::get_application(call, id),
        ["users" | "groups"] if get => Ok((StatusCode::OK, render::list(call, "directoryObjects", vec![]))),
        ["organization"] if get => objects::organization(call),
        ["me"] if get => {
            Err(bad_request("/me request is only valid with delegated authentication flow.".to_owned()))
        }
        [part] if get => objects::by_app_id(call, part),
        _ if get => Err(not_found(rest.last().copied().unwrap_or_default())),
        _ => {
            check_writer(call, &lower)?;
            let body = read_body(&endpoints.bodies, body)
                .await
                .map_err(|status| (status, "Request_BadRequest", "The body cannot be read.".to_owned()))?;
            let bytes = body.bytes();
            let value = if bytes.is_empty() { Ok(json!({})) } else { serde_json::from_slice(&bytes) };
            let value: Value = value.map_err(|_| bad_request("The body is not JSON.".to_owned()))?;
            if !value.is_object() {
                return Err(bad_request("The body must be a JSON object.".to_owned()));
            }
            applications::change(call, &lower, &value).await
        }
    }
}

/// Reading by POST is for all; the rest is for applications that may write the directory.
fn check_writer(call: &Call<'_>, path: &[&str]) -> Result<(), Refused> {
    if path.first() == Some(&"directoryobjects") {
        return Ok(());
    }
    let application = call.directory.find_application(call.caller.app_id);
    if application.is_some_and(|application| application.directory_writer) {
        return Ok(());
    }
    let message = "Insufficient privileges to complete the operation.".to_owned();
    Err((StatusCode::FORBIDDEN, "Authorization_RequestDenied", message))
}

impl Call<'_> {
    /// The application that an object id or a client id names, at home in the caller's tenant.
    fn own_application(&self, id: &str) -> Result<Arc<Application>, Refused> {
        let named = applications::key_of(id);
        let id = uuid::Uuid::try_parse(named.unwrap_or(id)).map_err(|_| not_found(id))?;
        let model = self.directory.0.model.read();
        let found = match named {
            Some(_) => model.application(id).filter(|application| application.tenant == self.caller.tenant),
            None => model.application_object(self.caller.tenant, id),
        };
        found
            .filter(|application| application.resource_id().is_none())
            .ok_or_else(|| not_found(&id.to_string()))
    }
}
