//! ARM's own work before a resource provider sees a request: the caller's token, and the headers that ARM adds.

use std::sync::Arc;

use aro_arm_server::Failure;
use aro_azure_local_directory::{Directory, Principal, TokenError, Verifier};
use aro_azure_local_engine::{Cloud, Forwarded, Refusal};
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use serde_json::json;
use tower::ServiceExt as _;
use uuid::Uuid;

use crate::connection::Cut;
use crate::faults::{Call, Switchboard, act};
use crate::forward::Providers;
use crate::tracking::Tracking;

/// The audiences of tokens for ARM, as clients of different ages ask for them.
const AUDIENCES: [&str; 4] = [
    "https://management.azure.com",
    "https://management.core.windows.net",
    "https://management.core.windows.net/",
    "https://management.azure.com/",
];

/// Headers that only ARM sets: what a caller sends under these names is dropped.
const OWN: &[&str] = &[
    "x-ms-client-principal-name",
    "x-ms-client-principal-id",
    "x-ms-client-tenant-id",
    "x-ms-client-object-id",
    "x-ms-client-app-id",
    "x-ms-client-authorization-source",
    "x-ms-home-tenant-id",
    "x-ms-identity-url",
    "x-ms-identity-principal-id",
    "x-ms-arm-resource-system-data",
    "x-forwarded-proto",
    "referer",
];

/// Verifies tokens and hands requests to the engine or to a registered provider.
#[derive(Clone)]
pub(crate) struct Arm {
    pub verifier: Verifier,
    pub directory: Directory,
    pub cloud: Cloud,
    pub engine: Router,
    pub providers: Providers,
    pub clock: aro_base::SharedClock,
    pub faults: Arc<Switchboard>,
}

impl Arm {
    pub(crate) fn into_router(self) -> Router {
        Router::new().fallback(move |request: Request<Body>| {
            let arm = self.clone();
            async move { arm.answer(request).await }
        })
    }

    async fn answer(self, request: Request<Body>) -> Response {
        let principal = match self.authenticate(request.headers()) {
            Ok(principal) => principal,
            Err(refusal) => return *refusal,
        };
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let call = || Call::of_arm(&method, uri.path(), uri.query().unwrap_or_default());
        let plan = self.faults.plan(call);
        let cut = request.extensions().get::<Cut>().cloned();
        let (client, object_id) = (principal.name.clone(), principal.object_id.to_string());
        let forbid = || {
            let call = call();
            let refusal = Refusal::authorization(&client, &object_id, &call.action(), &call.resource);
            Failure::from(refusal).into_answer().into_response()
        };
        act(plan, cut, forbid, self.handle(principal, request)).await
    }

