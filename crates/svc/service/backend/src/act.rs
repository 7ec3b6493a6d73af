//! The acts of the controllers, and what all of them do alike.

use std::fmt;
use std::time::Duration;

use aro_arm::ResourceId;
use aro_arm::hcp::operation::{Operation, Request};
use aro_arm::hcp::resource::ServiceProperties;
use aro_base::{SignedDuration, Timestamp};
use aro_control::{Outcome, Step};
use aro_decisions::Outcome as Decided;
use aro_peers::CallContext;
use aro_rp_store::{OutboxEntry, operation_document_id};
use aro_runtime::trace_context;
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use tracing::Span;

use crate::change::{Change, Draft, OperationSeen, entry};
use crate::error::WorkError;
use crate::key::Key;
use crate::kind::Kind;
use crate::shared::Shared;

/// One step of a pass.
#[derive(Debug)]
pub enum Act<T: Kind> {
    /// Writes documents.
    Record(Box<Change<T>>),
    /// Asks Clusters Service to create the object.
    Create(Value),
    /// Asks Clusters Service to change the object; these members differ.
    Update(Value, Vec<&'static str>),
    /// Asks Clusters Service to delete the object.
    Delete,
    /// Asks Clusters Service for an upgrade to this release.
    Upgrade(String),
    /// Enqueues the resource's children.
    WakeChildren,
    /// Notes what the operation waits for.
    Note(String),
}

impl<T: Kind> fmt::Display for Act<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(change) => write!(f, "record: {change}"),
            Self::Create(_) => write!(f, "create the {} in Clusters Service", T::NOUN),
            Self::Update(_, names) => write!(f, "change {} of the {}", names.join(", "), T::NOUN),
            Self::Delete => write!(f, "delete the {} in Clusters Service", T::NOUN),
            Self::Upgrade(version) => write!(f, "upgrade the {} to {version}", T::NOUN),
            Self::WakeChildren => f.write_str("enqueue the children"),
            Self::Note(blocker) => write!(f, "note the blocker: {blocker}"),
        }
    }
}

/// These acts, then another pass at once: what comes next depends on what they did.
pub fn again<T: Kind>(acts: Vec<Act<T>>) -> Step<Act<T>> {
    Step::Stop(acts, Outcome::RequeueAfter(Duration::ZERO))
}

/// A recorded change, as an act.
pub fn record<T: Kind>(change: Option<Change<T>>) -> Vec<Act<T>> {
    change.map(|change| Act::Record(Box::new(change))).into_iter().collect()
}

/// The operation that holds a resource, if it is still under way.
pub async fn operation_of(
    shared: &Shared,
    id: &ResourceId,
    service: &ServiceProperties,
) -> Result<Option<OperationSeen>, WorkError> {
    let Some(name) = &service.active_operation_id else { return Ok(None) };
    let document = operation_document_id(id.subscription().unwrap_or_default(), name);
    let Some(stored) = shared.documents.find::<Operation>(&document).await? else { return Ok(None) };
    if stored.value.status.is_terminal() {
        return Ok(None);
    }
    let outbox = shared.documents.find::<OutboxEntry>(&outbox_id(&stored.value)).await?;
    Ok(Some(OperationSeen { stored, outbox }))
}

/// Where the outbox entry of an operation is.
pub fn outbox_id(operation: &Operation) -> ResourceId {
    let entry = OutboxEntry {
        effect: operation.request,
        resource_id: operation.external_id.clone(),
        operation_id: operation.operation_id.clone(),
        correlation_id: None,
        trace_parent: None,
    };
    entry.id()
}

/// Until when an operation must be complete.
pub fn deadline(operation: &Operation, service: &ServiceProperties, update: Duration) -> Option<Timestamp> {
    match operation.request {
        Request::Create => service.create_operation_completion_deadline,
        Request::Delete => service.delete_operation_completion_deadline,
        _ => {
            let update = SignedDuration::try_from(update).ok()?;
            operation.start_time.checked_add(update).ok()
        }
    }
}

/// How long until a time; zero if it has passed.
pub fn until(deadline: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(deadline.duration_since(now)).unwrap_or_default()
}

