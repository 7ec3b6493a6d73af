//! One batch that a controller writes: a resource, its operation, the document beside it, and what goes with them.
//!
//! A [`Draft`] is filled by a plan, which is pure; a [`Change`] is what came out of it, to be written under the etags that the
//! plan was made from. So an operation and its resource never disagree, and a replica that decided on an old state writes
//! nothing.

use aro_arm::ResourceId;
use aro_arm::hcp::operation::{Operation, Request};
use aro_arm::operation::ProvisioningState;
use aro_base::{ETag, Timestamp};
use aro_decisions::{Entry, Outcome};
use aro_rp_store::{Claim, OutboxEntry, Write};
use aro_store::Typed;

use crate::error::WorkError;
use crate::kind::Kind;
use crate::metrics::request_name;
use crate::progress::Progress;
use crate::shared::Shared;

/// The operation that holds a resource, and what is still owed for it.
#[derive(Debug, Clone)]
pub struct OperationSeen {
    /// The operation.
    pub stored: Typed<Operation>,
    /// Its outbox entry, until the effect is recorded.
    pub outbox: Option<Typed<OutboxEntry>>,
}

impl OperationSeen {
    /// The name under which the resource refers to it.
    pub fn name(&self) -> &str {
        self.stored.value.operation_id.name()
    }

    /// What was asked for.
    pub fn request(&self) -> Request {
        self.stored.value.request
    }
}

/// A batch to be written.
#[derive(Debug, Clone)]
pub struct Change<T: Kind> {
    what: String,
    id: ResourceId,
    resource: Option<(T, ETag)>,
    removed: Vec<(ResourceId, ETag)>,
    provider: Option<(T::Provider, Option<ETag>)>,
    operation: Option<(Operation, ETag)>,
    claims: Vec<(Claim, ETag)>,
    entries: Vec<Entry>,
}

impl<T: Kind> std::fmt::Display for Change<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl<T: Kind> Change<T> {
    /// Writes it. A conflict means that the plan was made from an old state: the next pass makes a new one.
    pub async fn commit(&self, shared: &Shared) -> Result<(), WorkError> {
        let mut write = Write::new(self.id.subscription().unwrap_or_default());
        if let Some((resource, etag)) = &self.resource {
            write.replace(&self.id, resource, etag)?;
        }
        if let (Some((provider, etag)), Some(id)) = (&self.provider, T::provider_id(&self.id)) {
            match etag {
                Some(etag) => write.replace(&id, provider, etag)?,
                None => write.create(&id, provider)?,
            };
        }
        if let Some((operation, etag)) = &self.operation {
            write.replace_operation(operation, etag)?;
        }
        for (claim, etag) in &self.claims {
            write.claim(claim, Some(etag))?;
        }
        for (id, etag) in &self.removed {
            write.delete(id, etag);
        }
        if !write.is_empty() {
            write.commit(shared.documents.store()).await?;
        }
        if let Some((operation, _)) = &self.operation
            && operation.status.is_terminal()
        {
            shared.metrics.operation_ended(operation);
            shared.notes.clear(&self.id);
        }
        for entry in &self.entries {
            shared.decisions.record(entry.clone());
        }
        Ok(())
    }
}

/// A change under construction.
#[derive(Debug)]
pub struct Draft<'a, T: Kind> {
    stored: &'a Typed<T>,
    /// The resource as it will be.
    pub value: T,
    provider: Option<&'a Typed<T::Provider>>,
    /// The document beside it as it will be.
    pub beside: T::Provider,
    seen: Option<&'a OperationSeen>,
    operation: Option<Operation>,
    dispatched: bool,
    removed: Vec<(ResourceId, ETag)>,
    claims: Vec<(Claim, ETag)>,
    entries: Vec<Entry>,
    gone: bool,
}

impl<'a, T: Kind> Draft<'a, T> {
    /// Starts from what is stored.
    pub fn new(
        stored: &'a Typed<T>,
        provider: Option<&'a Typed<T::Provider>>,
        operation: Option<&'a OperationSeen>,
    ) -> Self {
        Self {
            stored,
            value: stored.value.clone(),
            provider,
            beside: provider.map(|provider| provider.value.clone()).unwrap_or_default(),
            seen: operation,
            operation: operation.map(|operation| operation.stored.value.clone()),
            dispatched: false,
            removed: Vec::new(),
            claims: Vec::new(),
            entries: Vec::new(),
            gone: false,
        }
    }