    /// What ARM does for a caller that it knows.
    async fn handle(&self, principal: Principal, mut request: Request<Body>) -> Response {
        let url = client_url(&request);
        for name in OWN {
            request.headers_mut().remove(*name);
        }
        let provider = self.providers.find(request.uri().path());
        let system_data =
            provider.is_some() && !matches!(*request.method(), http::Method::GET | http::Method::HEAD);
        let identity_url =
            provider.is_some().then(|| self.identity_url(request.uri().path(), principal.tenant));
        add_headers(request.headers_mut(), &principal, &url, identity_url.flatten().as_deref());
        if system_data {
            let data = json!({
                "createdBy": principal.object_id, "createdByType": "Application", "createdAt": self.clock.now().to_string(),
                "lastModifiedBy": principal.object_id, "lastModifiedByType": "Application", "lastModifiedAt": self.clock.now().to_string(),
            });
            set(request.headers_mut(), "x-ms-arm-resource-system-data", &data.to_string());
        }
        if let Some(provider) = provider {
            let (object_id, tenant) = (principal.object_id.to_string(), principal.tenant.to_string());
            let forwarded = Forwarded {
                method: request.method(),
                path: request.uri().path(),
                client: &principal.name,
                object_id: &object_id,
                tenant: &tenant,
            };
            if let Err(failure) = self.cloud.check_forwarded(&forwarded).await {
                return failure.into_answer().into_response();
            }
            let tracking = Tracking::of(request.method(), request.uri().path(), &object_id);
            let response = self.providers.forward(provider, request).await;
            return match tracking {
                Some(tracking) => tracking.note(&self.cloud, response).await,
                None => response,
            };
        }
        match self.engine.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// The data plane URL of the identities of a resource in the path.
    fn identity_url(&self, path: &str, tenant: Uuid) -> Option<String> {
        let id = aro_arm::ResourceId::parse(path).ok()?;
        id.namespace()?;
        Some(self.directory.identity_url(&id.to_lower(), tenant))
    }

    fn authenticate(&self, headers: &HeaderMap) -> Result<Principal, Box<Response>> {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = given
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some((_, token)) = token else {
            return Err(Box::new(self.refuse(
                "AuthenticationFailed",
                "Authentication failed. The 'Authorization' header is missing.",
            )));
        };
        self.verifier.verify(token.trim(), &AUDIENCES).map_err(|error| Box::new(match error {
            TokenError::Time => self.refuse("ExpiredAuthenticationToken", "The access token expiry UTC time is in the past. Current UTC time is later than the token's."),
            TokenError::Audience => self.refuse("InvalidAuthenticationTokenAudience", "The access token has been obtained for wrong audience or resource. It should exactly match with one of the allowed audiences 'https://management.core.windows.net/', 'https://management.core.windows.net', 'https://management.azure.com/', 'https://management.azure.com'."),
            TokenError::Issuer => self.refuse("InvalidAuthenticationTokenTenant", "The access token is from the wrong issuer."),
            TokenError::Signature(_) | TokenError::Claims => self.refuse("InvalidAuthenticationToken", "The access token is invalid."),
        }))
    }

    fn refuse(&self, code: &str, message: &str) -> Response {
        let authority = format!("https://{}", self.directory.settings().login_host);
        let challenge = format!(
            "Bearer authorization_uri=\"{authority}/common\", error=\"invalid_token\", error_description=\"{code}\""
        );
        let body = json!({"error": {"code": code, "message": message}}).to_string();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        let headers = response.headers_mut();
        set(headers, "content-type", "application/json");
        set(headers, "x-ms-failure-cause", "gateway");
        if let Ok(challenge) = HeaderValue::from_str(&challenge) {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// The address that the client used.
fn client_url(request: &Request<Body>) -> String {
    let host = request.headers().get(HOST).and_then(|value| value.to_str().ok());
    let host = request
        .uri()
        .authority()
        .map(http::uri::Authority::as_str)
        .or(host)
        .unwrap_or("management.azure.com");
    format!("https://{host}{}", request.uri().path_and_query().map_or("/", |all| all.as_str()))
}

fn add_headers(headers: &mut HeaderMap, principal: &Principal, url: &str, identity_url: Option<&str>) {
    set(headers, "referer", url);
    set(headers, "x-forwarded-proto", "https");
    set(headers, "x-ms-client-object-id", &principal.object_id.to_string());
    set(headers, "x-ms-client-principal-id", &principal.object_id.to_string());
    set(headers, "x-ms-client-principal-name", &principal.app_id.to_string());
    set(headers, "x-ms-client-app-id", &principal.app_id.to_string());
    set(headers, "x-ms-client-tenant-id", &principal.tenant.to_string());
    set(headers, "x-ms-home-tenant-id", &principal.tenant.to_string());
    set(headers, "x-ms-client-authorization-source", "RoleBased");
    if !headers.contains_key("x-ms-correlation-request-id") {
        set(headers, "x-ms-correlation-request-id", &Uuid::new_v4().to_string());
    }
    if let Some(url) = identity_url {
        set(headers, "x-ms-identity-url", url);
    }
    // The token is for ARM; a provider gets the caller's identity in headers.
    headers.remove(AUTHORIZATION);
}

fn set(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}
