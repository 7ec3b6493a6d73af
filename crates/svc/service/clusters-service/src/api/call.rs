//! A request as handlers see it.

use aro_ocm::wire::Shape;
use aro_ocm::{Code, Problem, Root, Time, shape};
use aro_web::{BodyLimits, RequestHead};
use axum::body::Body;
use http::StatusCode;
use http::header::IF_MATCH;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::reply::Failure;
use crate::records::TraceContext;

/// The longest id of a caller that is kept.
const MAX_ID: usize = 256;

/// What the headers say about where a request comes from.
#[derive(Debug, Clone)]
pub(super) struct Traced {
    pub(super) operation_id: String,
    pub(super) correlation_id: Option<String>,
    pub(super) client_request_id: Option<String>,
    request_id: Option<String>,
    traceparent: Option<String>,
    pub(super) caller: Option<String>,
}

impl Traced {
    pub(super) fn of(head: &RequestHead) -> Self {
        let header = |name: &str| head.header(name).and_then(usable);
        let baggage = |key: &str| head.header("baggage").and_then(|text| baggage_value(text, key));
        Self {
            operation_id: header("x-operation-id").unwrap_or_else(|| uuid::Uuid::now_v7().to_string()),
            correlation_id: baggage("aro.correlation_id"),
            client_request_id: baggage("aro.client.request_id"),
            request_id: header("x-request-id"),
            traceparent: aro_runtime::trace_context::extract(&head.headers)
                .and_then(|span| aro_runtime::trace_context::header_value(&span))
                .and_then(|value| value.to_str().ok().map(str::to_owned)),
            caller: header("user-agent"),
        }
    }

    pub(super) fn context(&self) -> TraceContext {
        TraceContext {
            correlation_id: self.correlation_id.clone(),
            client_request_id: self.client_request_id.clone(),
            request_id: self.request_id.clone(),
            traceparent: self.traceparent.clone(),
            operation_id: Some(self.operation_id.clone()),
        }
    }
}

fn usable(text: &str) -> Option<String> {
    let good =
        !text.is_empty() && text.len() <= MAX_ID && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    good.then(|| text.to_owned())
}

/// A member of W3C baggage: `key=value;properties,…`, with percent-encoded values.
fn baggage_value(text: &str, key: &str) -> Option<String> {
    text.split(',').find_map(|member| {
        let (name, value) = member.split(';').next()?.split_once('=')?;
        if name.trim() != key {
            return None;
        }
        usable(&percent_decode_str(value.trim()).decode_utf8().ok()?)
    })
}

/// A request as handlers see it.
pub(super) struct Call<'c> {
    pub(super) root: Root,
    /// The variable segments of the path, in order.
    pub(super) params: &'c [String],
    pub(super) head: &'c RequestHead,
    pub(super) body: Option<Value>,
    pub(super) trace: TraceContext,
    pub(super) now: Time,
}

impl Call<'_> {
    /// A variable segment of the path.
    pub(super) fn param(&self, index: usize) -> &str {
        self.params.get(index).map_or("", String::as_str)
    }

    /// A parameter of the query that is not empty.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        self.head.parameter(name).filter(|value| !value.is_empty())
    }

    /// Whether a parameter of the query is true.
    pub(super) fn is_set(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.query(name).is_some_and(|value| value.eq_ignore_ascii_case("true")))
    }

    /// Whether only the validation is asked for.
    pub(super) fn is_dry_run(&self) -> bool {
        self.is_set(&["dryRun", "dry_run"])
    }

    /// The body as it was sent; it fits the route's type.
    pub(super) fn raw_body(&self) -> &Value {
        self.body.as_ref().unwrap_or(&Value::Null)
    }

    /// The body as a type.
    pub(super) fn typed<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        typed(self.raw_body())
    }

    /// Fails unless the document is in the state that the client names.
    pub(super) fn check_etag(&self, etag: &aro_base::ETag) -> Result<(), Failure> {
        let Some(wanted) = self.head.headers.get(IF_MATCH).and_then(|value| value.to_str().ok()) else {
            return Ok(());
        };
        let matches =
            |one: &str| one == "*" || one.trim_start_matches("W/").trim_matches('"') == etag.as_str();
        if wanted.split(',').map(str::trim).any(matches) {
            return Ok(());
        }
        let reason = "the object changed since it was read";
        Err(Failure::new(StatusCode::PRECONDITION_FAILED, Code::PreconditionFailed, reason))
    }
}

/// JSON that fits its table, as a type.
pub(super) fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, Failure> {
    serde_json::from_value(shape::without_nulls(value)).map_err(|error| {
        Failure::bad_request(vec![Problem::new(
            Code::MalformedBody,
            "",
            format!("the body cannot be read: {error}"),
        )])
    })
}

/// Reads a body and compares it with a type's table.
pub(super) async fn read_body(limits: &BodyLimits, body: Body, expected: &Shape) -> Result<Value, Failure> {
    let held = limits.read(body).await.map_err(|error| {
        let code = match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Code::TooLarge,
            StatusCode::TOO_MANY_REQUESTS => Code::Unavailable,
            _ => Code::MalformedBody,
        };
        Failure::new(error.status(), code, error.to_string())
    })?;
    let bytes = held.bytes();
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        let reason = format!("the body is not JSON: {error}");
        Failure::bad_request(vec![Problem::new(Code::MalformedBody, "", reason)])
    })?;
    let problems = shape::problems(expected, &value);
    if problems.is_empty() { Ok(value) } else { Err(Failure::bad_request(problems)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baggage_members_are_decoded() {
        let text = "other=1, aro.correlation_id=a%20b;ttl=1,aro.client.request_id = r1";
        assert_eq!(baggage_value(text, "aro.correlation_id").as_deref(), Some("a b"));
        assert_eq!(baggage_value(text, "aro.client.request_id").as_deref(), Some("r1"));
        assert_eq!(baggage_value(text, "none"), None);
        assert_eq!(baggage_value("aro.correlation_id=%00", "aro.correlation_id"), None);
    }
}
