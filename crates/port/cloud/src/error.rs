//! What went wrong with a call, and what its caller may do about it.

mod body;

use std::time::Duration;

use aro_base::{Class, Classify};
use http::{Method, StatusCode};

pub use body::ServiceError;

use crate::credential::CredentialError;
use crate::transport::TransportError;

/// A role assignment takes minutes to reach every replica of Resource Manager.
const ROLE_WAIT: Duration = Duration::from_secs(30);
/// A resource that is in use, or busy with another operation.
const BUSY_WAIT: Duration = Duration::from_secs(15);

/// A call that failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct CloudError(Box<Call>);

#[derive(Debug, thiserror::Error)]
#[error("{method} {target} (correlation id {correlation_id})")]
struct Call {
    method: Method,
    target: String,
    correlation_id: String,
    #[source]
    failure: Failure,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The service refused it.
    #[error(transparent)]
    Refused(ServiceError),
    /// The service accepted it, and the operation then failed or was canceled.
    #[error("the operation ended as {state}: {error}")]
    Operation {
        /// `Failed` or `Canceled`.
        state: String,
        /// The operation's error.
        error: ServiceError,
    },
    /// No reply.
    #[error("no reply")]
    Transport(#[source] TransportError),
    /// No token.
    #[error("no token")]
    Credential(#[source] CredentialError),
    /// The reply is not what the protocol requires.
    #[error("the reply cannot be used: {0}")]
    Protocol(&'static str),
    /// The call took too long. What it started goes on in the cloud.
    #[error("not finished within {0:?}")]
    Deadline(Duration),
    /// The subscription's request quota is used up.
    #[error("throttled for {0:?}")]
    Throttled(Duration),
    /// The resource changed since it was read.
    #[error("another writer changed the resource")]
    Changed,
    /// The resource exists, with another value where a value cannot be changed.
    #[error("it exists with another {0}")]
    Mismatch(&'static str),
}

impl CloudError {
    pub(crate) fn new(
        method: &Method,
        target: impl Into<String>,
        correlation_id: impl Into<String>,
        failure: Failure,
    ) -> Self {
        Self(Box::new(Call {
            method: method.clone(),
            target: target.into(),
            correlation_id: correlation_id.into(),
            failure,
        }))
    }

    /// The method of the request.
    pub fn method(&self) -> &Method {
        &self.0.method
    }

    /// The id of the resource; for a data plane, the service and the object's name.
    pub fn target(&self) -> &str {
        &self.0.target
    }

    /// The id under which the cloud logged the call.
    pub fn correlation_id(&self) -> &str {
        &self.0.correlation_id
    }

    /// Why.
    pub fn failure(&self) -> &Failure {
        &self.0.failure
    }

    /// The service's error, if it is one.
    pub fn service_error(&self) -> Option<&ServiceError> {
        match &self.0.failure {
            Failure::Refused(error) | Failure::Operation { error, .. } => Some(error),
            _ => None,
        }
    }

    /// The HTTP status, if the service refused the request.
    pub fn status(&self) -> Option<StatusCode> {
        match &self.0.failure {
            Failure::Refused(error) => Some(error.status),
            _ => None,
        }
    }

    /// The error code of the service, if it sent one.
    pub fn code(&self) -> Option<&str> {
        self.service_error().map(|error| error.code.as_str())
    }

    /// Whether the resource does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(StatusCode::NOT_FOUND)
    }

    /// Whether a role is missing, or has not been propagated yet.
    pub fn is_forbidden(&self) -> bool {
        self.service_error().is_some_and(ServiceError::is_missing_role)
    }

    /// Whether the resource changed since it was read.
    pub fn is_changed(&self) -> bool {
        matches!(self.0.failure, Failure::Changed) || self.status() == Some(StatusCode::PRECONDITION_FAILED)
    }

    /// For a caller that knows that the role was just assigned.
    pub(crate) fn waits_for_role(self) -> Self {
        match self.0.failure {
            Failure::Refused(mut error) => {
                error.retry_after = error.retry_after.or(Some(ROLE_WAIT));
                Self(Box::new(Call { failure: Failure::Refused(error), ..*self.0 }))
            }
            failure => Self(Box::new(Call { failure, ..*self.0 })),
        }
    }
}

impl Classify for CloudError {
    fn class(&self) -> Class {
        match &self.0.failure {
            Failure::Refused(error) => refused_class(error),
            Failure::Operation { state, error } => operation_class(state, error),
            Failure::Transport(error) if error.is_transient() => Class::Retry,
            Failure::Transport(_) | Failure::Mismatch(_) => Class::Terminal,
            Failure::Credential(error) => error.class(),
            Failure::Protocol(_) | Failure::Deadline(_) | Failure::Changed => Class::Retry,
            Failure::Throttled(wait) => Class::Wait(*wait),
        }
    }
}

fn refused_class(error: &ServiceError) -> Class {
    if let Some(wait) = error.retry_after {
        return Class::Wait(wait);
    }
    if error.is_busy() {
        return Class::Wait(BUSY_WAIT);
    }
    match error.status {
        StatusCode::REQUEST_TIMEOUT
        | StatusCode::TOO_MANY_REQUESTS
        | StatusCode::PRECONDITION_FAILED
        // A credential that was rotated is read again.
        | StatusCode::UNAUTHORIZED => Class::Retry,
        status if status.is_server_error() => Class::Retry,
        _ => Class::Terminal,
    }
}

fn operation_class(state: &str, error: &ServiceError) -> Class {
    // A newer operation on the same resource cancels this one.
    let preempted = state.eq_ignore_ascii_case("canceled");
    match preempted || error.is_internal() || error.is_busy() {
        true => Class::Retry,
        false => Class::Terminal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> CloudError {
        let error = ServiceError::parse(StatusCode::from_u16(status).unwrap(), body.as_bytes());
        CloudError::new(&Method::PUT, "/subscriptions/s", "c", Failure::Refused(error))
    }

    #[test]
    fn a_missing_role_is_terminal_unless_the_caller_waits_for_it() {
        let body =
            r#"{"error":{"code":"AuthorizationFailed","message":"The client does not have authorization"}}"#;
        let error = refused(403, body);
        assert!(error.is_forbidden());
        assert_eq!(error.class(), Class::Terminal);
        assert_eq!(error.waits_for_role().class(), Class::Wait(ROLE_WAIT));
    }

    #[test]
    fn classes_follow_status_and_code() {
        for (status, code, class) in [
            (400, "InvalidParameter", Class::Terminal),
            (400, "InUseSubnetCannotBeDeleted", Class::Wait(BUSY_WAIT)),
            (400, "PrincipalNotFound", Class::Wait(BUSY_WAIT)),
            (404, "ResourceGroupNotFound", Class::Terminal),
            (409, "AnotherOperationInProgress", Class::Wait(BUSY_WAIT)),
            (409, "Conflict", Class::Terminal),
            (412, "PreconditionFailed", Class::Retry),
            (429, "TooManyRequests", Class::Retry),
            (500, "InternalServerError", Class::Retry),
        ] {
            let body = format!(r#"{{"error":{{"code":"{code}","message":"m"}}}}"#);
            assert_eq!(refused(status, &body).class(), class, "{status} {code}");
        }
    }

    #[test]
    fn the_text_names_method_resource_and_correlation_id_but_not_the_source() {
        let error = refused(409, r#"{"error":{"code":"Conflict","message":"busy"}}"#);
        assert_eq!(error.to_string(), "PUT /subscriptions/s (correlation id c)");
        assert_eq!(
            aro_base::chain(&error).to_string(),
            "PUT /subscriptions/s (correlation id c): 409 Conflict: busy"
        );
    }
}
