//! Making operations, and the headers by which a client follows them.

use aro_arm::ResourceId;
use aro_arm::hcp::NAMESPACE;
use aro_arm::hcp::version::ApiVersion;
use aro_arm::operation::{Operation, ProvisioningState, RESULTS, Request as Kind, STATUSES};
use aro_base::Timestamp;
use aro_rp_store::OutboxEntry;
use uuid::Uuid;

use crate::answer::Answer;
use crate::caller::Caller;
use crate::shared::{Request, Shared};

/// Who an operation is for.
pub enum Asker<'a> {
    /// A client, who may follow it.
    Client(&'a Request),
    /// Nobody in particular: a deletion that follows from another.
    Cascade,
}

/// A new operation on a resource.
pub fn begin(
    shared: &Shared,
    asker: &Asker<'_>,
    kind: Kind,
    resource: &ResourceId,
    now: Timestamp,
) -> Operation {
    let subscription = resource.subscription().unwrap_or_default();
    // Ordered by time: operations that come together lie together in the store.
    let name = Uuid::now_v7().to_string();
    let (tenant_id, caller) = match asker {
        Asker::Client(request) => (request.tenant_id().to_owned(), Some(&request.caller)),
        Asker::Cascade => (String::new(), None),
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

/// What Clusters Service is to be told because of an operation.
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

/// Adds what a client needs to follow an accepted write. `Location` is not part of a PUT's answer.
pub fn follow(answer: Answer, request: &Request, operation: &Operation, with_location: bool) -> Answer {
    let (url, version) = (request.caller.url(), request.version.as_str());
    let answer = answer
        .header("azure-asyncoperation", &url.to(&operation.operation_id, version))
        .retry_after(Some(poll_after(operation, operation.start_time)));
    let answer = match with_location {
        true => answer.header("location", &url.to(&result_id(operation), version)),
        false => answer,
    };
    match operation.notification_uri {
        Some(_) => answer.header("azure-asyncnotification", "Enabled"),
        None => answer,
    }
}

/// The link to an operation's result.
pub fn result_link(request: &Request, operation: &Operation, version: ApiVersion) -> String {
    request.caller.url().to(&result_id(operation), version.as_str())
}

/// How long a client should wait before it looks again: briefly at first, since most things here take a moment;
/// less often when it turns out to take long.
pub fn poll_after(operation: &Operation, now: Timestamp) -> u32 {
    match now.duration_since(operation.start_time).as_secs() {
        ..30 => 1,
        30..300 => 5,
        _ => 15,
    }
}
