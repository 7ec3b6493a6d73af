//! The one batch that a request commits.

use aro_arm::ResourceId;
use aro_arm::hcp::operation::Operation;
use aro_base::ETag;
use aro_store::{
    Batch, CollectionError, Names, NewDocument, Op, PartitionKey, SharedStore, StoreError, Written,
};

use crate::claim::Claim;
use crate::kinds::RpDocument;
use crate::names::{RESOURCES, doc_id_of, operation_document_id};
use crate::outbox::OutboxEntry;

/// A batch of one subscription's documents under construction.
#[derive(Debug, Clone)]
pub struct Write {
    batch: Batch,
    subscription: String,
}

impl Write {
    /// Starts an empty batch.
    pub fn new(subscription: &str) -> Self {
        Self {
            batch: Batch::new(RESOURCES, PartitionKey::new(subscription)),
            subscription: subscription.to_owned(),
        }
    }

    /// How many operations it holds.
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Creates a document.
    pub fn create<T: RpDocument>(
        &mut self,
        id: &ResourceId,
        value: &T,
    ) -> Result<&mut Self, CollectionError> {
        self.batch.push(Op::Create(document(id, value)?));
        Ok(self)
    }

    /// Replaces a document that was read with this etag.
    pub fn replace<T: RpDocument>(
        &mut self,
        id: &ResourceId,
        value: &T,
        etag: &ETag,
    ) -> Result<&mut Self, CollectionError> {
        self.batch.push(Op::Replace(document(id, value)?, etag.clone()));
        Ok(self)
    }

    /// Deletes a document that was read with this etag.
    pub fn delete(&mut self, id: &ResourceId, etag: &ETag) -> &mut Self {
        self.batch.push(Op::Delete(doc_id_of(id), etag.clone()));
        self
    }

    /// Makes the batch depend on a document being as it was read.
    pub fn unchanged(&mut self, id: &ResourceId, etag: &ETag) -> &mut Self {
        self.batch.push(Op::Check(doc_id_of(id), etag.clone()));
        self
    }

    /// Writes a claim: a new one, or one that was read with this etag.
    pub fn claim(&mut self, claim: &Claim, existing: Option<&ETag>) -> Result<&mut Self, CollectionError> {
        let id = claim.id(&self.subscription);
        match existing {
            None => self.create(&id, claim),
            Some(etag) => self.replace(&id, claim, etag),
        }
    }

    /// Creates an operation.
    pub fn create_operation(&mut self, operation: &Operation) -> Result<&mut Self, CollectionError> {
        self.create(&self.operation_id(operation), operation)
    }

    /// Replaces an operation that was read with this etag.
    pub fn replace_operation(
        &mut self,
        operation: &Operation,
        etag: &ETag,
    ) -> Result<&mut Self, CollectionError> {
        self.replace(&self.operation_id(operation), operation, etag)
    }

    /// Records an effect that Clusters Service has to receive.
    pub fn owe(&mut self, entry: &OutboxEntry) -> Result<&mut Self, CollectionError> {
        self.create(&entry.id(), entry)
    }

    /// Commits.
    pub async fn commit(self, store: &SharedStore) -> Result<Vec<Written>, StoreError> {
        store.write(self.batch).await
    }

    fn operation_id(&self, operation: &Operation) -> ResourceId {
        operation_document_id(&self.subscription, operation.operation_id.name())
    }
}

fn document<T: RpDocument>(id: &ResourceId, value: &T) -> Result<NewDocument, CollectionError> {
    T::KIND.encode(Names { id: doc_id_of(id), resource_id: id.as_str().to_owned() }, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::ClaimKind;
    use crate::kinds::OPERATION_TTL;
    use crate::outbox::Cascade;

    #[test]
    fn only_operations_expire_and_only_claims_are_hidden_from_queries() {
        let id = ResourceId::of_subscription("s");
        let cascade = document(&id, &Cascade { root: id.clone() }).unwrap();
        assert_eq!((cascade.ttl, cascade.resource_id.as_str()), (None, "/subscriptions/s"));
        let claim = document(&id, &Claim::new(ClaimKind::Subnet, "x", id.clone())).unwrap();
        assert_eq!((claim.ttl, claim.resource_id.as_str()), (None, ""));
        assert_eq!(Operation::KIND.resource_type(), "Microsoft.RedHatOpenShift/hcpOperationStatuses");
        assert_eq!(OPERATION_TTL.as_secs(), 7 * 24 * 3600);
    }
}
