//! A typed view on a container.

use std::marker::PhantomData;
use std::time::Duration;

use aro_base::{Class, Classify, ETag, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{
    Batch, Container, DocId, DocKey, Document, NewDocument, Op, Page, PageToken, PartitionKey, Query, Raw,
    SharedStore, StoreError, Written,
};

/// How often `update` tries before it gives up on a document that others keep changing.
const ATTEMPTS: u32 = 12;

/// The first pause between attempts; it doubles, with jitter, up to a hundred times this.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// A value together with what the store knows about its document.
#[derive(Debug, Clone)]
pub struct Typed<T> {
    /// The body.
    pub value: T,
    /// The document's full name.
    pub key: DocKey,
    /// What kind of thing it is, as written.
    pub resource_type: String,
    /// Its resource id, as written.
    pub resource_id: String,
    /// To name in the next write.
    pub etag: ETag,
    /// Grows with every write.
    pub version: u64,
    /// When it was last written.
    pub modified: Timestamp,
    /// When it will expire.
    pub expires: Option<Timestamp>,
}

/// Why a typed operation failed.
#[derive(Debug, thiserror::Error)]
pub enum CollectionError {
    /// The store's own error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stored body is not what the type expects.
    #[error("read the body of `{key}`")]
    Decode {
        /// Which document.
        key: DocKey,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A value cannot be written as JSON.
    #[error("write the body of `{id}`")]
    Encode {
        /// Which document.
        id: DocId,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Others changed the document every time we tried to.
    #[error("gave up on `{key}` after {ATTEMPTS} attempts: it changes all the time")]
    Contended {
        /// Which document.
        key: DocKey,
    },
}

impl Classify for CollectionError {
    fn class(&self) -> Class {
        match self {
            Self::Store(error) => error.class(),
            Self::Contended { .. } => Class::Retry,
            Self::Decode { .. } | Self::Encode { .. } => Class::Terminal,
        }
    }
}

/// What names a document when it is written.
#[derive(Debug, Clone)]
pub struct Names {
    /// Its id inside the partition.
    pub id: DocId,
    /// What kind of thing it is.
    pub resource_type: String,
    /// The resource id that prefix queries look at.
    pub resource_id: String,
}

/// One container seen as documents of one Rust type. It knows nothing of schema versions: upgrading old shapes is the
/// business of `T`'s `Deserialize`.
pub struct Collection<T> {
    store: SharedStore,
    container: Container,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Collection<T> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), container: self.container, value: PhantomData }
    }
}

impl<T: Serialize + DeserializeOwned + Send> Collection<T> {
    /// A view on this container.
    pub fn new(store: SharedStore, container: Container) -> Self {
        Self { store, container, value: PhantomData }
    }

    /// The store underneath, for batches that span types.
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// The full name of one of its documents.
    pub fn key(&self, partition: &PartitionKey, id: &DocId) -> DocKey {
        DocKey { container: self.container, partition: partition.clone(), id: id.clone() }
    }

    /// Starts a batch on one of its partitions.
    pub fn batch(&self, partition: &PartitionKey) -> Batch {
        Batch::new(self.container, partition.clone())
    }

    /// Reads one, if it is there.
    pub async fn find(&self, key: &DocKey) -> Result<Option<Typed<T>>, CollectionError> {
        self.store.get(key).await?.map(decode).transpose()
    }

    /// One page of a query. The query's container must be this one.
    pub async fn query(
        &self,
        query: &Query,
        page: Page,
    ) -> Result<(Vec<Typed<T>>, Option<PageToken>), CollectionError> {
        let paged = self.store.query(query, page).await?;
        let items = paged.items.into_iter().map(decode).collect::<Result<_, _>>()?;
        Ok((items, paged.next))
    }

    /// The operation that creates a document.
    pub fn create(&self, names: Names, value: &T) -> Result<Op, CollectionError> {
        Ok(Op::Create(encode(names, value, None)?))
    }

    /// The operation that creates a document which expires.
    pub fn create_for(&self, names: Names, value: &T, ttl: Duration) -> Result<Op, CollectionError> {
        Ok(Op::Create(encode(names, value, Some(ttl))?))
    }

    /// The operation that replaces what was read by its present value. A time to live does not carry over.
    pub fn replace(&self, read: &Typed<T>) -> Result<Op, CollectionError> {
        let names = Names {
            id: read.key.id.clone(),
            resource_type: read.resource_type.clone(),
            resource_id: read.resource_id.clone(),
        };
        Ok(Op::Replace(encode(names, &read.value, None)?, read.etag.clone()))
    }

    /// The operation that deletes what was read.
    pub fn delete(&self, read: &Typed<T>) -> Op {
        Op::Delete(read.key.id.clone(), read.etag.clone())
    }

    /// The operation that makes a batch depend on what was read.
    pub fn check(&self, read: &Typed<T>) -> Op {
        Op::Check(read.key.id.clone(), read.etag.clone())
    }

    /// Reads, changes and replaces one document, again and again if others change it meanwhile, but not for ever.
    ///
    /// `change` says whether there is anything to write; it may run several times and must have no other effect.
    /// Returns `None` if there is no such document, else the document as it then is.
    ///
    /// [`StoreError::Unavailable`] is passed on: the write may have happened. Calling again is safe for a change that
    /// describes a state ("phase is Ready"); one that describes a step ("count + 1") might be applied twice, so keep
    /// an operation id in the document then. A time to live does not carry over.
    pub async fn update(
        &self,
        key: &DocKey,
        mut change: impl FnMut(&mut T) -> bool,
    ) -> Result<Option<Typed<T>>, CollectionError> {
        let mut pause = FIRST_PAUSE;
        for _ in 0..ATTEMPTS {
            let Some(mut read) = self.find(key).await? else { return Ok(None) };
            if !change(&mut read.value) {
                return Ok(Some(read));
            }
            let batch = self.batch(&key.partition).with(self.replace(&read)?);
            match self.store.write(batch).await {
                Ok(written) => {
                    let Some(Written { etag, version }) = written.into_iter().next() else { break };
                    read.etag = etag;
                    read.version = version;
                    return Ok(Some(read));
                }
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            tokio::time::sleep(pause.mul_f64(jitter())).await;
            pause = (pause * 2).min(FIRST_PAUSE * 100);
        }
        Err(CollectionError::Contended { key: key.clone() })
    }
}

/// Between one half and one and a half, so that rivals do not meet again and again.
fn jitter() -> f64 {
    let (_, low) = uuid::Uuid::new_v4().as_u64_pair();
    0.5 + (low & 0xffff) as f64 / f64::from(0xffff_u16)
}

fn decode<T: DeserializeOwned>(document: Document) -> Result<Typed<T>, CollectionError> {
    match document.body.to() {
        Ok(value) => Ok(Typed {
            value,
            key: document.key,
            resource_type: document.resource_type,
            resource_id: document.resource_id,
            etag: document.etag,
            version: document.version,
            modified: document.modified,
            expires: document.expires,
        }),
        Err(source) => Err(CollectionError::Decode { key: document.key, source }),
    }
}

fn encode<T: Serialize>(
    names: Names,
    value: &T,
    ttl: Option<Duration>,
) -> Result<NewDocument, CollectionError> {
    let Names { id, resource_type, resource_id } = names;
    let body = Raw::of(value).map_err(|source| CollectionError::Encode { id: id.clone(), source })?;
    Ok(NewDocument { id, resource_type, resource_id, ttl, body })
}
