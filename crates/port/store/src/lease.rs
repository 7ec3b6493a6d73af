//! A lease over a document, and the fence that refuses writes of its former holders.
//!
//! The lease is one document that every replica replaces under its etag. The fence is a second document, beside what the
//! holder writes: the holder of a shard raises it to its epoch, once for each partition, and every batch checks its etag. So a
//! batch of a former holder fails as a whole, in the store, however late it arrives.

use aro_base::{Class, Classify, ETag};
use aro_control::{Epoch, FencingToken, Lease, LeaseError, LeaseTable};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    Attempts, Collection, CollectionError, Container, DocId, DocKey, Kind, Names, Op, PartitionKey,
    SharedStore, StoreError, UnreadableDocuments,
};

/// Where leases are stored.
pub const LEASES: Container = Container::new("Leases");

const LEASE: Kind<LeaseTable> = Kind::new("aro/leases").by_key_only();
const FENCE: Kind<FenceBody> = Kind::new("aro/fences").by_key_only();
/// A lease in the store, by name.
#[derive(Clone)]
pub struct DocumentLease {
    name: String,
    tables: Collection<LeaseTable>,
}

impl std::fmt::Debug for DocumentLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DocumentLease").field("name", &self.name).finish_non_exhaustive()
    }
}

impl DocumentLease {
    /// The lease of this name. The document is created by the first update.
    pub fn new(store: SharedStore, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            tables: Collection::new(store, LEASES, LEASE, UnreadableDocuments::default()),
        }
    }

    async fn attempt(
        &self,
        change: &mut (dyn for<'a> FnMut(&'a mut LeaseTable) + Send),
    ) -> Result<LeaseTable, CollectionError> {
        let (partition, id) = (PartitionKey::new(&self.name), DocId::new(&self.name));
        let found = self.tables.find(&self.tables.key(&partition, &id)).await?;
        let (op, table) = if let Some(mut stored) = found {
            change(&mut stored.value);
            (self.tables.replace(&stored)?, stored.value)
        } else {
            let mut table = LeaseTable::default();
            change(&mut table);
            (self.tables.create(names(id), &table)?, table)
        };
        self.tables.store().write(self.tables.batch(&partition).with(op)).await?;
        Ok(table)
    }
}

/// Both documents are found by key only.
fn names(id: DocId) -> Names {
    Names { id, resource_id: String::new() }
}

#[async_trait]
impl Lease for DocumentLease {
    async fn update(
        &self,
        change: &mut (dyn for<'a> FnMut(&'a mut LeaseTable) + Send),
    ) -> Result<LeaseTable, LeaseError> {
        let mut attempts = Attempts::default();
        loop {
            let error = match self.attempt(change).await {
                Ok(table) => return Ok(table),
                Err(error) => error,
            };
            let conflict = matches!(error, CollectionError::Store(StoreError::Conflict { .. }));
            if !conflict || !attempts.wait_for_next().await {
                return Err(LeaseError { name: self.name.clone(), source: Box::new(error) });
            }
        }
    }
}

/// The highest epoch that has written in a partition.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct FenceBody {
    epoch: Epoch,
}

/// Why a fence was not raised.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// A later holder has written already: the caller holds the lease no longer.
    #[error("fenced: epoch {own:?} is older than {newest:?}", own = .own.0, newest = .newest.0)]
    Fenced {
        /// The caller's epoch.
        own: Epoch,
        /// The newest epoch in the partition.
        newest: Epoch,
    },
    /// The store's own error.
    #[error(transparent)]
    Store(#[from] CollectionError),
}

impl Classify for FenceError {
    fn class(&self) -> Class {
        match self {
            // The gate withholds the key from the next pass on.
            Self::Fenced { .. } => Class::Retry,
            Self::Store(error) => error.class(),
        }
    }
}

/// Refuses writes of former holders of a lease, partition by partition of one container.
#[derive(Clone)]
pub struct Fence {
    name: String,
    fences: Collection<FenceBody>,
}

impl std::fmt::Debug for Fence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fence").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A fence at its holder's epoch. Add [`Raised::check`] to every batch.
#[derive(Debug, Clone)]
pub struct Raised {
    key: DocKey,
    etag: ETag,
}

impl Raised {
    /// The operation that fails a batch once a later holder has raised the fence.
    pub fn check(&self) -> Op {
        Op::Check(self.key.id.clone(), self.etag.clone())
    }

    /// Whether a batch failed because a later holder has raised the fence.
    pub fn refused(&self, error: &StoreError) -> bool {
        matches!(error, StoreError::Conflict { key, .. } if *key == self.key)
    }
}

impl Fence {
    /// The fence of a lease in a container.
    pub fn new(store: SharedStore, container: Container, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            fences: Collection::new(store, container, FENCE, UnreadableDocuments::default()),
        }
    }

    /// Removes the fence of a shard from a partition in which nothing is left to be fenced. A fence of a later holder stays.
    pub async fn lower(&self, partition: &PartitionKey, token: FencingToken) -> Result<(), FenceError> {
        let key = self.fences.key(partition, &DocId::new(&format!("fence-{}-{}", self.name, token.shard)));
        let Some(stored) = self.fences.find(&key).await? else { return Ok(()) };
        if stored.value.epoch > token.epoch {
            return Ok(());
        }
        let batch = self.fences.batch(partition).with(self.fences.delete(&stored));
        match self.fences.store().write(batch).await {
            Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => Err(CollectionError::Store(error).into()),
        }
    }

    /// Raises the fence of a shard in a partition to the token's epoch; costs a read if it is there already.
    pub async fn raise(&self, partition: &PartitionKey, token: FencingToken) -> Result<Raised, FenceError> {
        let FencingToken { shard, epoch } = token;
        let id = DocId::new(&format!("fence-{}-{shard}", self.name));
        let key = self.fences.key(partition, &id);
        let mut attempts = Attempts::default();
        loop {
            let op = match self.fences.find(&key).await? {
                Some(stored) if stored.value.epoch > epoch => {
                    return Err(FenceError::Fenced { own: epoch, newest: stored.value.epoch });
                }
                Some(stored) if stored.value.epoch == epoch => return Ok(Raised { key, etag: stored.etag }),
                Some(mut stored) => {
                    stored.value.epoch = epoch;
                    self.fences.replace(&stored)?
                }
                None => self.fences.create(names(id.clone()), &FenceBody { epoch })?,
            };
            match self.fences.store().write(self.fences.batch(partition).with(op)).await {
                // The next read finds what was written.
                Ok(_) => {}
                Err(StoreError::Conflict { .. }) => {
                    if !attempts.wait_for_next().await {
                        return Err(CollectionError::Contended { key }.into());
                    }
                }
                Err(error) => return Err(CollectionError::Store(error).into()),
            }
        }
    }
}
