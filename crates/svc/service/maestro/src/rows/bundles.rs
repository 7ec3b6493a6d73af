//! Bundles: the operations of sources and agents.

use aro_base::{ETag, SignedDuration, Timestamp};
use aro_bundle::Event;
use aro_store::{Batch, Condition, Document, Op, Page, PageToken, Query, Slice, StoreError};
use serde_json::value::RawValue;

use super::consumer::check_name;
use super::decide::{self, Outcome, Verdict};
use super::{
    ATTEMPTS, BUNDLE, Bundle, CONTAINER, Consumer, Row, Rows, TOMBSTONE, TOMBSTONE_TTL, Tombstone,
    bundle_document, bundle_key, bundles_of, consumer_key, contended, document, of_type, store_fault,
    tombstone_key,
};
use crate::fault::{Code, Fault};

/// A removal mark older than this belongs to a replica that ended while removing a consumer.
const MARK_VALID: SignedDuration = SignedDuration::from_secs(30);

/// The outcome of an update.
#[derive(Debug)]
pub enum Update {
    /// The spec changed.
    Changed(Row<Bundle>),
    /// The spec is the same.
    Same(Row<Bundle>),
}

/// The outcome of a deletion.
#[derive(Debug)]
pub enum Deletion {
    /// The deletion was recorded.
    Marked(Row<Bundle>),
    /// The bundle is being deleted already.
    Already(Row<Bundle>),
    /// There is no such bundle.
    Absent,
}

impl Rows {
    /// Stores a new bundle.
    pub async fn create(&self, event: &Event) -> Result<Row<Bundle>, Fault> {
        let id = event.resource().map_err(|error| Fault::new(Code::Validation, error.to_string()))?;
        let former = tombstone_key(id);
        let (consumer, tombstone) =
            futures::try_join!(self.open_consumer(&event.cluster_name), self.find::<Tombstone>(&former))?;
        let floor = tombstone.and_then(|tombstone| tombstone.value.sequence);
        let bundle = decide::created(event, floor, self.clock.now())?;
        let Some(consumer) = consumer else { return Err(no_consumer(&bundle.consumer_name)) };
        self.allow_for_first_bundle(consumer).await?;
        let Some(row) = self.put(bundle, None).await? else { return self.find_retried(id, event).await };
        // A concurrent removal of the consumer has either counted this row or set its mark before this read.
        if self.open_consumer(&row.value.consumer_name).await?.is_none() {
            self.write(batch(id).with(Op::Delete(bundle_key(id).id, row.etag))).await?;
            return Err(no_consumer(&row.value.consumer_name));
        }
        Ok(row)
    }

    /// The same event again is not a conflict: the response to the first was lost.
    async fn find_retried(&self, id: &str, event: &Event) -> Result<Row<Bundle>, Fault> {
        let is_retry = |row: &Row<Bundle>| {
            row.value
                .spec_event()
                .is_ok_and(|stored| stored.kind == event.kind && decide::is_retry(&stored, event))
        };
        let row = self.find_bundle(id).await?.filter(is_retry);
        row.ok_or_else(|| Fault::new(Code::Conflict, "This Resource already exists"))
    }

    /// Changes the spec. The row must belong to the event's source and have the version that the event expects.
    pub async fn update(&self, event: &Event) -> Result<Update, Fault> {
        let id = event.resource().map_err(|error| Fault::new(Code::Validation, error.to_string()))?;
        for _ in 0..ATTEMPTS {
            let row = self.bundle(id).await?;
            let Some(changed) = decide::updated(&row.value, event, self.clock.now())? else {
                return Ok(Update::Same(row));
            };
            if let Some(row) = self.put(changed, Some(row.etag)).await? {
                return Ok(Update::Changed(row));
            }
        }
        Err(contended(id))
    }

    /// Requests the deletion of a bundle; idempotent. With a source, only its own bundles may be deleted.
    pub async fn delete(&self, id: &str, source: Option<&str>) -> Result<Deletion, Fault> {
        for _ in 0..ATTEMPTS {
            let Some(row) = self.find_bundle(id).await? else { return Ok(Deletion::Absent) };
            let Some(marked) = decide::deleted(&row.value, source, self.clock.now())? else {
                return Ok(Deletion::Already(row));
            };
            if let Some(row) = self.put(marked, Some(row.etag)).await? {
                return Ok(Deletion::Marked(row));
            }
        }
        Err(contended(id))
    }

    /// Stores a status: one read and one write, or only a read.
    pub async fn record_status(&self, event: &Event) -> Result<Outcome, Fault> {
        self.record_status_of(event, None).await
    }

    /// Stores a status, with the time this replica published its version.
    pub async fn record_status_of(
        &self,
        event: &Event,
        published: Option<Timestamp>,
    ) -> Result<Outcome, Fault> {
        let id = event.resource().map_err(|error| Fault::new(Code::Validation, error.to_string()))?;
        for _ in 0..ATTEMPTS {
            let Some(row) = self.find_bundle(id).await? else { return Ok(Outcome::Unknown) };
            let done = match decide::apply_status(&row.value, event, &self.server, self.clock.now())? {
                Verdict::Keep(outcome) => Some(outcome),
                Verdict::Replace(mut changed, outcome) => {
                    changed.delivery.published = changed.delivery.published.or(published.map(Into::into));
                    self.put(*changed, Some(row.etag)).await?.map(|_| outcome)
                }
                Verdict::Remove(status, sequence) => {
                    self.remove(row, status, sequence).await?.then_some(Outcome::Removed)
                }
            };
            if let Some(outcome) = done {
                return Ok(outcome);
            }
        }
        Err(contended(id))
    }

