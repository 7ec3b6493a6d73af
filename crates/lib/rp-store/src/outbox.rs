//! Effects that a committed change still owes: the backend carries them out later, at least once.

use aro_arm::ResourceId;
use aro_arm::hcp::NAMESPACE;
use aro_arm::hcp::operation::Request;
use serde::{Deserialize, Serialize};

/// One owed effect; stored under the operation's name, so that it is found from either side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxEntry {
    /// What Clusters Service has to do.
    pub effect: Request,
    /// To which resource.
    pub resource_id: ResourceId,
    /// For which operation.
    pub operation_id: ResourceId,
    /// ARM's correlation id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The W3C trace parent of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_parent: Option<String>,
}

impl OutboxEntry {
    /// The id it is stored under.
    pub fn id(&self) -> ResourceId {
        let subscription = self.resource_id.subscription().unwrap_or_default();
        ResourceId::in_subscription(subscription, NAMESPACE, &[("outbox", self.operation_id.name())])
    }
}

/// A deletion that goes on after its first batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cascade {
    /// What is being deleted: a cluster (its children follow) or a subscription (its clusters follow).
    pub root: ResourceId,
}

impl Cascade {
    /// The id it is stored under.
    pub fn id(&self) -> ResourceId {
        let subscription = self.root.subscription().unwrap_or_default();
        let name = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, self.root.to_lower().as_bytes());
        ResourceId::in_subscription(subscription, NAMESPACE, &[("cascades", &name.to_string())])
    }
}
