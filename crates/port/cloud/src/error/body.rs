//! Error bodies: those of Resource Manager and Key Vault, of the token endpoint, of CheckAccess, of storage.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

/// Longer messages are cut: they end in logs and conditions.
const MAX_MESSAGE: usize = 2048;
const MAX_CODE: usize = 128;
const MAX_DETAILS: usize = 16;

/// What a service reports about a request or an operation that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {code}: {message}", status.as_u16())]
pub struct ServiceError {
    /// The HTTP status of the reply.
    pub status: StatusCode,
    /// The error code; the status' own text if the body has none.
    pub code: String,
    /// The message, cut to a bounded length.
    pub message: String,
    /// The codes of nested errors, outermost first.
    pub details: Vec<String>,
    /// When the service wants to be asked again.
    pub retry_after: Option<Duration>,
}

impl ServiceError {
    /// Reads an error body. A body of another kind gives the status' own text.
    pub fn parse(status: StatusCode, body: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        Self::of_value(status, &value)
    }

    /// Reads a body, or the `error` of an operation's status.
    pub(crate) fn of_value(status: StatusCode, value: &Value) -> Self {
        let mut error = Self::of_status(status);
        let (code, message, details) = match value.get("error") {
            Some(Value::String(code)) => (Some(code.as_str()), text(value, "error_description"), None),
            Some(inner) => (text(inner, "code"), text(inner, "message"), Some(inner)),
            None => (text(value, "code"), text(value, "message"), Some(value)),
        };
        if let Some(code) = code {
            error.code = cut(code, MAX_CODE);
        }
        if let Some(message) = message {
            error.message = cut(message, MAX_MESSAGE);
        }
        if let Some(details) = details {
            error.details = detail_codes(details);
        }
        error
    }

    /// Storage sends XML; its code is also in a header.
    pub(crate) fn of_code(status: StatusCode, code: Option<&str>) -> Self {
        let mut error = Self::of_status(status);
        if let Some(code) = code {
            error.code = cut(code, MAX_CODE);
        }
        error
    }

    fn of_status(status: StatusCode) -> Self {
        let code = status.canonical_reason().unwrap_or("Unknown").replace(' ', "");
        Self { status, code, message: String::new(), details: Vec::new(), retry_after: None }
    }

    fn has_code(&self, wanted: impl Fn(&str) -> bool) -> bool {
        wanted(&self.code) || self.details.iter().any(|code| wanted(code))
    }

    /// A role is missing or not propagated yet, also inside a deployment.
    pub fn is_missing_role(&self) -> bool {
        let missing = |code: &str| matches!(code, "AuthorizationFailed" | "LinkedAuthorizationFailed");
        let about_access = matches!(self.status, StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST);
        about_access && self.has_code(missing)
    }

    /// Something else has to end first: another operation, another resource, the propagation of a new principal.
    pub fn is_busy(&self) -> bool {
        self.has_code(|code| {
            code.starts_with("InUse")
                || code.starts_with("Retryable")
                || code.starts_with("ConcurrentFederatedIdentityCredentials")
                || matches!(
                    code,
                    "AnotherOperationInProgress"
                        | "OperationPreempted"
                        | "PrincipalNotFound"
                        | "ReferencedResourceNotProvisioned"
                        | "ResourceGroupBeingDeleted"
                        | "StorageAccountOperationInProgress"
                )
        })
    }

    /// The cloud's own fault.
    pub fn is_internal(&self) -> bool {
        self.status.is_server_error()
            || self.has_code(|code| {
                matches!(
                    code,
                    "InternalServerError" | "InternalError" | "ServerTimeout" | "ServiceUnavailable"
                )
            })
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// The codes below an error, breadth first, so that depth needs no recursion.
fn detail_codes(error: &Value) -> Vec<String> {
    let mut codes = Vec::new();
    let mut queue = std::collections::VecDeque::from([error]);
    while let Some(error) = queue.pop_front() {
        let nested = error.get("details").and_then(Value::as_array).into_iter().flatten();
        for detail in nested.take(MAX_DETAILS) {
            if codes.len() == MAX_DETAILS {
                return codes;
            }
            codes.extend(text(detail, "code").map(|code| cut(code, MAX_CODE)));
            queue.push_back(detail);
        }
    }
    codes
}

/// On one line, and no longer than this many bytes.
fn cut(text: &str, max: usize) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut kept = String::new();
    for c in clean {
        if kept.len() + c.len_utf8() > max {
            break;
        }
        kept.push(c);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(status: u16, body: &str) -> ServiceError {
        ServiceError::parse(StatusCode::from_u16(status).unwrap(), body.as_bytes())
    }

    #[test]
    fn bodies_of_every_service_are_read() {
        let arm = r#"{"error":{"code":"ResourceNotFound","message":"The Resource 'Microsoft.Network/virtualNetworks/v' under resource group 'g' was not found."}}"#;
        let entra = r#"{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 1","error_codes":[7000215]}"#;
        let check_access = r#"{"statusCode":403,"message":"not allowed"}"#;
        assert_eq!(parse(404, arm).code, "ResourceNotFound");
        assert_eq!(parse(401, entra).code, "invalid_client");
        assert!(parse(401, entra).message.starts_with("AADSTS7000215"));
        assert!(!parse(401, entra).message.contains('\n'));
        assert_eq!(parse(403, check_access).message, "not allowed");
        assert_eq!(parse(403, check_access).code, "Forbidden");
        assert_eq!(parse(502, "<html>").code, "BadGateway");
        assert_eq!(parse(500, "").message, "");
    }

    #[test]
    fn a_role_that_is_missing_inside_a_deployment_is_found() {
        let body = r#"{"error":{"code":"DeploymentFailed","message":"m","details":[{"code":"Conflict","details":[{"code":"LinkedAuthorizationFailed","message":"m"}]}]}}"#;
        let error = parse(400, body);
        assert_eq!(error.details, ["Conflict", "LinkedAuthorizationFailed"]);
        assert!(error.is_missing_role());
    }

    #[test]
    fn sizes_are_bounded() {
        let details = vec![r#"{"code":"X"}"#; 1000].join(",");
        let body = format!(
            r#"{{"error":{{"code":"{}","message":"{}","details":[{details}]}}}}"#,
            "c".repeat(9999),
            "ä".repeat(9999)
        );
        let error = parse(400, &body);
        assert!(error.message.len() <= MAX_MESSAGE && error.code.len() <= MAX_CODE);
        assert_eq!(error.details.len(), MAX_DETAILS);
    }
}
