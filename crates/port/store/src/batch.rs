//! The one way to write.

use aro_base::ETag;

use crate::{Container, DocId, NewDocument, PartitionKey};

/// How many operations one batch may hold (Cosmos DB's limit).
pub const MAX_BATCH: usize = 100;

/// How large one document may be (Cosmos DB's limit is 2 MiB; bodies are counted as stored).
pub const MAX_DOCUMENT_BYTES: usize = 2 * 1024 * 1024;

/// How long an id or a partition key may be (Cosmos DB's limit).
pub const MAX_ID_BYTES: usize = 1023;

/// How long a resource type or a resource id may be: what fits into an index of every backend.
pub const MAX_NAME_BYTES: usize = 2000;

fn storable(name: &str, limit: usize) -> bool {
    !name.is_empty() && name.len() <= limit && !name.chars().any(char::is_control)
}

/// One conditional write. There is no unconditional one.
#[derive(Debug, Clone)]
pub enum Op {
    /// Succeeds only if no live document has this id; a deleted or expired one does not count.
    Create(NewDocument),
    /// Succeeds only if the document exists with this etag.
    Replace(NewDocument, ETag),
    /// Succeeds only if the document exists with this etag. Seen on the change feed as a deletion.
    Delete(DocId, ETag),
    /// Writes nothing; succeeds only if the document exists with this etag. Lets a batch depend on what it read.
    Check(DocId, ETag),
}

impl Op {
    /// The id it is about.
    pub fn id(&self) -> &DocId {
        match self {
            Self::Create(document) | Self::Replace(document, _) => &document.id,
            Self::Delete(id, _) | Self::Check(id, _) => id,
        }
    }
}

/// Operations on one partition that happen together or not at all.
#[derive(Debug, Clone)]
pub struct Batch {
    container: Container,
    partition: PartitionKey,
    ops: Vec<Op>,
}

/// Why a batch cannot even be tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Cosmos DB refuses an empty batch.
    #[error("the batch is empty")]
    Empty,
    /// Split the work: see `MAX_BATCH`.
    #[error("the batch has {0} operations, more than {MAX_BATCH}")]
    TooMany(usize),
    /// Two operations on one document in one batch have no defined order.
    #[error("the batch names document `{0}` twice")]
    Twice(DocId),
    /// An id, type or resource id that some backend cannot hold.
    #[error("document `{id}` has a name that is empty, too long or holds a control character")]
    BadName {
        /// Which one.
        id: DocId,
    },
    /// A document is larger than any backend takes.
    #[error("document `{id}` has {bytes} bytes, more than {MAX_DOCUMENT_BYTES}")]
    TooLarge {
        /// Which one.
        id: DocId,
        /// Its size.
        bytes: usize,
    },
}

impl Batch {
    /// Starts an empty batch.
    pub fn new(container: Container, partition: PartitionKey) -> Self {
        Self { container, partition, ops: Vec::new() }
    }

    /// Adds an operation.
    pub fn push(&mut self, op: Op) -> &mut Self {
        self.ops.push(op);
        self
    }

    /// Adds an operation, for building in one expression.
    pub fn with(mut self, op: Op) -> Self {
        self.ops.push(op);
        self
    }

    /// The container written to.
    pub fn container(&self) -> Container {
        self.container
    }

    /// The partition written to.
    pub fn partition(&self) -> &PartitionKey {
        &self.partition
    }

    /// Its operations, in order.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// How many operations it holds.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Checks what can be checked without the store. Every adapter calls it first.
    pub fn check(&self) -> Result<(), BatchError> {
        if self.ops.is_empty() {
            return Err(BatchError::Empty);
        }
        if self.ops.len() > MAX_BATCH {
            return Err(BatchError::TooMany(self.ops.len()));
        }
        let mut seen = std::collections::HashSet::with_capacity(self.ops.len());
        for op in &self.ops {
            if !seen.insert(op.id()) {
                return Err(BatchError::Twice(op.id().clone()));
            }
            if !storable(op.id().as_str(), MAX_ID_BYTES) || !storable(self.partition.as_str(), MAX_ID_BYTES) {
                return Err(BatchError::BadName { id: op.id().clone() });
            }
            let (Op::Create(document) | Op::Replace(document, _)) = op else { continue };
            let resource_id = &document.resource_id;
            if !storable(&document.resource_type, MAX_NAME_BYTES)
                // An empty one is allowed: the document is then found by its key only.
                || (!resource_id.is_empty() && !storable(resource_id, MAX_NAME_BYTES))
            {
                return Err(BatchError::BadName { id: document.id.clone() });
            }
            if document.body.get().len() > MAX_DOCUMENT_BYTES {
                return Err(BatchError::TooLarge {
                    id: document.id.clone(),
                    bytes: document.body.get().len(),
                });
            }
        }
        Ok(())
    }
}