/// The call context of an operation.
pub fn call_context(operation: Option<&OperationSeen>) -> CallContext {
    let Some(operation) = operation.map(|operation| &operation.stored.value) else {
        return CallContext::default();
    };
    CallContext {
        correlation_id: operation.correlation_request_id.clone(),
        client_request_id: operation.client_request_id.clone(),
        trace_parent: operation.trace_parent.clone(),
    }
}

/// A span of an act, in the trace of the request that asked for it.
pub fn span(act: &str, key: &Key, operation: Option<&OperationSeen>) -> Span {
    let operation = operation.map(|operation| &operation.stored.value);
    let correlation = operation.and_then(|operation| operation.correlation_request_id.as_deref());
    let span =
        tracing::info_span!("backend", act, resource_id = %key.0, correlation_request_id = correlation);
    let parent = operation.and_then(|operation| operation.trace_parent.as_deref());
    if let Some(parent) = parent.and_then(|parent| HeaderValue::try_from(parent).ok()) {
        let headers = HeaderMap::from_iter([(trace_context::TRACEPARENT, parent)]);
        if let Some(parent) = trace_context::extract(&headers) {
            trace_context::set_parent(&span, parent);
        }
    }
    span
}

/// Notes what an operation waits for, once per change.
pub fn note_blocker(shared: &Shared, id: &ResourceId, operation: Option<&OperationSeen>, blocker: &str) {
    shared.notes.set(id, blocker);
    let waits = Decided::Waiting { on: blocker.to_owned() };
    shared.decisions.record(entry(id, operation, None, "wait", waits, String::new()));
}

/// Fails the operation that Clusters Service refuses, if it still holds the resource.
pub async fn reject<T: Kind>(shared: &Shared, id: &ResourceId, error: &WorkError) -> Result<(), WorkError> {
    let WorkError::Rejected { operation, error } = error else { return Ok(()) };
    let Some(stored) = shared.documents.find::<T>(id).await? else { return Ok(()) };
    let seen = operation_of(shared, id, stored.value.service()).await?;
    let Some(seen) = seen.filter(|seen| seen.name() == operation) else { return Ok(()) };
    let mut draft = Draft::new(&stored, None, Some(&seen));
    if seen.request() == Request::Create {
        draft.value.forget_create();
    }
    draft.fail(error.clone(), shared.clock.now());
    // Without the document beside the resource a draft leaves that one alone.
    match draft.finish("operation failed") {
        Some(change) => change.commit(shared).await,
        None => Ok(()),
    }
}

/// Enqueues every node pool and external auth of a cluster.
pub async fn wake_children(shared: &Shared, cluster: &ResourceId) -> Result<(), WorkError> {
    for id in children::<aro_arm::hcp::node_pool::NodePool>(shared, cluster).await? {
        shared.queues.node_pools.add(Key(id));
    }
    for id in children::<aro_arm::hcp::external_auth::ExternalAuth>(shared, cluster).await? {
        shared.queues.external_auths.add(Key(id));
    }
    Ok(())
}

/// The ids of a cluster's children of one kind. They are read by their documents' names: one that cannot be decoded counts.
pub async fn children<T: Kind>(shared: &Shared, cluster: &ResourceId) -> Result<Vec<ResourceId>, WorkError> {
    let collection = shared.documents.of::<T>();
    let partition = aro_rp_store::key_of(cluster).partition;
    let query = collection.in_partition(&partition).under(format!("{cluster}/"));
    let mut ids = Vec::new();
    let mut page = aro_store::Page::first(CHILDREN);
    loop {
        let paged = shared.documents.store().query(&query, page).await?;
        ids.extend(paged.items.iter().filter_map(|document| ResourceId::parse(&document.resource_id).ok()));
        match paged.next {
            Some(next) => page = aro_store::Page { size: CHILDREN, after: Some(next) },
            None => return Ok(ids),
        }
    }
}

/// Children read at once.
const CHILDREN: usize = 200;

/// Whether a type is that of a kind.
pub fn is_kind<T: Kind>(resource_type: &str) -> bool {
    T::KIND.resource_type().eq_ignore_ascii_case(resource_type)
}
