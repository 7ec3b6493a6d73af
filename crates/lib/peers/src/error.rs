//! Why a call to a peer failed, by what the caller can do about it.

use aro_base::{Class, Classify};
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use crate::transport::TransportError;

/// The longest text of a peer that is repeated to customers and in logs.
const MAX_REASON: usize = 4096;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// There is no reply. What was asked for may have happened.
    #[error("{peer} did not reply")]
    Unreachable {
        /// Which peer.
        peer: &'static str,
        /// The cause.
        #[source]
        source: TransportError,
    },
    /// The peer, or what stands before it, cannot serve now. What was asked for may have happened.
    #[error("{peer} is not available: {status}: {reason}")]
    Unavailable {
        /// Which peer.
        peer: &'static str,
        /// The status.
        status: StatusCode,
        /// The peer's reason.
        reason: String,
    },
    /// There is no such object.
    #[error("{peer} has no such object: {}", .refusal.reason)]
    NotFound {
        /// Which peer.
        peer: &'static str,
        /// What the peer states.
        refusal: Refusal,
    },
    /// The object exists, or what it needs belongs to another one.
    #[error("{peer} reports a conflict: {}", .refusal.reason)]
    Conflict {
        /// Which peer.
        peer: &'static str,
        /// What the peer states.
        refusal: Refusal,
    },
    /// The position is not valid any longer.
    #[error("{peer} no longer knows the cursor: {}", .refusal.reason)]
    Gone {
        /// Which peer.
        peer: &'static str,
        /// What the peer states.
        refusal: Refusal,
    },
    /// The peer refuses what was asked for.
    #[error("{peer} refuses: {}", .refusal.reason)]
    Refused {
        /// Which peer.
        peer: &'static str,
        /// What the peer states.
        refusal: Refusal,
    },
    /// The reply is not what the peer's API promises.
    #[error("the reply of {peer} cannot be read")]
    Unreadable {
        /// Which peer.
        peer: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What a peer states about a request it does not carry out.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// The text for the customer.
    pub reason: String,
    /// `code`, `field` and `reason` of each problem, where the peer names them.
    pub details: Vec<RefusalDetail>,
}

/// One problem of a refused request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RefusalDetail {
    /// A stable code.
    #[serde(default)]
    pub code: String,
    /// The member of the request, in the peer's names.
    #[serde(default)]
    pub field: String,
    /// The text for the customer.
    #[serde(default)]
    pub reason: String,
}

impl CallError {
    /// The error of a reply whose status is not a success.
    pub(crate) fn of_reply(peer: &'static str, status: StatusCode, body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Body {
            reason: Option<String>,
            #[serde(default)]
            details: Value,
        }
        let parsed: Option<Body> = serde_json::from_slice(body).ok();
        // A proxy before the peer answers in plain text.
        let fallback =
            || String::from_utf8_lossy(body.get(..body.len().min(MAX_REASON)).unwrap_or(body)).into_owned();
        let reason = parsed.as_ref().and_then(|body| body.reason.clone()).unwrap_or_else(fallback);
        let reason = clipped(reason);
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Self::Unavailable { peer, status, reason };
        }
        let details = parsed.map(|body| details(&body.details)).unwrap_or_default();
        let refusal = Refusal { status, reason, details };
        match status {
            StatusCode::NOT_FOUND => Self::NotFound { peer, refusal },
            StatusCode::CONFLICT => Self::Conflict { peer, refusal },
            StatusCode::GONE => Self::Gone { peer, refusal },
            _ => Self::Refused { peer, refusal },
        }
    }

    /// What the peer states, if it answered and did not take the request.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::NotFound { refusal, .. }
            | Self::Conflict { refusal, .. }
            | Self::Gone { refusal, .. }
            | Self::Refused { refusal, .. } => Some(refusal),
            Self::Unreachable { .. } | Self::Unavailable { .. } | Self::Unreadable { .. } => None,
        }
    }
}

impl Classify for CallError {
    fn class(&self) -> Class {
        match self {
            Self::Unreachable { .. } | Self::Unavailable { .. } | Self::Unreadable { .. } => Class::Retry,
            Self::NotFound { .. } | Self::Conflict { .. } | Self::Gone { .. } | Self::Refused { .. } => {
                Class::Terminal
            }
        }
    }
}

/// `details` is free-form: a list of problems, or an object around one.
fn details(value: &Value) -> Vec<RefusalDetail> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let detail = |item: &Value| RefusalDetail::deserialize(item).ok();
    items.iter().filter_map(detail).filter(|detail| !detail.reason.is_empty()).collect()
}

fn clipped(mut text: String) -> String {
    if text.len() > MAX_REASON {
        let end = (0..=MAX_REASON).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: &str) -> CallError {
        CallError::of_reply("Clusters Service", StatusCode::from_u16(status).unwrap(), body.as_bytes())
    }

    #[test]
    fn the_status_decides_what_a_caller_can_do() {
        let body = r#"{"kind":"Error","id":"400","reason":"no","details":[{"code":"x","field":"azure.a","reason":"b"}]}"#;
        for (status, class) in [
            (400, Class::Terminal),
            (404, Class::Terminal),
            (409, Class::Terminal),
            (410, Class::Terminal),
            (429, Class::Retry),
            (500, Class::Retry),
            (503, Class::Retry),
        ] {
            assert_eq!(of(status, body).class(), class, "{status}");
        }
        let refused = of(400, body);
        let refusal = refused.refusal().unwrap();
        assert_eq!((refusal.reason.as_str(), refusal.details.len()), ("no", 1));
        assert_eq!(refused.to_string(), "Clusters Service refuses: no");
    }

    #[test]
    fn a_reply_of_a_proxy_keeps_its_text() {
        assert_eq!(
            of(503, "no healthy upstream").to_string(),
            "Clusters Service is not available: 503 Service Unavailable: no healthy upstream"
        );
    }

    #[test]
    fn a_long_text_is_clipped_at_a_character() {
        let long = "é".repeat(MAX_REASON);
        let body = serde_json::json!({ "reason": long }).to_string();
        let reason = of(400, &body).refusal().unwrap().reason.clone();
        assert_eq!(reason.len(), MAX_REASON);
    }
}
