//! A request, taken apart.

use aro_web::{BodyError, BodyLimits, HeldBody};
use axum::body::Body;
use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use percent_encoding::percent_decode_str;

/// The head of a request.
pub(crate) struct Head {
    pub method: Method,
    /// Decoded segments; empty ones are left out, because clients double slashes.
    pub path: Vec<String>,
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    /// The host that the client used.
    pub host: String,
}

impl Head {
    /// `None`: the path is not UTF-8.
    pub(crate) fn of(parts: Parts, default_host: &str) -> Option<Self> {
        let decode = |part: &str| percent_decode_str(part).decode_utf8().ok().map(|text| text.into_owned());
        let path = parts.uri.path().split('/').filter(|part| !part.is_empty()).map(decode);
        let path = path.collect::<Option<Vec<String>>>()?;
        let query = parts.uri.query().unwrap_or_default();
        let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let named = parts.headers.get(HOST).and_then(|value| value.to_str().ok());
        let host = named.or_else(|| parts.uri.authority().map(http::uri::Authority::as_str));
        let host = host.filter(|host| is_host(host)).unwrap_or(default_host).to_owned();
        Some(Self { method: parts.method, path, query, headers: parts.headers, host })
    }

    /// A query parameter; names are compared without case, as Azure does.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The token of bearer authentication.
    pub(crate) fn bearer(&self) -> Option<&str> {
        let value = self.headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    }
}

/// Hosts become part of answers.
fn is_host(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    !text.is_empty() && text.len() <= 255 && text.chars().all(allowed)
}

/// Reads a body; the error is the status to answer with.
pub(crate) async fn read_body(limits: &BodyLimits, body: Body) -> Result<HeldBody, StatusCode> {
    limits.read(body).await.map_err(|error| match error {
        BodyError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::TimedOut => StatusCode::REQUEST_TIMEOUT,
        BodyError::OverBudget => StatusCode::TOO_MANY_REQUESTS,
        BodyError::Unreadable => StatusCode::BAD_REQUEST,
    })
}
