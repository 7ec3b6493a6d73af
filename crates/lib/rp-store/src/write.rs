//! Building the one batch that a request commits.

use aro_arm::ResourceId;
use aro_arm::operation::Operation;
use aro_base::ETag;
use aro_store::{Batch, NewDocument, Op, PartitionKey, Raw, SharedStore, StoreError, Written};
use serde::Serialize;

use crate::claim::Claim;
use crate::names::{
    CLAIM_TYPE, OPERATION_TTL, OPERATION_TYPE, OUTBOX_TYPE, RESOURCES, doc_id_of, operation_document_id,
};
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
    pub fn create<T: Serialize>(
        &mut self,
        id: &ResourceId,
        kind: &str,
        value: &T,
    ) -> Result<&mut Self, StoreError> {
        let document = document(id, kind, value)?;
        self.batch.push(Op::Create(document));
        Ok(self)
    }

    /// Replaces a document that was read with this etag.
    pub fn replace<T: Serialize>(
        &mut self,
        id: &ResourceId,
        kind: &str,
        value: &T,
        etag: &ETag,
    ) -> Result<&mut Self, StoreError> {
        let document = document(id, kind, value)?;
        self.batch.push(Op::Replace(document, etag.clone()));
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

    /// Writes a claim: a new one, or one that was read with this etag. It is found by its key only.
    pub fn claim(&mut self, claim: &Claim, existing: Option<&ETag>) -> Result<&mut Self, StoreError> {
        let id = claim.id(&self.subscription);
        let document = NewDocument { resource_id: String::new(), ..document(&id, CLAIM_TYPE, claim)? };
        self.batch.push(match existing {
            None => Op::Create(document),
            Some(etag) => Op::Replace(document, etag.clone()),
        });
        Ok(self)
    }

    /// Creates an operation.
    pub fn create_operation(&mut self, operation: &Operation) -> Result<&mut Self, StoreError> {
        let document = self.operation_document(operation)?;
        self.batch.push(Op::Create(document));
        Ok(self)
    }

    /// Replaces an operation that was read with this etag.
    pub fn replace_operation(&mut self, operation: &Operation, etag: &ETag) -> Result<&mut Self, StoreError> {
        let document = self.operation_document(operation)?;
        self.batch.push(Op::Replace(document, etag.clone()));
        Ok(self)
    }

    /// Owes Clusters Service an effect.
    pub fn owe(&mut self, entry: &OutboxEntry) -> Result<&mut Self, StoreError> {
        self.create(&entry.id(), OUTBOX_TYPE, entry)
    }

    /// Commits.
    pub async fn commit(self, store: &SharedStore) -> Result<Vec<Written>, StoreError> {
        store.write(self.batch).await
    }

    fn operation_document(&self, operation: &Operation) -> Result<NewDocument, StoreError> {
        let id = operation_document_id(&self.subscription, operation.operation_id.name());
        Ok(NewDocument { ttl: Some(OPERATION_TTL), ..document(&id, OPERATION_TYPE, operation)? })
    }
}

fn document<T: Serialize>(id: &ResourceId, kind: &str, value: &T) -> Result<NewDocument, StoreError> {
    Ok(NewDocument {
        id: doc_id_of(id),
        resource_type: kind.to_owned(),
        resource_id: id.as_str().to_owned(),
        ttl: None,
        body: Raw::of(value).map_err(|source| StoreError::Corrupt(Box::new(source)))?,
    })
}
