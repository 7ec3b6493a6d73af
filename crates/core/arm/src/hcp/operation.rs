//! Operations on hosted clusters, as stored.

use aro_base::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ResourceId;
use crate::error::Code;
use crate::operation::{OperationError, ProvisioningState, StatusView};

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    Create,
    Update,
    Delete,
    RequestCredential,
    RevokeCredentials,
}

/// A certificate request carried by a credential operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CredentialRequest {
    pub certificate_signing_request: String,
}

/// An operation as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// The caller's tenant; empty for deletions that follow from another one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tenant_id: String,
    /// The caller's object id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client_id: String,
    pub request: Request,
    /// The resource it is about.
    pub external_id: ResourceId,
    /// Clusters Service's reference of the thing, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_id: Option<String>,
    /// The id that its status is read by.
    pub operation_id: ResourceId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_request_id: Option<String>,
    /// The W3C trace parent of the request, so that later steps join its trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_parent: Option<String>,
    /// Where ARM expects a notification of the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notification_uri: Option<String>,
    pub start_time: Timestamp,
    pub last_transition_time: Timestamp,
    pub status: ProvisioningState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<OperationError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_admin_credential_request: Option<CredentialRequest>,
    /// What a finished credential request answers; removed with the operation's document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<AdminCredential>,
}

/// The answer to a credential request. The kubeconfig is a secret: it is never printed by `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdminCredential {
    pub expiration_timestamp: Timestamp,
    pub kubeconfig: String,
}

impl std::fmt::Debug for AdminCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdminCredential")
            .field("expiration_timestamp", &self.expiration_timestamp)
            .finish_non_exhaustive()
    }
}

/// The types under which an operation is read.
pub const STATUSES: &str = "hcpOperationStatuses";
pub const RESULTS: &str = "hcpOperationResults";

impl Operation {
    /// Moves it to a state; a terminal state is never left.
    pub fn transition(
        &mut self,
        status: ProvisioningState,
        error: Option<OperationError>,
        now: Timestamp,
    ) -> bool {
        if self.status.is_terminal() || (self.status == status && self.error == error) {
            return false;
        }
        self.status = status;
        self.error = error;
        self.last_transition_time = now;
        true
    }

    /// Ends it because another request took its place.
    pub fn supersede(&mut self, now: Timestamp) -> bool {
        let error = OperationError {
            code: Code::Canceled.as_str().to_owned(),
            message: "This operation was superseded by another".to_owned(),
            target: None,
            details: Vec::new(),
        };
        self.transition(ProvisioningState::Canceled, Some(error), now)
    }

    /// What a client that polls reads, in the order the live service writes it.
    pub fn status_view(&self) -> StatusView<'_> {
        StatusView::new(
            &self.operation_id,
            self.status,
            self.start_time,
            self.last_transition_time,
            self.error.as_ref(),
        )
    }

    /// Whether this caller may see it: the operation's own tenant and object id, where it has them.
    pub fn visible_to(&self, tenant_id: &str, client_id: &str) -> bool {
        let same = |stored: &str, given: &str| stored.is_empty() || stored.eq_ignore_ascii_case(given);
        same(&self.tenant_id, tenant_id) && same(&self.client_id, client_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation() -> Operation {
        let now: Timestamp = "2026-09-04T23:29:40.5900Z".parse().unwrap();
        Operation {
            tenant_id: "T".into(),
            client_id: String::new(),
            request: Request::Create,
            external_id: ResourceId::parse("/subscriptions/s/resourceGroups/g/providers/P/t/n").unwrap(),
            internal_id: None,
            operation_id: ResourceId::in_subscription(
                "s",
                "Microsoft.RedHatOpenShift",
                &[("locations", "uksouth"), (STATUSES, "u")],
            ),
            client_request_id: None,
            correlation_request_id: None,
            trace_parent: None,
            notification_uri: None,
            start_time: now,
            last_transition_time: now,
            status: ProvisioningState::Accepted,
            error: None,
            system_admin_credential_request: None,
            credential: None,
        }
    }

    #[test]
    fn a_status_has_its_own_key_order_and_an_end_only_when_it_ended() {
        let mut operation = operation();
        let text = String::from_utf8(crate::json::to_body(&operation.status_view())).unwrap();
        assert_eq!(
            text,
            "{\n    \"id\": \"/subscriptions/s/providers/Microsoft.RedHatOpenShift/locations/uksouth/hcpOperationStatuses/u\",\n    \"name\": \"u\",\n    \"status\": \"Accepted\",\n    \"startTime\": \"2026-09-04T23:29:40.59Z\"\n}"
        );
        operation.transition(ProvisioningState::Succeeded, None, "2026-09-04T23:41:21Z".parse().unwrap());
        let value = serde_json::to_value(operation.status_view()).unwrap();
        assert_eq!(value["endTime"], "2026-09-04T23:41:21Z");
    }

    #[test]
    fn a_terminal_state_is_never_left() {
        let mut operation = operation();
        let now = operation.start_time;
        assert!(operation.supersede(now));
        assert!(!operation.transition(ProvisioningState::Succeeded, None, now));
        assert_eq!(operation.error.as_ref().map(|e| e.code.as_str()), Some("Canceled"));
    }

    #[test]
    fn only_the_caller_that_asked_sees_an_operation() {
        let operation = operation();
        assert!(operation.visible_to("t", "anyone"));
        assert!(!operation.visible_to("other", "anyone"));
    }
}
