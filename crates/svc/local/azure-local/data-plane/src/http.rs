//! A request, taken apart.

use std::ops::Deref;

use aro_web::{BodyError, BodyLimits, HeldBody, RequestHead};
use axum::body::Body;
use http::StatusCode;
use http::request::Parts;

/// Names the vault or account of a request that reached the router by another host: put it into the request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountName(pub String);

/// The head of a request.
pub(crate) struct Head {
    request: RequestHead,
    /// The decoded path, without its first slash.
    pub path: String,
    /// The host that the client used.
    pub host: String,
    /// The vault or account.
    pub account: String,
}

impl Head {
    /// `None`: the path is not UTF-8, or no host names an account.
    pub(crate) fn of(parts: Parts) -> Option<Self> {
        let named = parts.extensions.get::<AccountName>().cloned();
        let request = RequestHead::new(parts);
        let host = request.host.clone()?;
        let account = match named {
            Some(AccountName(name)) => name,
            None => host.split('.').next()?.to_owned(),
        };
        Some(Self { path: request.path()?, host, account: account.to_ascii_lowercase(), request })
    }
}

impl Deref for Head {
    type Target = RequestHead;

    fn deref(&self) -> &RequestHead {
        &self.request
    }
}

/// Reads a body; the error is the status to answer with.
pub(crate) async fn read_body(limits: &BodyLimits, body: Body) -> Result<HeldBody, StatusCode> {
    limits.read(body).await.map_err(BodyError::status)
}
