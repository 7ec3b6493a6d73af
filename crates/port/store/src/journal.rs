//! The journal of sagas over documents.
//!
//! The journal of a saga of a key is one document, in the partition that the key names, beside what the saga works on: both
//! are one tenant's data, and a fence of that partition covers both.

use std::collections::HashMap;

use aro_base::{Classify, ETag};
use aro_control::saga::{Entry, Journal, JournalError, Record, Revision};
use aro_control::{Epoch, FencingToken};
use async_trait::async_trait;
use parking_lot::Mutex;

use crate::{
    Collection, CollectionError, Container, DocId, DocKey, Fence, Kind, Names, PartitionKey, Raised,
    SharedStore, StoreError, Typed, UnreadableDocuments,
};

const JOURNAL: Kind<Record> = Kind::new("aro/sagas").by_key_only();
/// Raised fences that are remembered; more cost a read again.
const MAX_RAISED: usize = 4096;

/// How the key of a saga names the partition of its journal, and the document in it (before the saga's name).
pub type JournalPlace = fn(&str) -> (PartitionKey, String);

/// Journals of sagas in a container.
pub struct DocumentJournal {
    records: Collection<Record>,
    fence: Fence,
    place: JournalPlace,
    raised: Mutex<HashMap<(PartitionKey, usize), (Epoch, Raised)>>,
}

impl std::fmt::Debug for DocumentJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DocumentJournal").field("fence", &self.fence).finish_non_exhaustive()
    }
}

impl DocumentJournal {
    /// Journals in this container. `fence` belongs to the lease whose tokens writes present.
    pub fn new(store: SharedStore, container: Container, fence: Fence, place: JournalPlace) -> Self {
        Self {
            records: Collection::new(store, container, JOURNAL, UnreadableDocuments::default()),
            fence,
            place,
            raised: Mutex::default(),
        }
    }

    fn document(&self, key: &str, saga: &str) -> DocKey {
        let (partition, prefix) = (self.place)(key);
        let separator = if prefix.is_empty() { "" } else { "-" };
        self.records.key(&partition, &DocId::new(&format!("saga-{prefix}{separator}{saga}")))
    }

    /// The fence of a partition at the epoch of a token; remembered, since it is raised once and checked with every write.
    async fn raise(
        &self,
        key: &str,
        partition: &PartitionKey,
        token: Option<FencingToken>,
    ) -> Result<Option<Raised>, JournalError> {
        let Some(token) = token else { return Ok(None) };
        let name = (partition.clone(), token.shard);
        let known = self.raised.lock().get(&name).filter(|(epoch, _)| *epoch == token.epoch).cloned();
        if let Some((_, raised)) = known {
            return Ok(Some(raised));
        }
        let raised = self.fence.raise(partition, token).await.map_err(|error| failed(key, error))?;
        let mut all = self.raised.lock();
        if all.len() >= MAX_RAISED {
            all.clear();
        }
        all.insert(name, (token.epoch, raised.clone()));
        Ok(Some(raised))
    }
}

fn failed(key: &str, error: impl Classify + std::error::Error + Send + Sync + 'static) -> JournalError {
    JournalError::Failed { key: key.to_owned(), class: error.class(), source: Box::new(error) }
}

#[async_trait]
impl Journal for DocumentJournal {
    async fn load(&self, key: &str, saga: &str) -> Result<Option<Entry>, JournalError> {
        let found = self.records.find(&self.document(key, saga)).await.map_err(|error| failed(key, error))?;
        Ok(found.map(|read| Entry { revision: Revision(read.etag.as_str().to_owned()), record: read.value }))
    }

    async fn store(
        &self,
        key: &str,
        record: &Record,
        read: Option<&Revision>,
        token: Option<FencingToken>,
    ) -> Result<Revision, JournalError> {
        let document = self.document(key, &record.saga);
        let raised = self.raise(key, &document.partition, token).await?;
        let op = match read {
            None => {
                self.records.create(Names { id: document.id.clone(), resource_id: String::new() }, record)
            }
            Some(revision) => self.records.replace(&Typed {
                value: record.clone(),
                key: document.clone(),
                resource_id: String::new(),
                etag: ETag::new(revision.0.clone()),
                version: 0,
                modified: record.since,
                expires: None,
            }),
        };
        let mut batch = self.records.batch(&document.partition);
        batch.push(op.map_err(|error| failed(key, error))?);
        if let Some(raised) = &raised {
            batch.push(raised.check());
        }
        match self.records.store().write(batch).await {
            Ok(written) => written
                .into_iter()
                .next()
                .map(|written| Revision(written.etag.as_str().to_owned()))
                .ok_or_else(|| JournalError::Conflict { key: key.to_owned() }),
            Err(error @ StoreError::Conflict { .. }) => {
                if raised.is_some_and(|raised| raised.refused(&error)) {
                    self.raised.lock().retain(|(partition, _), _| *partition != document.partition);
                }
                Err(JournalError::Conflict { key: key.to_owned() })
            }
            Err(error) => Err(failed(key, CollectionError::Store(error))),
        }
    }

    async fn remove(&self, key: &str, saga: &str, token: Option<FencingToken>) -> Result<(), JournalError> {
        let document = self.document(key, saga);
        let raised = self.raise(key, &document.partition, token).await?;
        let Some(read) = self.records.find(&document).await.map_err(|error| failed(key, error))? else {
            return Ok(());
        };
        let mut batch = self.records.batch(&document.partition).with(self.records.delete(&read));
        if let Some(raised) = &raised {
            batch.push(raised.check());
        }
        match self.records.store().write(batch).await {
            Ok(_) => Ok(()),
            Err(StoreError::Conflict { .. }) => Err(JournalError::Conflict { key: key.to_owned() }),
            Err(error) => Err(failed(key, CollectionError::Store(error))),
        }
    }
}
