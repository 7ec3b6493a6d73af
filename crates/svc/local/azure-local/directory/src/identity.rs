//! The managed identity data plane: hands the credentials of identities to the resource provider.
//!
//! A resource provider gets a capability URL with each request that concerns a resource with identities. It calls the URL as its
//! first-party application and gets, for each identity, a certificate that works at the token endpoint for exactly that identity.
//! The URL is a secret: it is never logged.

mod answer;
mod capability;
mod issue;
mod prepared;
mod requested;

use std::sync::Arc;

use aro_base::chain;
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, Method, StatusCode};
use serde_json::json;
use uuid::Uuid;

pub(crate) use issue::IssuedCredentials;
pub(crate) use prepared::PreparedKeys;

use crate::http::{Head, json as respond, read_body, uncached};
use crate::model::Application;
use crate::{Directory, DirectoryError, Endpoints};
use capability::Capability;

const API_VERSION: &str = "2024-01-01";

/// A refused request: status, code, message.
type Refused = (StatusCode, &'static str, String);

/// The managed identity data plane.
pub fn identity_router(endpoints: Arc<Endpoints>) -> Router {
    Router::new().fallback(serve).with_state(endpoints)
}

impl Directory {
    /// The URL by which the credentials of a resource's identities are requested (`X-Ms-Identity-Url`). Treat it as a secret.
    pub fn identity_url(&self, resource_id: &str, tenant: Uuid) -> String {
        let capability = Capability { resource_id: resource_id.to_owned(), tenant };
        capability.url(&self.0.settings.identity_host, &self.0.capability_key)
    }
}

async fn serve(State(endpoints): State<Arc<Endpoints>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let directory = &endpoints.directory;
    let capability = Head::of(parts, &directory.settings().identity_host)
        .and_then(|head| Some((Capability::parse(&head, &directory.0.capability_key)?, head)));
    let Some((capability, head)) = capability else {
        return refused((StatusCode::NOT_FOUND, "NotFound", "There is no identity at this URL.".to_owned()));
    };
    if let Err(response) = authenticate(&endpoints, &capability, &head) {
        return *response;
    }
    if head.parameter("api-version") != Some(API_VERSION) {
        let message = format!("The api-version must be {API_VERSION}.");
        return refused((StatusCode::BAD_REQUEST, "InvalidApiVersion", message));
    }
    let answered = match head.method {
        Method::GET => system_assigned(directory, &capability).await,
        Method::POST => match read_body(&endpoints.bodies, body).await {
            Ok(body) => user_assigned(directory, &capability, &body.bytes()).await,
            Err(status) => Err((status, "InvalidRequestBody", "The body cannot be read.".to_owned())),
        },
        Method::DELETE => remove(directory, &capability).await,
        _ => Err((StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", "Use GET, POST or DELETE.".to_owned())),
    };
    answered.unwrap_or_else(refused)
}

fn refused((status, code, message): Refused) -> Response {
    respond(status, &json!({"error": {"code": code, "message": message}}))
}

fn internal(error: &DirectoryError) -> Refused {
    tracing::error!(error = %chain(error), "identity credentials could not be issued");
    (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "Try again later.".to_owned())
}

/// Only the first-party application, with a token of the tenant that the URL names.
fn authenticate(endpoints: &Endpoints, capability: &Capability, head: &Head) -> Result<(), Box<Response>> {
    let settings = endpoints.directory.settings();
    let challenge = |message: &str| {
        let mut response = refused((StatusCode::UNAUTHORIZED, "Unauthorized", message.to_owned()));
        let (host, tenant) = (&settings.login_host, capability.tenant);
        let value = format!(
            "Bearer authorization=\"https://{host}/{tenant}\", resource=\"{}\"",
            settings.identity_audience
        );
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(WWW_AUTHENTICATE, value);
        }
        Box::new(response)
    };
    let token = head.bearer().ok_or_else(|| challenge("A bearer token is required."))?;
    let principal = endpoints
        .verifier
        .verify(token, &[&settings.identity_audience])
        .map_err(|error| challenge(&error.to_string()))?;
    if principal.tenant != capability.tenant || settings.identity_caller != Some(principal.app_id) {
        let message = "The application may not request credentials of this identity.".to_owned();
        return Err(Box::new(refused((StatusCode::FORBIDDEN, "Forbidden", message))));
    }
    Ok(())
}

fn unknown(resource_id: &str) -> Refused {
    let message = format!("The identity '{resource_id}' was not found.");
    (StatusCode::NOT_FOUND, "IdentityNotFound", message)
}

async fn system_assigned(directory: &Directory, capability: &Capability) -> Result<Response, Refused> {
    let found = directory.find_identity(capability.tenant, &capability.resource_id);
    let application = found.ok_or_else(|| unknown(&capability.resource_id))?;
    let credential = credential(directory, &application).await?;
    Ok(uncached(respond(StatusCode::OK, &answer::system(&credential))))
}

async fn user_assigned(
    directory: &Directory,
    capability: &Capability,
    body: &[u8],
) -> Result<Response, Refused> {
    let bad = |message: String| (StatusCode::BAD_REQUEST, "InvalidRequestBody", message);
    let requested = requested::parse(body).map_err(bad)?;
    let requested = &requested;
    let credentials = requested.identity_ids.iter().map(|id| async move {
        let application = directory.find_identity(capability.tenant, id).ok_or_else(|| unknown(id))?;
        let mut rendered = credential(directory, &application).await?;
        rendered["resource_id"] = json!(id);
        rendered["custom_claims"] = requested.custom_claims.clone();
        Ok::<_, Refused>(rendered)
    });
    let credentials = futures::future::try_join_all(credentials).await?;
    Ok(uncached(respond(StatusCode::OK, &answer::user(credentials))))
}

async fn remove(directory: &Directory, capability: &Capability) -> Result<Response, Refused> {
    let removed = directory.remove_identity(capability.tenant, &capability.resource_id).await;
    removed.map_err(|error| internal(&error))?;
    Ok(respond(StatusCode::OK, &json!({})))
}

async fn credential(directory: &Directory, application: &Application) -> Result<serde_json::Value, Refused> {
    let issued = issue::credential(directory, application).await.map_err(|error| internal(&error))?;
    Ok(answer::credential(directory, application, &issued))
}
