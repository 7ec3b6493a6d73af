//! A request, taken apart.

use aro_web::{BodyError, BodyLimits, HeldBody};
use axum::body::Body;
use http::header::{AUTHORIZATION, HOST};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use percent_encoding::percent_decode_str;

/// Names the vault or account of a request that reached the router by another host: put it into the request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountName(pub String);

/// The head of a request.
pub(crate) struct Head {
    pub method: Method,
    /// The path as received.
    pub raw_path: String,
    /// The decoded path, without its first slash.
    pub path: String,
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    /// The host that the client used.
    pub host: String,
    /// The vault or account.
    pub account: String,
}

impl Head {
    /// `None`: the path is not UTF-8, or no host names an account.
    pub(crate) fn of(parts: Parts) -> Option<Self> {
        let raw_path = parts.uri.path().to_owned();
        let path = percent_decode_str(raw_path.trim_start_matches('/')).decode_utf8().ok()?.into_owned();
        let query = parts.uri.query().unwrap_or_default();
        let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let named = parts.headers.get(HOST).and_then(|value| value.to_str().ok());
        let host = named
            .or_else(|| parts.uri.authority().map(http::uri::Authority::as_str))
            .filter(|host| is_host(host))?;
        let account = match parts.extensions.get::<AccountName>() {
            Some(AccountName(name)) => name.clone(),
            None => host.split('.').next()?.to_owned(),
        };
        Some(Self {
            method: parts.method,
            raw_path,
            path,
            query,
            host: host.to_owned(),
            headers: parts.headers,
            account: account.to_ascii_lowercase(),
        })
    }

    /// A query parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The token of bearer authentication.
    pub(crate) fn bearer(&self) -> Option<&str> {
        let (scheme, token) = self.headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
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