    /// Clusters Service has received what the operation owes it.
    pub fn dispatched(&mut self) {
        self.dispatched = true;
    }

    /// Moves the operation, and the resource that it holds, to the state of a judgement. An operation never goes back to
    /// Accepted.
    pub fn advance(&mut self, progress: &Progress, now: Timestamp) {
        let Some(operation) = &mut self.operation else { return };
        if progress.state == ProvisioningState::Accepted
            || !operation.transition(progress.state, progress.error.clone(), now)
        {
            return;
        }
        let ended = operation.status.is_terminal();
        self.value.set_provisioning_state(operation.status);
        if ended {
            self.value.service_mut().active_operation_id = None;
            self.dispatched = true;
        }
        let outcome = match operation.status {
            ProvisioningState::Succeeded => Outcome::Done,
            ProvisioningState::Failed | ProvisioningState::Canceled => {
                Outcome::Failed { reason: progress.message.clone() }
            }
            _ => Outcome::Started,
        };
        let detail = format!("{} {}: {}", request_name(operation.request), T::NOUN, operation.status);
        self.note("operation", outcome, detail);
    }

    /// Fails the operation.
    pub fn fail(&mut self, error: aro_arm::operation::OperationError, now: Timestamp) {
        self.advance(&Progress::failed(error), now);
    }

    /// Adds an entry to the journal of decisions.
    pub fn note(&mut self, step: &'static str, outcome: Outcome, detail: impl Into<String>) {
        self.entries.push(entry(
            self.value.id(),
            self.seen,
            self.value.service().cluster_service_id.as_deref(),
            step,
            outcome,
            detail.into(),
        ));
    }

    /// Removes the resource's own documents: nothing of it is left.
    pub fn remove_resource(&mut self) {
        self.gone = true;
    }

    /// Gives up the resource's part of a claim.
    pub fn release(&mut self, claim: &Typed<Claim>) {
        let mut kept = claim.value.clone();
        kept.holders.retain(|holder| holder != self.stored.value.id());
        if kept.holders.is_empty() {
            let subscription = self.stored.value.id().subscription().unwrap_or_default();
            self.removed.push((claim.value.id(subscription), claim.etag.clone()));
        } else if kept != claim.value {
            self.claims.push((kept, claim.etag.clone()));
        }
    }

    /// The change, if there is one.
    pub fn finish(mut self, what: impl Into<String>) -> Option<Change<T>> {
        let id = self.stored.value.id().clone();
        let mut resource = None;
        let mut provider = None;
        if self.gone {
            self.removed.push((id.clone(), self.stored.etag.clone()));
            if let (Some(stored), Some(beside)) = (self.provider, T::provider_id(&id)) {
                self.removed.push((beside, stored.etag.clone()));
            }
        } else {
            resource = (self.value != self.stored.value).then(|| (self.value, self.stored.etag.clone()));
            let before = self.provider.map(|provider| &provider.value);
            let changed = match before {
                Some(before) => *before != self.beside,
                None => self.beside != T::Provider::default(),
            };
            provider = changed.then(|| (self.beside, self.provider.map(|provider| provider.etag.clone())));
        }
        let operation = match (self.operation, self.seen) {
            (Some(operation), Some(seen)) if operation != seen.stored.value => {
                Some((operation, seen.stored.etag.clone()))
            }
            _ => None,
        };
        if let (true, Some(outbox)) = (self.dispatched, self.seen.and_then(|seen| seen.outbox.as_ref())) {
            self.removed.push((outbox.value.id(), outbox.etag.clone()));
        }
        let empty = resource.is_none()
            && provider.is_none()
            && operation.is_none()
            && self.removed.is_empty()
            && self.claims.is_empty();
        (!empty).then(|| Change {
            what: what.into(),
            id,
            resource,
            removed: self.removed,
            provider,
            operation,
            claims: self.claims,
            entries: self.entries,
        })
    }
}

/// An entry of the journal about a resource.
pub fn entry(
    id: &ResourceId,
    operation: Option<&OperationSeen>,
    href: Option<&str>,
    step: &'static str,
    outcome: Outcome,
    detail: String,
) -> Entry {
    let operation = operation.map(|operation| &operation.stored.value);
    let mut subjects = vec![id.to_string()];
    subjects.extend(operation.map(|operation| operation.operation_id.to_string()));
    subjects.extend(href.map(ToOwned::to_owned));
    Entry {
        correlation_id: operation.and_then(|operation| operation.correlation_request_id.clone()),
        subjects,
        step,
        outcome,
        detail,
    }
}
