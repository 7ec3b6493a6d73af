//! Where a change came from.

use aro_ocm::Time;
use serde::{Deserialize, Serialize};

/// The request that caused a change, as its headers named it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceContext {
    /// ARM's correlation id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The client's own id of its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
    /// The caller's id of this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// W3C `traceparent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The id of the operation in this service's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
}

/// A deletion that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletionRequest {
    /// When it was accepted first.
    pub requested: Time,
    /// What asked for it.
    #[serde(default)]
    pub trace: TraceContext,
}
