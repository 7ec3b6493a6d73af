//! Which service a request is for: by its host, or, for clients that reach the listener directly, by its path.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{Request, StatusCode, header};
use serde::{Deserialize, Serialize};
use tower::ServiceExt as _;

use crate::admin::{self, Admin};
use crate::connection::Cut;
use crate::faults::{Call, Plan, Switchboard, act};

/// The services of the cloud.
#[derive(Clone)]
pub(crate) struct FrontDoor {
    pub arm: Router,
    pub login: Router,
    pub graph: Router,
    pub identity: Router,
    pub vault: Router,
    pub blob: Router,
    pub website: Router,
    pub check_access: Router,
    pub admin: Admin,
    pub faults: Arc<Switchboard>,
}

/// A service of the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Service {
    Arm,
    Login,
    Graph,
    Identity,
    Vault,
    Blob,
    Website,
    CheckAccess,
}

impl FrontDoor {
    /// All services behind one router.
    pub(crate) fn into_router(self) -> Router {
        Router::new().fallback(move |request: Request<Body>| {
            let door = self.clone();
            async move { door.route(request).await }
        })
    }

    async fn route(self, request: Request<Body>) -> Response {
        let host = host_of(&request);
        if request.uri().path().starts_with(admin::PREFIX) {
            return self.admin.answer(&host, request).await;
        }
        let service = service_of(&host, request.uri().path());
        let router = match service {
            Some(Service::Arm) => self.arm,
            Some(Service::Login) => self.login,
            Some(Service::Graph) => self.graph,
            Some(Service::Identity) => self.identity,
            Some(Service::Vault) => self.vault,
            Some(Service::Blob) => self.blob,
            Some(Service::Website) => self.website,
            Some(Service::CheckAccess) => self.check_access,
            None => {
                let text = format!("The local cloud does not serve the host '{host}'.\n");
                return (StatusCode::MISDIRECTED_REQUEST, text).into_response();
            }
        };
        // ARM asks for itself, once it knows the caller.
        let plan = match service {
            Some(service) if service != Service::Arm => {
                self.faults.plan(|| Call::of_service(service, request.method(), &host, request.uri().path()))
            }
            _ => Plan::PASS,
        };
        let cut = request.extensions().get::<Cut>().cloned();
        let forbid = || StatusCode::FORBIDDEN.into_response();
        act(plan, cut, forbid, async {
            match router.oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        })
        .await
    }
}

/// The host that a client asked for, without port, in lower case.
fn host_of(request: &Request<Body>) -> String {
    let header = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    let host = request.uri().host().or(header).unwrap_or_default();
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    };
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// The service behind a host; `None` for one that the cloud does not have.
pub(crate) fn service_of(host: &str, path: &str) -> Option<Service> {
    match host {
        "management.azure.com" => Some(Service::Arm),
        "login.microsoftonline.com" | "login.windows.net" | "sts.windows.net" => Some(Service::Login),
        "graph.microsoft.com" => Some(Service::Graph),
        "localhost" | "127.0.0.1" | "[::1]" => Some(by_path(path)),
        host if host.ends_with(".identity.azure.net") => Some(Service::Identity),
        host if host.ends_with(".authorization.azure.net") => Some(Service::CheckAccess),
        host if host.ends_with(".vault.azure.net") => Some(Service::Vault),
        host if host.ends_with(".blob.core.windows.net") => Some(Service::Blob),
        host if host.ends_with(".web.core.windows.net") => Some(Service::Website),
        _ => None,
    }
}

/// A custom cloud has one host for everything.
fn by_path(path: &str) -> Service {
    let segments: Vec<String> =
        path.split('/').filter(|part| !part.is_empty()).map(str::to_lowercase).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["metadata", "endpoints"] | [_, "oauth2" | "discovery" | ".well-known" | "v2.0", ..] => {
            Service::Login
        }
        ["v1.0", ..] => Service::Graph,
        _ => Service::Arm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_paths_lead_to_their_service() {
        for (host, path, expected) in [
            ("management.azure.com", "/subscriptions", Some(Service::Arm)),
            ("login.microsoftonline.com", "/t/oauth2/v2.0/token", Some(Service::Login)),
            ("graph.microsoft.com", "/v1.0/me", Some(Service::Graph)),
            ("uksouth.identity.azure.net", "/x", Some(Service::Identity)),
            ("localhost", "/metadata/endpoints", Some(Service::Login)),
            ("127.0.0.1", "/T/OAuth2/v2.0/token", Some(Service::Login)),
            ("localhost", "/v1.0/me", Some(Service::Graph)),
            ("localhost", "/subscriptions/s/providers/a", Some(Service::Arm)),
            ("v.vault.azure.net", "/secrets", Some(Service::Vault)),
            ("a.blob.core.windows.net", "/c/b", Some(Service::Blob)),
            ("a.web.core.windows.net", "/", Some(Service::Website)),
            ("westus3.authorization.azure.net", "/providers/x", Some(Service::CheckAccess)),
            ("example.com", "/subscriptions", None),
            ("identity.azure.net", "/", None),
        ] {
            assert_eq!(service_of(host, path), expected, "{host}{path}");
        }
    }
}
