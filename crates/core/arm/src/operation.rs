//! Asynchronous operations as ARM defines them: states, errors, and the status that clients poll.

use aro_base::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ResourceId;

/// The states of an operation and of a resource. Unknown words are refused when a document is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ProvisioningState {
    Succeeded,
    Failed,
    Canceled,
    Accepted,
    Provisioning,
    Updating,
    Deleting,
    AwaitingSecret,
}

impl ProvisioningState {
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Canceled)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Canceled => "Canceled",
            Self::Accepted => "Accepted",
            Self::Provisioning => "Provisioning",
            Self::Updating => "Updating",
            Self::Deleting => "Deleting",
            Self::AwaitingSecret => "AwaitingSecret",
        }
    }
}

impl std::fmt::Display for ProvisioningState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error of a failed or cancelled operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationError {
    pub code: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<OperationError>,
}

/// The body of an operation status. Key order is part of the wire.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusView<'a> {
    id: &'a ResourceId,
    name: &'a str,
    status: ProvisioningState,
    start_time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a OperationError>,
}

impl<'a> StatusView<'a> {
    /// The status of an operation; its last transition is its end once the state is terminal. Times are UTC with nanoseconds,
    /// trailing zeros trimmed.
    pub fn new(
        id: &'a ResourceId,
        status: ProvisioningState,
        start_time: Timestamp,
        last_transition: Timestamp,
        error: Option<&'a OperationError>,
    ) -> Self {
        let end_time = status.is_terminal().then_some(last_transition);
        Self { id, name: id.name(), status, start_time, end_time, error }
    }

    pub const fn is_terminal(&self) -> bool {
        self.status.is_terminal()
    }

    pub const fn started(&self) -> Timestamp {
        self.start_time
    }
}
