//! Making answers.

use std::io::Write as _;

use aro_kube_apimachinery::status::Status;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, VARY, WARNING};
use http::{HeaderValue, Response, StatusCode};
use serde_json::Value;

use super::body::Body;

pub type Answer = Response<Body>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PRIVATE: HeaderValue = HeaderValue::from_static("no-cache, private");

/// Bytes that are JSON already.
pub fn json_bytes(code: u16, bytes: Bytes) -> Answer {
    let mut answer = Response::new(Body::Full(bytes));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(CACHE_CONTROL, PRIVATE);
    answer.headers_mut().insert(CONTENT_TYPE, JSON);
    answer
}

pub fn json(code: u16, value: &Value) -> Answer {
    // A JSON value always renders.
    json_bytes(code, serde_json::to_vec(value).unwrap_or_default().into())
}

pub fn text(code: u16, content_type: &'static str, text: impl Into<Bytes>) -> Answer {
    let mut answer = json_bytes(code, text.into());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

pub fn status(status: &Status) -> Answer {
    let mut answer = json(status.code, &status.to_value());
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if seconds > 0 {
        answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    answer
}

/// Adds `Warning: 299 - "…"` for each text.
pub fn warn(answer: &mut Answer, warnings: &[String]) {
    for warning in warnings {
        let clean: String = warning.chars().filter(|c| !c.is_control()).collect();
        let text = format!("299 - {}", aro_kube_apimachinery::status::go_quote(&clean));
        if let Ok(value) = HeaderValue::from_str(&text) {
            answer.headers_mut().append(WARNING, value);
        }
    }
}

/// Answers shorter than this are sent as they are, as upstream does.
const WORTH_COMPRESSING: usize = 128 * 1024;

/// Compresses a long answer for clients that can read it.
pub fn compress(answer: Answer, accept_encoding: Option<&str>) -> Answer {
    let wanted = accept_encoding.unwrap_or_default().split(',');
    let mut wanted = wanted.map(|part| part.split(';').next().unwrap_or_default().trim());
    if !wanted.any(|encoding| encoding == "gzip") {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    let body = match body {
        Body::Full(bytes) if bytes.len() >= WORTH_COMPRESSING => {
            let mut encoder = flate2::write::GzEncoder::new(
                Vec::with_capacity(bytes.len() / 8),
                flate2::Compression::new(1),
            );
            match encoder.write_all(&bytes).and_then(|()| encoder.finish()) {
                Ok(small) => {
                    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                    parts.headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
                    Body::Full(small.into())
                }
                // Writing to memory does not fail; if it does, the plain answer is right, too.
                Err(_) => Body::Full(bytes),
            }
        }
        other => other,
    };
    Response::from_parts(parts, body)
}
