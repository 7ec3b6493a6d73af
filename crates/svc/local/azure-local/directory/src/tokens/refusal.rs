//! What the token endpoint refuses with, in Entra's codes.

use aro_base::Timestamp;
use http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub status: StatusCode,
    /// OAuth's word.
    pub error: &'static str,
    /// Entra's number.
    pub code: u32,
    pub message: String,
}

fn refusal(status: StatusCode, error: &'static str, code: u32, message: String) -> Refusal {
    Refusal { status, error, code, message }
}

fn invalid_request(code: u32, message: String) -> Refusal {
    refusal(StatusCode::BAD_REQUEST, "invalid_request", code, message)
}

fn invalid_client(code: u32, message: String) -> Refusal {
    refusal(StatusCode::UNAUTHORIZED, "invalid_client", code, message)
}

/// Text of a caller in a message: short, without control characters.
fn quoted(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

impl Refusal {
    pub(crate) fn missing(parameter: &str) -> Self {
        invalid_request(
            900_144,
            format!("The request body must contain the following parameter: '{parameter}'."),
        )
    }

    pub(crate) fn unreadable() -> Self {
        invalid_request(900_144, "The request body cannot be read as a form.".to_owned())
    }

    pub(crate) fn unknown_tenant(name: &str) -> Self {
        let name = quoted(name);
        invalid_request(
            90_002,
            format!(
                "Tenant '{name}' not found. Check to make sure you have the correct tenant ID and are signing into the correct cloud."
            ),
        )
    }

    pub(crate) fn unsupported_grant(name: &str) -> Self {
        let message = format!("The app requested an unsupported grant type '{}'.", quoted(name));
        refusal(StatusCode::BAD_REQUEST, "unsupported_grant_type", 70_003, message)
    }

    pub(crate) fn unknown_application(client: &str, tenant: &str) -> Self {
        let (client, tenant) = (quoted(client), quoted(tenant));
        let message = format!(
            "Application with identifier '{client}' was not found in the directory '{tenant}'. This can happen if the application has not been installed by the administrator of the tenant or consented to by any user in the tenant."
        );
        refusal(StatusCode::BAD_REQUEST, "unauthorized_client", 700_016, message)
    }

    pub(crate) fn no_credential() -> Self {
        let message =
            "The request body must contain the following parameter: 'client_assertion' or 'client_secret'.";
        invalid_client(7_000_218, message.to_owned())
    }

    pub(crate) fn wrong_secret(app_id: Uuid) -> Self {
        invalid_client(
            7_000_215,
            format!(
                "Invalid client secret provided. Ensure the secret being sent in the request is the client secret value, not the client secret ID, for a secret added to app '{app_id}'."
            ),
        )
    }

    pub(crate) fn expired_secret(app_id: Uuid) -> Self {
        invalid_client(7_000_222, format!("The provided client secret keys for app '{app_id}' are expired."))
    }

    pub(crate) fn bad_assertion(reason: &str) -> Self {
        invalid_client(
            700_027,
            format!("Client assertion failed signature validation. [Reason - {}]", quoted(reason)),
        )
    }

    pub(crate) fn assertion_audience() -> Self {
        invalid_client(700_023, "Client assertion audience claim does not match Realm issuer.".to_owned())
    }

    pub(crate) fn assertion_time() -> Self {
        invalid_client(700_024, "Client assertion is not within its valid time range.".to_owned())
    }

    pub(crate) fn assertion_subject() -> Self {
        let message = "Client assertion contains an invalid subject or issuer: both must be the client id.";
        invalid_client(700_021, message.to_owned())
    }

    pub(crate) fn assertion_type() -> Self {
        invalid_request(
            900_144,
            "The request body must contain the following parameter: 'client_assertion_type' with the value 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'.".to_owned(),
        )
    }

    pub(crate) fn no_federated_record(issuer: &str, subject: &str, audience: &str) -> Self {
        invalid_client(
            70_021,
            format!(
                "No matching federated identity record found for presented assertion. Assertion Issuer: '{}'. Assertion Subject: '{}'. Assertion Audience: '{}'.",
                quoted(issuer),
                quoted(subject),
                quoted(audience)
            ),
        )
    }

    pub(crate) fn federated_signature(reason: &str) -> Self {
        invalid_client(
            50_013,
            format!("Assertion failed signature validation. [Reason - {}]", quoted(reason)),
        )
    }

    pub(crate) fn bad_scope(scope: &str) -> Self {
        let message = format!(
            "The provided value for scope {} is not valid. Client credential flows must have a scope value with /.default suffixed to the resource identifier (application ID URI).",
            quoted(scope)
        );
        refusal(StatusCode::BAD_REQUEST, "invalid_scope", 1_002_012, message)
    }

    pub(crate) fn unknown_resource(resource: &str, tenant: &str) -> Self {
        let message = format!(
            "The resource principal named {} was not found in the tenant named {tenant}. This can happen if the application has not been installed by the administrator of the tenant or consented to by any user in the tenant.",
            quoted(resource)
        );
        refusal(StatusCode::BAD_REQUEST, "invalid_resource", 500_011, message)
    }

    pub(crate) fn throttled() -> Self {
        let message = "Too many failed requests of this client. Try again in a minute.".to_owned();
        refusal(StatusCode::TOO_MANY_REQUESTS, "temporarily_unavailable", 90_055, message)
    }

    pub(crate) fn internal() -> Self {
        let message = "The server encountered an unexpected error.".to_owned();
        refusal(StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable", 90_033, message)
    }

    /// Whether it counts against the client.
    pub(crate) fn is_failed_proof(&self) -> bool {
        self.error == "invalid_client"
    }

    /// The body.
    pub(crate) fn body(
        &self,
        login_host: &str,
        now: Timestamp,
        trace_id: Uuid,
        correlation_id: Uuid,
    ) -> Value {
        let time = now.strftime("%Y-%m-%d %H:%M:%SZ").to_string();
        let (code, message) = (self.code, &self.message);
        json!({
            "error": self.error,
            "error_description": format!(
                "AADSTS{code}: {message} Trace ID: {trace_id} Correlation ID: {correlation_id} Timestamp: {time}"
            ),
            "error_codes": [code],
            "timestamp": time,
            "trace_id": trace_id,
            "correlation_id": correlation_id,
            "error_uri": format!("https://{login_host}/error?code={code}"),
        })
    }
}
