//! Operations of this provider: making them, and the ids under which clients follow them.

use aro_arm::ResourceId;
use aro_arm::hcp::NAMESPACE;
use aro_arm::hcp::operation::{Operation, RESULTS, Request as Kind, STATUSES};
use aro_arm::operation::ProvisioningState;
use aro_arm_server::operations::{self, Followed};
use aro_arm_server::{Answer, Caller};
use aro_base::Timestamp;
use aro_rp_store::OutboxEntry;
use uuid::Uuid;

use crate::shared::{Request, Shared};

/// What an operation was begun for.
pub enum Cause<'a> {
    /// The request of a client, which may follow it.
    Request(&'a Request),
    /// The deletion of its parent.
    Cascade,
}

/// A new operation on a resource.
pub fn begin(
    shared: &Shared,
    cause: &Cause<'_>,
    kind: Kind,
    resource: &ResourceId,
    now: Timestamp,
) -> Operation {
    let subscription = resource.subscription().unwrap_or_default();
    // Ordered by time: operations of the same moment are neighbours in the store.
    let name = Uuid::now_v7().to_string();
    let (tenant_id, caller) = match cause {
        Cause::Request(request) => (request.tenant_id().to_owned(), Some(&request.caller)),
        Cause::Cascade => (String::new(), None),
    };
    let of = |member: fn(&Caller) -> &Option<String>| caller.and_then(|caller| member(caller).clone());
    Operation {
        tenant_id,
        client_id: of(|caller| &caller.object_id).unwrap_or_default(),
        request: kind,
        external_id: resource.clone(),
        internal_id: None,
        operation_id: ResourceId::in_subscription(
            subscription,
            NAMESPACE,
            &[("locations", &shared.location), (STATUSES, &name)],
        ),
        client_request_id: of(|caller| &caller.client_request_id),
        correlation_request_id: of(|caller| &caller.correlation_id),
        trace_parent: of(|caller| &caller.trace_parent),
        notification_uri: of(|caller| &caller.notification_uri),
        start_time: now,
        last_transition_time: now,
        status: if kind == Kind::Delete { ProvisioningState::Deleting } else { ProvisioningState::Accepted },
        error: None,
        system_admin_credential_request: None,
        credential: None,
    }
}

/// The effect that an operation has on Clusters Service.
pub fn owed(operation: &Operation) -> OutboxEntry {
    OutboxEntry {
        effect: operation.request,
        resource_id: operation.external_id.clone(),
        operation_id: operation.operation_id.clone(),
        correlation_id: operation.correlation_request_id.clone(),
        trace_parent: operation.trace_parent.clone(),
    }
}

/// The id under which the result of an operation is read.
pub fn result_id(operation: &Operation) -> ResourceId {
    let subscription = operation.operation_id.subscription().unwrap_or_default();
    let location = operation.operation_id.parent();
    let location = location.as_ref().map(ResourceId::name).unwrap_or_default();
    ResourceId::in_subscription(
        subscription,
        NAMESPACE,
        &[("locations", location), (RESULTS, operation.operation_id.name())],
    )
}

/// An operation as clients follow it; `result_id` is that of [`result_id`].
pub fn followed<'a>(operation: &'a Operation, result_id: &'a ResourceId) -> Followed<'a> {
    Followed {
        status_id: &operation.operation_id,
        result_id,
        started: operation.start_time,
        notifies: operation.notification_uri.is_some(),
    }
}

/// Adds the headers by which a client follows an accepted write. `Location` is not part of a PUT's answer.
pub fn follow(answer: Answer, request: &Request, operation: &Operation, with_location: bool) -> Answer {
    let result_id = result_id(operation);
    let followed = followed(operation, &result_id);
    operations::follow(answer, &request.caller, request.api_version, &followed, with_location)
}
