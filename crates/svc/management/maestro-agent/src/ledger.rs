//! What the agent knows, in the store: written behind, in batches.
//!
//! Losing the last moments is harmless: the server sends again what it was not told to be known.

use std::collections::HashMap;
use std::time::Duration;

use aro_base::{ETag, chain};
use aro_store::{
    Batch, Container, DocId, MAX_BATCH, NewDocument, Op, Page, PartitionKey, Query, Raw, SharedStore,
    StoreError,
};

use crate::record::Record;

/// The agents' container.
const CONTAINER: Container = Container::new("maestro-agent");
const WORK: &str = "work";
const PAGE: usize = 200;

/// How much one batch may hold.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// The records of one consumer.
pub struct Ledger {
    store: SharedStore,
    partition: PartitionKey,
    etags: HashMap<String, ETag>,
}

impl Ledger {
    /// Reads all records. Those that cannot be read are left out: the server sends them again.
    pub async fn open(store: SharedStore, consumer: &str) -> Result<(Self, Vec<Record>), StoreError> {
        let partition = PartitionKey::new(consumer);
        let mut ledger = Self { store, partition: partition.clone(), etags: HashMap::new() };
        let mut records = Vec::new();
        let mut page = Page::first(PAGE);
        let query = Query::partition(CONTAINER, partition).of_type(WORK);
        loop {
            let found = ledger.store.query(&query, page).await?;
            for document in found.items {
                let id = document.key.id.as_str().to_owned();
                match document.body.to::<Record>() {
                    Ok(record) => records.push(record),
                    Err(error) => tracing::warn!(id, %error, "what was remembered of a work cannot be read"),
                }
                ledger.etags.insert(id, document.etag);
            }
            match found.next {
                Some(after) => page = Page { size: PAGE, after: Some(after) },
                None => return Ok((ledger, records)),
            }
        }
    }

    /// How many records fit one batch.
    pub const fn most() -> usize {
        MAX_BATCH
    }

    /// Writes records, in as few batches as their size allows. What is given back was not written.
    pub async fn write(&mut self, changes: Vec<(String, Option<Record>)>) -> Vec<String> {
        let mut open: Vec<Change> = Vec::new();
        let mut size = 0;
        let mut failed = Vec::new();
        for (id, record) in changes {
            let Some((op, bytes)) = self.op(&id, record.as_ref()) else { continue };
            if size + bytes > MOST_BYTES && !open.is_empty() {
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
            .inspect_err(|error| tracing::warn!(id, %error, "a work cannot be written down"))
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
            // One of them may keep all the others back, for ever.
            Err(StoreError::Batch(_) | StoreError::Conflict { .. }) => {
                let mut failed = Vec::new();
                for change in changes {
                    failed.extend(self.write_alone(change).await);
                }
                failed
            }
            Err(error) => {
                tracing::warn!(error = %chain(&error), "works could not be written down; trying again");
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

    /// Writes one record, as far as it can be written. Its id, if that has to be tried again.
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
                    self.learn(key.id.as_str(), now.clone());
                    if self.etags.get(&id).cloned() == known {
                        tracing::warn!(id, error = %chain(&error), "a work could not be written down; trying again");
                        return Some(id);
                    }
                }
                StoreError::Batch(_) => {
                    // What was seen is seen again after a restart; what is wanted is not.
                    if change.record.as_mut().and_then(|record| record.seen.take()).is_none() {
                        tracing::error!(id, error = %chain(&error), "a work cannot be written down; a restart forgets it until the server sends it again");
                        return None;
                    }
                    tracing::warn!(id, "a work is written down without its status, which is too large");
                }
                _ => {
                    tracing::warn!(id, error = %chain(&error), "a work could not be written down; trying again");
                    return Some(id);
                }
            }
            let (op, _) = self.op(&id, change.record.as_ref())?;
            change.op = op;
        }
    }

    /// A write may have happened though its answer was lost: then the document is another than was thought.
    fn learn(&mut self, id: &str, now: Option<ETag>) {
        match now {
            Some(now) => self.etags.insert(id.to_owned(), now),
            None => self.etags.remove(id),
        };
    }
}

/// One record, and what is done about it.
struct Change {
    id: String,
    record: Option<Record>,
    op: Op,
}

/// The pause after a failed write.
pub const PAUSE: Duration = Duration::from_millis(500);

/// How long changes gather before they are written: a bundle that comes is mostly applied and reported before, and then
/// written once instead of three times.
pub const GATHER: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use aro_runtime::SystemClock;
    use aro_store_sqlite::{SqliteOptions, SqliteStore};

    use super::*;
    use crate::record::{Seen, sample};

    fn store(dir: &tempfile::TempDir) -> SharedStore {
        SqliteStore::open(SqliteOptions::new(dir.path()), SystemClock::shared()).unwrap()
    }

    fn change(id: &str, status: &str) -> (String, Option<Record>) {
        let seen = Seen {
            version: 1,
            status: serde_json::from_value(
                serde_json::json!({"conditions": [{"type": "Applied", "status": "True",
                "reason": "x", "message": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}),
            )
            .unwrap(),
            hash: String::new(),
            applied: None,
            observed: aro_base::Timestamp::UNIX_EPOCH,
            sequence: None,
            sent: true,
        };
        (id.to_owned(), Some(Record { seen: Some(seen), ..sample(id, 1) }))
    }

    async fn read(store: SharedStore) -> Vec<(String, bool)> {
        let (_, records) = Ledger::open(store, "c1").await.unwrap();
        let mut read: Vec<_> = records.into_iter().map(|record| (record.id, record.seen.is_some())).collect();
        read.sort();
        read
    }

    #[tokio::test]
    async fn a_status_that_no_document_holds_keeps_neither_its_work_nor_others_from_being_written() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(&dir);
        let (mut ledger, _) = Ledger::open(store.clone(), "c1").await.unwrap();
        let changes = vec![change("a", "x"), change("b", &"x".repeat(3 * 1024 * 1024)), change("c", "x")];
        assert!(ledger.write(changes).await.is_empty());
        let expected = [("a", true), ("b", false), ("c", true)].map(|(id, seen)| (id.to_owned(), seen));
        assert_eq!(read(store).await, expected);
    }

    #[tokio::test]
    async fn works_whose_last_answers_were_lost_are_written_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(&dir);
        let (mut ledger, _) = Ledger::open(store.clone(), "c1").await.unwrap();
        let changes = || (0..50).map(|number| change(&format!("{number:02}"), "x")).collect::<Vec<_>>();
        assert!(ledger.write(changes()).await.is_empty());
        ledger.etags.clear();
        assert!(ledger.write(changes()).await.is_empty(), "the store has all of them already");
        ledger.etags.values_mut().for_each(|etag| *etag = ETag::new("old"));
        assert!(ledger.write(changes()).await.is_empty());
        assert_eq!(read(store).await.len(), 50);
    }
}
