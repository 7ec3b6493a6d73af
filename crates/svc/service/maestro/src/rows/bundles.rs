//! Bundles: what sources and agents may do to them.

use aro_base::{ETag, SignedDuration, Timestamp};
use aro_bundle::Event;
use aro_store::{Batch, Condition, Document, Op, Page, PageToken, Query, Slice, StoreError};
use serde_json::value::RawValue;

use super::decide::{self, Outcome, Verdict};
use super::{
    ATTEMPTS, BUNDLE, Bundle, CONTAINER, Consumer, FAREWELL, FAREWELL_KEPT, Farewell, Row, Rows,
    bundle_document, bundle_key, bundles_of, consumer_key, contended, document, farewell_key, of_type,
    store_fault,
};
use crate::fault::{Code, Fault};

/// A mark older than this was left by somebody who died while removing a consumer.
const MARK_COUNTS: SignedDuration = SignedDuration::from_secs(30);

/// What came of an update.
#[derive(Debug)]
pub enum Update {
    /// Something else is wanted now.
    Changed(Row<Bundle>),
    /// Nothing changed: the same was wanted already.
    Same(Row<Bundle>),
}

/// What came of a deletion.
#[derive(Debug)]
pub enum Deletion {
    /// From now on it is to go.
    Marked(Row<Bundle>),
    /// It is to go already.
    Already(Row<Bundle>),
    /// There is none.
    Absent,
}

impl Rows {
    /// Stores a new bundle.
    pub async fn create(&self, event: &Event) -> Result<Row<Bundle>, Fault> {
        let id = event.resource().map_err(|error| Fault::new(Code::Validation, error.to_string()))?;
        let former = farewell_key(id);
        let (consumer, farewell) =
            futures::try_join!(self.open_consumer(&event.cluster_name), self.find::<Farewell>(&former))?;
        let floor = farewell.and_then(|farewell| farewell.value.sequence);
        let bundle = decide::created(event, floor, self.clock.now())?;
        let Some(consumer) = consumer else { return Err(no_consumer(&bundle.consumer_name)) };
        self.wanted_for(consumer).await?;
        let Some(row) = self.put(bundle, None).await? else { return self.created_before(id, event).await };
        // Whoever removes the consumer either counted this row or left a mark before we look again.
        if self.open_consumer(&row.value.consumer_name).await?.is_none() {
            self.write(batch(id).with(Op::Delete(bundle_key(id).id, row.etag))).await?;
            return Err(no_consumer(&row.value.consumer_name));
        }
        Ok(row)
    }

    /// The same event again is no conflict: whoever sent it did not hear that it was stored.
    async fn created_before(&self, id: &str, event: &Event) -> Result<Row<Bundle>, Fault> {
        let is_it = |row: &Row<Bundle>| {
            row.value
                .spec_event()
                .is_ok_and(|stored| stored.kind == event.kind && decide::is_retry(&stored, event))
        };
        let row = self.find_bundle(id).await?.filter(is_it);
        row.ok_or_else(|| Fault::new(Code::Conflict, "This Resource already exists"))
    }

    /// Changes what is wanted. The row must be the event's source's, and of the version that the event expects.
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

    /// Marks a bundle as one that is to go. Asking again changes nothing. With a source only its own bundles may go.
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

    /// Keeps what an agent tells: one read and one write, or only a read.
    pub async fn record_status(&self, event: &Event) -> Result<Outcome, Fault> {
        self.record_status_of(event, None).await
    }

    /// The same, by a server that knows when it published the version that the status is about.
    pub async fn record_status_of(
        &self,
        event: &Event,
        published: Option<Timestamp>,
    ) -> Result<Outcome, Fault> {
        let id = event.resource().map_err(|error| Fault::new(Code::Validation, error.to_string()))?;
        for _ in 0..ATTEMPTS {
            let Some(row) = self.find_bundle(id).await? else { return Ok(Outcome::Unknown) };
            let done = match decide::told(&row.value, event, &self.server, self.clock.now())? {
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

    /// One bundle's document, for those who show it as it is.
    pub async fn bundle_document(&self, id: &str) -> Result<Document, Fault> {
        let found = self.store.get(&bundle_key(id)).await.map_err(store_fault)?;
        found.ok_or_else(|| not_found(id))
    }

    /// One page of a consumer's bundles, those that are to go included.
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

    /// The documents of the bundles that meet a condition, by age unless something else is asked for.
    pub async fn list_bundles(
        &self,
        condition: Option<Condition>,
        slice: Slice,
    ) -> Result<Vec<Document>, Fault> {
        let slice = Slice { oldest_first: true, ..slice };
        self.store.slice(&searched(condition), &slice).await.map_err(store_fault)
    }

    /// Writes a bundle; `None` means that somebody was faster, or that there is one already.
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

    /// Removes a bundle and leaves a farewell, together; `false` means that somebody was faster.
    pub(super) async fn remove(
        &self,
        row: Row<Bundle>,
        status: Box<RawValue>,
        sequence: Option<String>,
    ) -> Result<bool, Fault> {
        let Row { value: bundle, etag, .. } = row;
        let former: Option<Row<Farewell>> = self.find(&farewell_key(&bundle.id)).await?;
        let farewell = Farewell {
            id: bundle.id.clone(),
            source: bundle.source,
            consumer_name: bundle.consumer_name,
            version: bundle.version,
            removed_at: self.clock.now().into(),
            payload: bundle.payload,
            status,
            sequence: sequence.or(bundle.delivery.sequence),
        };
        let mut new = document(farewell_key(&bundle.id).id.as_str(), FAREWELL, String::new(), &farewell)?;
        new.ttl = Some(FAREWELL_KEPT);
        let farewell = match former {
            Some(former) => Op::Replace(new, former.etag),
            None => Op::Create(new),
        };
        self.write(batch(&bundle.id).with(Op::Delete(bundle_key(&bundle.id).id, etag)).with(farewell)).await
    }

    /// A consumer that something may be created for. A mark that somebody left behind is taken away first: should that
    /// somebody only be slow, its removal fails then.
    async fn open_consumer(&self, name: &str) -> Result<Option<Row<Consumer>>, Fault> {
        let Some(row) = self.find::<Consumer>(&consumer_key(name)).await? else { return Ok(None) };
        let Some(since) = row.value.leaving_since else { return Ok(Some(row)) };
        // A mark from the future was left by a clock that was wrong.
        if self.clock.now().duration_since(since.0).abs() < MARK_COUNTS {
            return Ok(None);
        }
        self.set_leaving(row, None).await
    }
}

fn batch(id: &str) -> Batch {
    Batch::new(CONTAINER, bundle_key(id).partition)
}

/// The query of a search. A consumer that the search insists on narrows it to that consumer's bundles.
fn searched(condition: Option<Condition>) -> Query {
    let consumer = condition.as_ref().and_then(crate::search::only_consumer).map(bundles_of);
    let query = of_type(BUNDLE, condition);
    match consumer {
        Some(prefix) => query.under(prefix),
        None => query,
    }
}

fn not_found(id: &str) -> Fault {
    Fault::new(Code::NotFound, format!("Resource with id='{id}' not found"))
}

fn no_consumer(name: &str) -> Fault {
    Fault::new(Code::Validation, format!("there is no consumer `{name}`"))
}
