//! The agent's records in the document store: written behind, in batches.
//!
//! Losing the latest writes is harmless: after the next connect the server sends every version the agent does not list.

use std::collections::HashMap;
use std::time::Duration;

use aro_base::{ETag, chain};
use aro_store::{
    Batch, Container, DocId, MAX_BATCH, NewDocument, Op, Page, PartitionKey, Query, Raw, SharedStore,
    StoreError,
};

use crate::record::Record;

/// The container of all agents' records.
const CONTAINER: Container = Container::new("maestro-agent");
const WORK: &str = "work";
const PAGE: usize = 200;

/// Bytes of one batch.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The records of one consumer.
pub struct RecordStore {
    store: SharedStore,
    partition: PartitionKey,
    etags: HashMap<String, ETag>,
}

impl RecordStore {
    /// Reads all records. One that cannot be decoded is left out: the server sends its bundle again.
    pub async fn open(store: SharedStore, consumer: &str) -> Result<(Self, Vec<Record>), StoreError> {
        let partition = PartitionKey::new(consumer);
        let mut record_store = Self { store, partition: partition.clone(), etags: HashMap::new() };
        let mut records = Vec::new();
        let mut page = Page::first(PAGE);
        let query = Query::partition(CONTAINER, partition).of_type(WORK);
        loop {
            let found = record_store.store.query(&query, page).await?;
            for document in found.items {
                let id = document.key.id.as_str().to_owned();
                match document.body.to::<Record>() {
                    Ok(record) => records.push(record),
                    Err(error) => {
                        tracing::warn!(id, %error, "stored record cannot be decoded; waiting for the server to send the bundle");
                    }
                }
                record_store.etags.insert(id, document.etag);
            }
            match found.next {
                Some(after) => page = Page { size: PAGE, after: Some(after) },
                None => return Ok((record_store, records)),
            }
        }
    }

    /// How many records fit one batch.
    pub const fn max_batch() -> usize {
        MAX_BATCH
    }

    /// Writes records in as few batches as their size allows. Returns the ids that were not written.
    pub async fn write(&mut self, changes: Vec<(String, Option<Record>)>) -> Vec<String> {
        let mut open: Vec<Change> = Vec::new();
        let mut size = 0;
        let mut failed = Vec::new();
        for (id, record) in changes {
            let Some((op, bytes)) = self.op(&id, record.as_ref()) else { continue };
            if size + bytes > MAX_BYTES && !open.is_empty() {
                failed.extend(self.flush(std::mem::take(&mut open)).await);
                size = 0;
            }
            size += bytes;
            open.push(Change { id, record, op });
        }
        if !open.is_empty() {
            failed.extend(self.flush(open).await);
        }
        failed
    }

    fn op(&self, id: &str, record: Option<&Record>) -> Option<(Op, usize)> {
        let etag = self.etags.get(id).cloned();
        let name = DocId::new(id);
        let Some(record) = record else { return etag.map(|etag| (Op::Delete(name, etag), 0)) };
        let body = Raw::of(record)
            .inspect_err(|error| tracing::warn!(id, %error, "record cannot be encoded"))
            .ok()?;
        let bytes = body.get().len();
        let document = NewDocument {
            id: name,
            resource_type: WORK.to_owned(),
            resource_id: format!("/works/{id}"),
            ttl: None,
            body,
        };
        Some((
            etag.map_or_else(|| Op::Create(document.clone()), |etag| Op::Replace(document.clone(), etag)),
            bytes,
        ))
    }

    async fn flush(&mut self, changes: Vec<Change>) -> Vec<String> {
        match self.put(&changes).await {
            Ok(()) => Vec::new(),
            // One refused record must not block the others.
            Err(StoreError::Batch(_) | StoreError::Conflict { .. }) => {
                let mut failed = Vec::new();
                for change in changes {
                    failed.extend(self.write_alone(change).await);
                }
                failed
            }
            Err(error) => {
                tracing::warn!(error = %chain(&error), "records not stored; retrying");
                changes.into_iter().map(|change| change.id).collect()
            }
        }
    }

    async fn put(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let mut batch = Batch::new(CONTAINER, self.partition.clone());
        for change in changes {
            batch.push(change.op.clone());
        }
        let written = self.store.write(batch).await?;
        for (change, written) in changes.iter().zip(written) {
            match change.op {
                Op::Delete(..) => self.etags.remove(&change.id),
                _ => self.etags.insert(change.id.clone(), written.etag),
            };
        }
        Ok(())
    }

