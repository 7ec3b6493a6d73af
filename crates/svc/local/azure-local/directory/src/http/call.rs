//! A request, taken apart.

use std::ops::Deref;

use aro_web::{BodyError, BodyLimits, HeldBody, RequestHead};
use axum::body::Body;
use http::StatusCode;
use http::request::Parts;

/// The head of a request.
pub(crate) struct Head {
    request: RequestHead,
    /// Decoded segments; empty ones are left out, because clients double slashes.
    pub path: Vec<String>,
    /// The host that the client used.
    pub host: String,
}

impl Head {
    /// `None`: the path is not UTF-8.
    pub(crate) fn of(parts: Parts, default_host: &str) -> Option<Self> {
        let request = RequestHead::new(parts);
        let host = request.host.clone().unwrap_or_else(|| default_host.to_owned());
        Some(Self { path: request.segments()?, host, request })
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
