//! Outbox entries of operations that ended without their effect: superseded by a deletion, or failed.

use std::sync::Arc;

use aro_arm::ResourceId;
use aro_arm::hcp::operation::Operation;
use aro_control::{Outcome, Preview, Reconcile};
use aro_rp_store::{OutboxEntry, Write, operation_document_id};
use aro_store::Typed;

use crate::act::outbox_id;
use crate::error::WorkError;
use crate::shared::Shared;

/// Removes what an ended operation still owes.
pub struct EndedOperations {
    shared: Arc<Shared>,
}

impl EndedOperations {
    /// A controller.
    pub fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: shared.clone() }
    }

    /// What is left to remove.
    async fn left(&self, id: &ResourceId) -> Result<Option<Typed<OutboxEntry>>, WorkError> {
        let document = operation_document_id(id.subscription().unwrap_or_default(), id.name());
        let operation = self.shared.documents.find::<Operation>(&document).await?.map(|stored| stored.value);
        if operation.as_ref().is_some_and(|operation| !operation.status.is_terminal()) {
            return Ok(None);
        }
        self.owed(id, operation.as_ref()).await
    }

    /// The outbox entry of an operation.
    async fn owed(
        &self,
        id: &ResourceId,
        operation: Option<&Operation>,
    ) -> Result<Option<Typed<OutboxEntry>>, WorkError> {
        let entry = if let Some(operation) = operation {
            outbox_id(operation)
        } else {
            let subscription = id.subscription().unwrap_or_default();
            ResourceId::in_subscription(subscription, aro_arm::hcp::NAMESPACE, &[("outbox", id.name())])
        };
        Ok(self.shared.documents.find::<OutboxEntry>(&entry).await?)
    }
}

impl Reconcile for EndedOperations {
    /// The operation's id.
    type Key = ResourceId;
    type Error = WorkError;
    const NAME: &'static str = "ended-operations";

    async fn reconcile(&self, id: &ResourceId) -> Result<Outcome, WorkError> {
        if let Some(entry) = self.left(id).await? {
            let mut write = Write::new(id.subscription().unwrap_or_default());
            write.delete(&entry.value.id(), &entry.etag);
            write.commit(self.shared.documents.store()).await?;
        }
        Ok(Outcome::Settled)
    }

    async fn preview(&self, id: &ResourceId) -> Result<Preview, WorkError> {
        Ok(match self.left(id).await? {
            Some(_) => Preview::Pending { plan: Some("remove the outbox entry".to_owned()) },
            None => Preview::Settled,
        })
    }
}
