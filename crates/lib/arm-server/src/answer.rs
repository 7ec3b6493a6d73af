//! An answer under construction.

use aro_arm::{ArmError, json};
use aro_base::ETag;
use axum::body::Body;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;

/// Status, headers, body. The pipeline adds what every answer has.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Option<Bytes>,
    /// The code of an error answer, for logs and metrics.
    pub error_code: Option<&'static str>,
}

impl Answer {
    /// No body at all.
    pub fn empty(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: None, error_code: None }
    }

    /// A JSON body in the provider's form.
    pub fn json<T: Serialize>(status: StatusCode, value: &T) -> Self {
        Self::bytes(status, json::to_body(value))
    }

    /// A body that is JSON already.
    pub fn bytes(status: StatusCode, body: impl Into<Bytes>) -> Self {
        let content_type = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { status, headers: vec![content_type], body: Some(body.into()), error_code: None }
    }

    /// Plain text.
    pub fn text(status: StatusCode, text: String) -> Self {
        let content_type = (CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        Self { status, headers: vec![content_type], body: Some(text.into()), error_code: None }
    }

    /// An ARM error.
    pub fn error(status: StatusCode, error: &ArmError) -> Self {
        let code = error.code.as_str();
        let mut answer = Self::bytes(status, error.to_body()).header("x-ms-error-code", code);
        answer.error_code = Some(code);
        answer
    }

    /// Adds the etag of the resource in the answer.
    pub fn etag(self, etag: Option<&ETag>) -> Self {
        match etag {
            Some(etag) => self.header("etag", &format!("\"{etag}\"")),
            None => self,
        }
    }

    /// Adds a header. A value that no header can carry is left out.
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((HeaderName::from_static(name), value));
        }
        self
    }

    /// Sets how long the client waits before its next request.
    pub fn retry_after(self, seconds: Option<u32>) -> Self {
        match seconds {
            Some(seconds) => self.header("retry-after", &seconds.to_string()),
            None => self,
        }
    }

    /// The size of the body.
    pub fn body_len(&self) -> usize {
        self.body.as_ref().map_or(0, Bytes::len)
    }

    /// The HTTP response.
    pub fn into_response(self) -> Response<Body> {
        let has_length = self.status != StatusCode::NO_CONTENT && self.status != StatusCode::NOT_MODIFIED;
        let length = self.body_len();
        let mut response = Response::new(self.body.map_or_else(Body::empty, Body::from));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        for (name, value) in self.headers {
            headers.append(name, value);
        }
        if has_length {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        response
    }
}
