//! Requests and responses.

use bytes::Bytes;
use http::header::{AGE, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;

use crate::documents::{Document, Documents};
use crate::metrics::{FrontdoorMetrics, Outcome};
use crate::path::is_document;

/// Whether a response came from the cache, as Azure Front Door reports it.
const X_CACHE: HeaderName = HeaderName::from_static("x-cache");

/// Answers a request. The body of the request is not read.
pub(crate) async fn answer<B>(
    request: Request<B>,
    documents: &Documents,
    metrics: &FrontdoorMetrics,
) -> Response<Full<Bytes>> {
    let method = matches!(*request.method(), Method::GET | Method::HEAD);
    if !method || request.uri().query().is_some() || !is_document(request.uri().path()) {
        metrics.count(Outcome::Blocked);
        return plain(StatusCode::FORBIDDEN);
    }
    match documents.get(request.uri().path()).await {
        Document::Found { body, age, max_age, hit } => {
            let mut response = Response::new(Full::new(body));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            let cache_control = format!("public, max-age={}", max_age.as_secs());
            if let Ok(value) = HeaderValue::from_str(&cache_control) {
                headers.insert(CACHE_CONTROL, value);
            }
            headers.insert(AGE, HeaderValue::from(age.as_secs()));
            headers.insert(X_CACHE, HeaderValue::from_static(if hit { "TCP_HIT" } else { "TCP_MISS" }));
            response
        }
        Document::Absent => plain(StatusCode::NOT_FOUND),
        Document::BadGateway => plain(StatusCode::BAD_GATEWAY),
        Document::Timeout => plain(StatusCode::GATEWAY_TIMEOUT),
    }
}

/// A response that names its status and nothing else; it must not be cached.
fn plain(status: StatusCode) -> Response<Full<Bytes>> {
    let reason = status.canonical_reason().unwrap_or_default();
    let mut response = Response::new(Full::from(format!("{reason}\n")));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