    /// Writes one record, without its status if that is too large. Returns its id if the write has to be repeated.
    async fn write_alone(&mut self, mut change: Change) -> Option<String> {
        loop {
            let error = match self.put(std::slice::from_ref(&change)).await {
                Ok(()) => return None,
                Err(error) => error,
            };
            let id = change.id.clone();
            match &error {
                StoreError::Conflict { key, now, .. } => {
                    let known = self.etags.get(&id).cloned();
                    self.adopt_etag(key.id.as_str(), now.clone());
                    if self.etags.get(&id).cloned() == known {
                        tracing::warn!(id, error = %chain(&error), "record not stored; retrying");
                        return Some(id);
                    }
                }
                StoreError::Batch(_) => {
                    // After a restart the engine reports the status again; the desired state has to be in the store.
                    if change.record.as_mut().and_then(|record| record.observed.take()).is_none() {
                        tracing::error!(id, error = %chain(&error), "record refused by the store; after a restart the server has to send the bundle again");
                        return None;
                    }
                    tracing::warn!(id, "record stored without its status, which is too large");
                }
                _ => {
                    tracing::warn!(id, error = %chain(&error), "record not stored; retrying");
                    return Some(id);
                }
            }
            let (op, _) = self.op(&id, change.record.as_ref())?;
            change.op = op;
        }
    }

    /// Takes over the etag a conflict reports: a write may have succeeded although its response was lost.
    fn adopt_etag(&mut self, id: &str, now: Option<ETag>) {
        match now {
            Some(now) => self.etags.insert(id.to_owned(), now),
            None => self.etags.remove(id),
        };
    }
}

/// One record and the operation that writes it.
struct Change {
    id: String,
    record: Option<Record>,
    op: Op,
}

/// The pause after a failed write.
pub const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// How long changes collect before they are written. Most bundles are applied and reported within this time, and are then
/// written once instead of three times.
pub const COLLECT: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use aro_runtime::SystemClock;
    use aro_store_sqlite::{SqliteOptions, SqliteStore};

    use super::*;
    use crate::record::{ObservedStatus, sample};

    fn store(dir: &tempfile::TempDir) -> SharedStore {
        SqliteStore::open(SqliteOptions::new(dir.path()), SystemClock::shared()).unwrap()
    }

    fn change(id: &str, status: &str) -> (String, Option<Record>) {
        let observed = ObservedStatus {
            version: 1,
            status: serde_json::from_value(
                serde_json::json!({"conditions": [{"type": "Applied", "status": "True",
                "reason": "x", "message": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}),
            )
            .unwrap(),
            hash: String::new(),
            applied_at: None,
            observed_at: aro_base::Timestamp::UNIX_EPOCH,
            sequence: None,
            acked: true,
        };
        (id.to_owned(), Some(Record { observed: Some(observed), ..sample(id, 1) }))
    }

    async fn read(store: SharedStore) -> Vec<(String, bool)> {
        let (_, records) = RecordStore::open(store, "c1").await.unwrap();
        let mut read: Vec<_> =
            records.into_iter().map(|record| (record.id, record.observed.is_some())).collect();
        read.sort();
        read
    }

    #[tokio::test]
    async fn status_too_large_for_a_document_blocks_neither_its_record_nor_others() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(&dir);
        let (mut record_store, _) = RecordStore::open(store.clone(), "c1").await.unwrap();
        let changes = vec![change("a", "x"), change("b", &"x".repeat(3 * 1024 * 1024)), change("c", "x")];
        assert!(record_store.write(changes).await.is_empty());
        let expected =
            [("a", true), ("b", false), ("c", true)].map(|(id, observed)| (id.to_owned(), observed));
        assert_eq!(read(store).await, expected);
    }

    #[tokio::test]
    async fn records_whose_write_responses_were_lost_are_written_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(&dir);
        let (mut record_store, _) = RecordStore::open(store.clone(), "c1").await.unwrap();
        let changes = || (0..50).map(|number| change(&format!("{number:02}"), "x")).collect::<Vec<_>>();
        assert!(record_store.write(changes()).await.is_empty());
        record_store.etags.clear();
        assert!(record_store.write(changes()).await.is_empty(), "the store holds all of them already");
        record_store.etags.values_mut().for_each(|etag| *etag = ETag::new("old"));
        assert!(record_store.write(changes()).await.is_empty());
        assert_eq!(read(store).await.len(), 50);
    }
}
