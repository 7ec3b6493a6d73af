//! Resource providers behind ARM that are services of their own: their requests are forwarded as ARM does it.

use std::sync::Arc;
use std::time::Duration;

use aro_azure_local_engine::SubscriptionFacts;
use aro_net::{Backoff, Dialer, HostPort, Resolve};
use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::json;

/// Between notifications that were not accepted.
const ANNOUNCE: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(5));

/// A provider's namespace, in lower case, and where it listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceProvider {
    pub namespace: String,
    pub target: HostPort,
}

/// Reads `Namespace=http://host:port`.
pub(crate) fn parse(text: &str) -> Result<ResourceProvider, String> {
    let wrong = || format!("`{text}` is not of the form Namespace=http://host:port");
    let (namespace, url) = text.split_once('=').ok_or_else(wrong)?;
    let target = url.strip_prefix("http://").and_then(HostPort::parse).ok_or_else(wrong)?;
    match namespace.is_empty() {
        true => Err(wrong()),
        false => Ok(ResourceProvider { namespace: namespace.to_lowercase(), target }),
    }
}

/// The providers that are forwarded to.
#[derive(Clone)]
pub(crate) struct Providers {
    all: Arc<Vec<ResourceProvider>>,
    dialer: Dialer,
    timeout: Duration,
    scope: aro_runtime::Scope,
}

impl Providers {
    pub(crate) fn new(
        all: Vec<ResourceProvider>,
        resolve: Arc<dyn Resolve>,
        timeout: Duration,
        scope: aro_runtime::Scope,
    ) -> Self {
        Self { all: Arc::new(all), dialer: Dialer::new(resolve, Duration::from_secs(5)), timeout, scope }
    }

    /// The provider whose namespace a path names last.
    pub(crate) fn find(&self, path: &str) -> Option<ResourceProvider> {
        let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let at = segments.iter().rposition(|part| part.eq_ignore_ascii_case("providers"))?;
        // The namespace itself (registration, types) belongs to ARM.
        segments.get(at + 2)?;
        let namespace = segments.get(at + 1)?.to_lowercase();
        let reserved = segments.get(at + 2).is_some_and(|word| {
            word.eq_ignore_ascii_case("register") || word.eq_ignore_ascii_case("unregister")
        });
        self.all.iter().find(|provider| provider.namespace == namespace && !reserved).cloned()
    }

    /// Forwards a request; a provider that does not answer is a 502 or 504, as ARM reports it.
    pub(crate) async fn forward(&self, provider: ResourceProvider, request: Request<Body>) -> Response {
        match tokio::time::timeout(self.timeout, self.send(&provider, request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                tracing::warn!(namespace = provider.namespace, error = %error, "resource provider did not answer");
                failed(StatusCode::BAD_GATEWAY, "BadGateway", "The resource provider did not answer.")
            }
            Err(_) => failed(
                StatusCode::GATEWAY_TIMEOUT,
                "GatewayTimeout",
                "The gateway did not receive a response from the resource provider within the specified time period.",
            ),
        }
    }

    /// Deletes a resource as ARM itself does when its group goes; returns whether it is gone.
    pub(crate) async fn delete(&self, resource_id: &str, api_version: &str) -> Result<bool, String> {
        match self.call(Method::DELETE, resource_id, api_version).await? {
            StatusCode::OK | StatusCode::NO_CONTENT | StatusCode::NOT_FOUND => Ok(true),
            StatusCode::ACCEPTED => Ok(false),
            status => {
                Err(format!("the resource provider answered a deletion with status {}", status.as_u16()))
            }
        }
    }

    /// Whether the provider of a resource does not know it any more.
    pub(crate) async fn is_gone(&self, resource_id: &str, api_version: &str) -> Result<bool, String> {
        match self.call(Method::GET, resource_id, api_version).await? {
            StatusCode::NOT_FOUND => Ok(true),
            status if status.is_success() => Ok(false),
            status => Err(format!("the resource provider answered with status {}", status.as_u16())),
        }
    }

    async fn call(&self, method: Method, resource_id: &str, version: &str) -> Result<StatusCode, String> {
        let provider = self.find(resource_id).ok_or("no resource provider serves the resource")?;
        let request = Request::builder()
            .method(method)
            .uri(format!("{resource_id}?api-version={version}"))
            .header("referer", format!("https://management.azure.com{resource_id}?api-version={version}"))
            .header("x-ms-correlation-request-id", uuid::Uuid::new_v4().to_string())
            .body(Body::empty())
            .map_err(|error| error.to_string())?;
        let answered = tokio::time::timeout(self.timeout, self.send(&provider, request)).await;
        Ok(answered.map_err(|_| "the resource provider did not answer in time")??.status())
    }

    /// Notifies every provider of the subscriptions, as ARM does when one is registered; repeats until it is accepted.
    pub(crate) fn announce(&self, subscriptions: Vec<SubscriptionFacts>, scope: &aro_runtime::Scope) {
        for provider in self.all.iter() {
            let (providers, provider, subscriptions) =
                (self.clone(), provider.clone(), subscriptions.clone());
            scope.spawn(aro_runtime::TaskKind::Helper, "announce-subscriptions", async move {
                for subscription in &subscriptions {
                    let mut attempts = ANNOUNCE.attempts();
                    while !providers.register(&provider, subscription).await {
                        attempts.wait().await;
                    }
                }
                Ok::<_, aro_runtime::Fault>(())
            });
        }
    }

    async fn register(&self, provider: &ResourceProvider, subscription: &SubscriptionFacts) -> bool {
        let body = json!({
            "state": "Registered", "registrationDate": "2026-01-01T00:00:00Z",
            "properties": {"tenantId": subscription.tenant},
        });
        let request = Request::put(format!("/subscriptions/{}?api-version=2.0", subscription.id))
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()));
        let Ok(request) = request else { return true };
        let answered = tokio::time::timeout(self.timeout, self.send(provider, request)).await;
        matches!(answered, Ok(Ok(response)) if response.status().is_success())
    }

    async fn send(
        &self,
        provider: &ResourceProvider,
        mut request: Request<Body>,
    ) -> Result<Response, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let stream = self.dialer.dial(&provider.target, None).await.map_err(|error| text(&error))?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| text(&error))?;
        self.scope.spawn(aro_runtime::TaskKind::Connection, "forward", async move {
            // The end of the connection is seen by the request that uses it.
            let _ = connection.await;
            Ok::<_, aro_runtime::Fault>(())
        });
        let path = request.uri().path_and_query().map_or("/", |all| all.as_str()).to_owned();
        *request.uri_mut() = path.parse::<Uri>().map_err(|error| text(&error))?;
        *request.version_mut() = http::Version::HTTP_11;
        let host = HeaderValue::from_str(&provider.target.to_string()).map_err(|error| text(&error))?;
        request.headers_mut().insert(http::header::HOST, host);
        let response = sender.send_request(request).await.map_err(|error| text(&error))?;
        Ok(response.map(Body::new))
    }
}

fn failed(status: StatusCode, code: &str, message: &str) -> Response {
    let mut response =
        Response::new(Body::from(json!({"error": {"code": code, "message": message}}).to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_a_namespace_and_an_address() {
        let provider = parse("Microsoft.RedHatOpenShift=http://127.0.0.1:8443").unwrap();
        assert_eq!((provider.namespace.as_str(), provider.target.port), ("microsoft.redhatopenshift", 8443));
        for wrong in ["", "A", "=http://a:1", "A=https://a:1", "A=http://a"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
