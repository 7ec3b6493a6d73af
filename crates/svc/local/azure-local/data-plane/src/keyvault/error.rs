//! What Key Vault refuses with.

use aro_base::chain;
use aro_store::CollectionError;
use http::StatusCode;
use serde_json::{Value, json};

use super::documents::Kind;

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VaultError {
    pub status: StatusCode,
    code: &'static str,
    message: String,
    inner: Option<&'static str>,
}

fn error(status: StatusCode, code: &'static str, message: String) -> VaultError {
    VaultError { status, code, message, inner: None }
}

/// Text of a caller in a message.
fn quoted(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

impl VaultError {
    pub(super) fn json(&self) -> Value {
        let mut body = json!({"error": {"code": self.code, "message": self.message}});
        if let Some(inner) = self.inner {
            body["error"]["innererror"] = json!({"code": inner});
        }
        body
    }

    pub(super) fn bad(message: &str) -> Self {
        error(StatusCode::BAD_REQUEST, "BadParameter", message.to_owned())
    }

    pub(super) fn property(name: &str) -> Self {
        Self::bad(&format!("Property {name} has invalid value"))
    }

    pub(super) fn unread_body(status: StatusCode) -> Self {
        error(status, "BadParameter", "The request body cannot be read.".to_owned())
    }

    pub(super) fn no_route() -> Self {
        error(StatusCode::NOT_FOUND, "NotFound", "The requested operation does not exist.".to_owned())
    }

    pub(super) fn vault_not_found(name: &str) -> Self {
        let message = format!("The vault '{}' was not found.", quoted(name));
        error(StatusCode::NOT_FOUND, "VaultNotFound", message)
    }

    pub(super) fn not_found(kind: Kind, name: &str) -> Self {
        let (code, noun) = match kind {
            Kind::Secret => ("SecretNotFound", "secret"),
            Kind::Key => ("KeyNotFound", "key"),
            Kind::Certificate => ("CertificateNotFound", "certificate"),
        };
        let message = format!(
            "A {noun} with (name/id) {} was not found in this key vault. If you recently deleted this {noun} you may be able to recover it using the correct recovery command. For help resolving this issue, please see https://go.microsoft.com/fwlink/?linkid=2125182",
            quoted(name)
        );
        error(StatusCode::NOT_FOUND, code, message)
    }

    pub(super) fn pending_not_found(name: &str) -> Self {
        let message = format!("Pending certificate not found: {}", quoted(name));
        error(StatusCode::NOT_FOUND, "PendingCertificateNotFound", message)
    }

    pub(super) fn deleted(kind: Kind, name: &str) -> Self {
        let noun = kind.noun();
        let message = format!(
            "{noun} {} is currently in a deleted but recoverable state, and its name cannot be reused; in this state, the {noun} can only be recovered or purged.",
            quoted(name)
        );
        let conflict = error(StatusCode::CONFLICT, "Conflict", message);
        Self { inner: Some("ObjectIsDeletedButRecoverable"), ..conflict }
    }

    pub(super) fn exists(kind: Kind, name: &str) -> Self {
        let message = format!("A {} with the name {} already exists.", kind.noun(), quoted(name));
        Self { inner: Some("ObjectAlreadyExists"), ..error(StatusCode::CONFLICT, "Conflict", message) }
    }

    pub(super) fn contended() -> Self {
        error(
            StatusCode::CONFLICT,
            "Conflict",
            "The object was changed by another request. Try again.".to_owned(),
        )
    }

    pub(super) fn forbidden(inner: &'static str, message: &str) -> Self {
        Self { inner: Some(inner), ..error(StatusCode::FORBIDDEN, "Forbidden", message.to_owned()) }
    }

    pub(super) fn managed(kind: Kind) -> Self {
        let message =
            format!("The {} is managed by a certificate and cannot be changed by itself.", kind.noun());
        Self::forbidden("ObjectIsManaged", &message)
    }

    pub(super) fn unavailable() -> Self {
        error(
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailable",
            "The service is unavailable. Try again later.".to_owned(),
        )
    }

    pub(super) fn internal(what: &'static str) -> Self {
        tracing::error!(what, "key vault request failed");
        Self::unavailable()
    }
}

impl From<CollectionError> for VaultError {
    fn from(error: CollectionError) -> Self {
        tracing::error!(error = %chain(&error), "key vault documents cannot be accessed");
        Self::unavailable()
    }
}