    /// One bundle, if it is there.
    pub async fn find_bundle(&self, id: &str) -> Result<Option<Row<Bundle>>, Fault> {
        self.find(&bundle_key(id)).await
    }

    /// One bundle.
    pub async fn bundle(&self, id: &str) -> Result<Row<Bundle>, Fault> {
        self.find_bundle(id).await?.ok_or_else(|| not_found(id))
    }

    /// One bundle's document.
    pub async fn bundle_document(&self, id: &str) -> Result<Document, Fault> {
        let found = self.store.get(&bundle_key(id)).await.map_err(store_fault)?;
        found.ok_or_else(|| not_found(id))
    }

    /// One page of a consumer's bundles, including those being deleted.
    pub async fn of_consumer(
        &self,
        consumer: &str,
        page: Page,
    ) -> Result<(Vec<Row<Bundle>>, Option<PageToken>), Fault> {
        self.bundles(Some(consumer), page).await
    }

    /// One page of the bundles of a consumer, or of all.
    pub async fn bundles(
        &self,
        consumer: Option<&str>,
        page: Page,
    ) -> Result<(Vec<Row<Bundle>>, Option<PageToken>), Fault> {
        let query = of_type(BUNDLE, None);
        let query = match consumer {
            Some(consumer) => query.under(bundles_of(consumer)),
            None => query,
        };
        self.page(&query, page).await
    }

    /// How many bundles meet a condition.
    pub async fn count_bundles(&self, condition: Option<Condition>) -> Result<u64, Fault> {
        self.store.count(&searched(condition)).await.map_err(store_fault)
    }

    /// The documents of the bundles that meet a condition, by age unless ordered otherwise.
    pub async fn list_bundles(
        &self,
        condition: Option<Condition>,
        slice: Slice,
    ) -> Result<Vec<Document>, Fault> {
        let slice = Slice { oldest_first: true, ..slice };
        self.store.slice(&searched(condition), &slice).await.map_err(store_fault)
    }

    /// Writes a bundle; `None` on a conflict.
    pub(super) async fn put(&self, bundle: Bundle, over: Option<ETag>) -> Result<Option<Row<Bundle>>, Fault> {
        let new = bundle_document(&bundle)?;
        let op = match over {
            Some(etag) => Op::Replace(new, etag),
            None => Op::Create(new),
        };
        match self.store.write(batch(&bundle.id).with(op)).await {
            Ok(written) => {
                let written = written.into_iter().next();
                Ok(written.map(|new| Row { value: bundle, etag: new.etag, revision: new.version }))
            }
            Err(StoreError::Conflict { .. }) => Ok(None),
            Err(error) => Err(store_fault(error)),
        }
    }

    /// Removes a bundle and writes its tombstone in one batch; `false` on a conflict.
    pub(super) async fn remove(
        &self,
        row: Row<Bundle>,
        status: Box<RawValue>,
        sequence: Option<String>,
    ) -> Result<bool, Fault> {
        let Row { value: bundle, etag, .. } = row;
        let former: Option<Row<Tombstone>> = self.find(&tombstone_key(&bundle.id)).await?;
        let tombstone = Tombstone {
            id: bundle.id.clone(),
            source: bundle.source,
            consumer_name: bundle.consumer_name,
            version: bundle.version,
            removed_at: self.clock.now().into(),
            payload: bundle.payload,
            status,
            sequence: sequence.or(bundle.delivery.sequence),
        };
        let mut new = document(tombstone_key(&bundle.id).id.as_str(), TOMBSTONE, String::new(), &tombstone)?;
        new.ttl = Some(TOMBSTONE_TTL);
        let tombstone = match former {
            Some(former) => Op::Replace(new, former.etag),
            None => Op::Create(new),
        };
        self.write(batch(&bundle.id).with(Op::Delete(bundle_key(&bundle.id).id, etag)).with(tombstone)).await
    }

    /// A consumer that is not being removed. A stale removal mark is cleared first; should its owner only be slow, its removal
    /// fails then.
    async fn open_consumer(&self, name: &str) -> Result<Option<Row<Consumer>>, Fault> {
        let Some(row) = self.find::<Consumer>(&consumer_key(name)).await? else { return Ok(None) };
        let Some(since) = row.value.leaving_since else { return Ok(Some(row)) };
        // A mark in the future comes from a wrong clock.
        if self.clock.now().duration_since(since.0).abs() < MARK_VALID {
            return Ok(None);
        }
        self.set_leaving(row, None).await
    }
}

fn batch(id: &str) -> Batch {
    Batch::new(CONTAINER, bundle_key(id).partition)
}

/// The query of a search. A search for one consumer is narrowed to that consumer's bundles, and reads their bodies only for
/// what else it asks.
fn searched(condition: Option<Condition>) -> Query {
    let consumer = condition.as_ref().and_then(crate::search::only_consumer);
    // The names of consumers have one case, so the index finds exactly those.
    let Some(consumer) = consumer.filter(|name| check_name(name).is_ok()).map(str::to_owned) else {
        return of_type(BUNDLE, condition);
    };
    let rest = condition.and_then(|condition| crate::search::beside_consumer(&condition, &consumer));
    of_type(BUNDLE, rest).under(bundles_of(&consumer))
}

fn not_found(id: &str) -> Fault {
    Fault::new(Code::NotFound, format!("Resource with id='{id}' not found"))
}

fn no_consumer(name: &str) -> Fault {
    Fault::new(Code::Validation, format!("there is no consumer `{name}`"))
}
