//! The login endpoint over HTTP, and what the three protocols share.

mod call;
mod cloud;
mod discovery;

use std::sync::Arc;

use aro_web::BodyLimits;
use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::Value;
use uuid::Uuid;

pub(crate) use call::{Head, read_body};

use crate::federation::{Fetch, IssuerKeys};
use crate::tokens::{self, Refusal};
use crate::{Directory, Verifier};

/// What the routers serve.
pub struct Endpoints {
    pub(crate) directory: Directory,
    pub(crate) verifier: Verifier,
    pub(crate) bodies: BodyLimits,
    pub(crate) issuers: IssuerKeys,
}

impl Endpoints {
    /// Serves this directory, reads bodies by these limits, fetches keys of federated issuers by `fetch`.
    pub fn new(directory: Directory, bodies: BodyLimits, fetch: Arc<dyn Fetch>) -> Arc<Self> {
        let verifier = directory.verifier();
        Arc::new(Self { directory, verifier, bodies, issuers: IssuerKeys::new(fetch) })
    }
}

/// The login endpoint: token requests, keys and metadata, and the cloud's metadata.
pub fn login_router(endpoints: Arc<Endpoints>) -> Router {
    Router::new().fallback(serve).with_state(endpoints)
}

async fn serve(State(endpoints): State<Arc<Endpoints>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(head) = Head::of(parts, &endpoints.directory.settings().login_host) else {
        return refused(&endpoints, &HeaderMap::new(), &Refusal::unreadable());
    };
    let lower: Vec<String> = head.path.iter().map(|part| part.to_ascii_lowercase()).collect();
    let path: Vec<&str> = lower.iter().map(String::as_str).collect();
    let reads = matches!(head.method, Method::GET | Method::HEAD);
    match path.as_slice() {
        ["metadata", "endpoints"] if reads => cloud::answer(&head),
        ["common", "discovery", "instance"] if reads => discovery::instance(&endpoints.directory, &head),
        [tenant, "v2.0", ".well-known", "openid-configuration"] if reads => {
            found(discovery::metadata(&endpoints.directory, tenant, &head.host, 2), &endpoints, &head, tenant)
        }
        [tenant, ".well-known", "openid-configuration"] if reads => {
            found(discovery::metadata(&endpoints.directory, tenant, &head.host, 1), &endpoints, &head, tenant)
        }
        [tenant, "discovery", "v2.0", "keys"] | [tenant, "discovery", "keys"] if reads => {
            found(discovery::keys(&endpoints.directory, tenant), &endpoints, &head, tenant)
        }
        [tenant, "oauth2", "v2.0", "token"] | [tenant, "oauth2", "token"] if head.method == Method::POST => {
            let body = match read_body(&endpoints.bodies, body).await {
                Ok(body) => body,
                Err(status) => return status.into_response(),
            };
            let form = body.bytes();
            let (directory, issuers) = (&endpoints.directory, &endpoints.issuers);
            let answered = tokens::answer(directory, issuers, tenant, &head.host, &head.headers, &form);
            match answered.await {
                Ok(answer) => uncached(json(StatusCode::OK, &answer)),
                Err(refusal) => refused(&endpoints, &head.headers, &refusal),
            }
        }
        [_, "oauth2", "v2.0", "token"] | [_, "oauth2", "token"] => {
            StatusCode::METHOD_NOT_ALLOWED.into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn found(document: Option<Value>, endpoints: &Endpoints, head: &Head, tenant: &str) -> Response {
    match document {
        Some(document) => json(StatusCode::OK, &document),
        None => refused(endpoints, &head.headers, &Refusal::unknown_tenant(tenant)),
    }
}

/// A JSON answer.
pub(crate) fn json(status: StatusCode, body: &Value) -> Response {
    (status, axum::Json(body)).into_response()
}

/// Tokens and secrets stay out of caches.
pub(crate) fn uncached(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store, no-cache"));
    response
}

fn refused(endpoints: &Endpoints, headers: &HeaderMap, refusal: &Refusal) -> Response {
    let named = headers.get("client-request-id").and_then(|value| value.to_str().ok());
    let correlation_id = named.and_then(|text| Uuid::try_parse(text).ok()).unwrap_or_else(Uuid::new_v4);
    let trace_id = Uuid::new_v4();
    let now = endpoints.directory.now();
    let body = refusal.body(&endpoints.directory.settings().login_host, now, trace_id, correlation_id);
    let mut response = uncached(json(refusal.status, &body));
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&trace_id.to_string()) {
        headers.insert(HeaderName::from_static("x-ms-request-id"), value);
    }
    if refusal.status == StatusCode::TOO_MANY_REQUESTS {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("60"));
    }
    response
}
