//! Consumers: created and removed by operators, referenced by bundles.

use std::collections::BTreeMap;

use aro_store::{Batch, Condition, NewDocument, Op, Page, Query, Slice, StoreError};

use super::consumer::{OrphanDeletion, check_name};
use super::{
    ATTEMPTS, CONSUMER, CONTAINER, Consumer, FORMER_CONSUMER, Row, Rows, bundles_of, consumer_key, contended,
    document, former_consumer_key, of_type, row, store_fault,
};
use crate::fault::{Code, Fault};

impl Rows {
    /// Creates a consumer. Without a name, its id becomes its name.
    pub async fn create_consumer(
        &self,
        name: Option<&str>,
        labels: BTreeMap<String, String>,
    ) -> Result<Row<Consumer>, Fault> {
        let id = uuid::Uuid::new_v4().to_string();
        let name = name.filter(|name| !name.is_empty()).unwrap_or(&id).to_owned();
        check_name(&name)?;
        // The broker authorizes by name, and this one is the server's.
        if *name == *self.server {
            let reason = format!("`{name}` is the name of this server and cannot be a consumer");
            return Err(Fault::new(Code::Validation, reason));
        }
        let now = self.clock.now().into();
        let orphan_deletion = OrphanDeletion::Undecided;
        let consumer = Consumer {
            id,
            name,
            labels,
            created_at: now,
            updated_at: now,
            leaving_since: None,
            orphan_deletion,
        };
        let made = self.put_consumer(consumer, None).await?;
        made.ok_or_else(|| Fault::new(Code::Conflict, "This Consumer already exists"))
    }

    /// Changes the labels of a consumer.
    pub async fn label_consumer(
        &self,
        id: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<Row<Consumer>, Fault> {
        for _ in 0..ATTEMPTS {
            let row = self.consumer_by_id(id).await?;
            if row.value.labels == *labels {
                return Ok(row);
            }
            let changed =
                Consumer { labels: labels.clone(), updated_at: self.clock.now().into(), ..row.value.clone() };
            if let Some(row) = self.put_consumer(changed, Some(&row)).await? {
                return Ok(row);
            }
        }
        Err(contended(id))
    }

    /// Removes a consumer that has no bundles. It is marked first, so that none is created for it meanwhile.
    pub async fn delete_consumer(&self, id: &str) -> Result<(), Fault> {
        for _ in 0..ATTEMPTS {
            let row = self.consumer_by_id(id).await?;
            let Some(marked) = self.set_leaving(row, Some(self.clock.now())).await? else { continue };
            let name = marked.value.name.clone();
            let bundles = of_type(super::BUNDLE, None).under(bundles_of(&name));
            let left = self.store.count(&bundles).await.map_err(store_fault)?;
            if left > 0 {
                // On a conflict the mark stays and expires.
                self.set_leaving(marked, None).await?;
                let bundles = if left == 1 { "bundle belongs" } else { "bundles belong" };
                let reason = format!("Unable to delete Consumer: {left} {bundles} to it");
                return Err(Fault::new(Code::Forbidden, reason));
            }
            let key = consumer_key(&name);
            let mut batch = Batch::new(CONTAINER, key.partition).with(Op::Delete(key.id, marked.etag));
            if !self.was_consumer(&name).await? {
                batch = batch.with(Op::Create(former(&name)?));
            }
            if self.write(batch).await? {
                return Ok(());
            }
        }
        Err(contended(id))
    }

    /// Whether a consumer of this name was removed. The agent's certificate may outlive it.
    pub async fn was_consumer(&self, name: &str) -> Result<bool, Fault> {
        Ok(self.store.get(&former_consumer_key(name)).await.map_err(store_fault)?.is_some())
    }

    /// A consumer by its name.
    pub async fn consumer_by_name(&self, name: &str) -> Result<Option<Row<Consumer>>, Fault> {
        self.find(&consumer_key(name)).await
    }

    /// Whether the orphans of a consumer may be deleted. Called only when there is one: for a consumer without bundles this
    /// blocks the deletion.
    pub async fn may_delete_orphans(&self, consumer: &str) -> Result<bool, Fault> {
        for _ in 0..ATTEMPTS {
            let row = match self.consumer_by_name(consumer).await {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(false),
                // A consumer that cannot be decoded is not decided about.
                Err(error) if error.code == Code::Unreadable => return Ok(false),
                Err(error) => return Err(error),
            };
            match row.value.orphan_deletion {
                OrphanDeletion::Allowed => return Ok(true),
                OrphanDeletion::Blocked => return Ok(false),
                OrphanDeletion::Undecided => {
                    if self.set_orphan_deletion(&row, OrphanDeletion::Blocked).await?.is_some() {
                        return Ok(false);
                    }
                }
            }
        }
        Err(contended(consumer))
    }

    /// Allows the deletion of orphans, on request of an operator.
    pub async fn allow_orphan_deletion(&self, id: &str) -> Result<Row<Consumer>, Fault> {
        for _ in 0..ATTEMPTS {
            let row = self.consumer_by_id(id).await?;
            if row.value.orphan_deletion == OrphanDeletion::Allowed {
                return Ok(row);
            }
            if let Some(row) = self.set_orphan_deletion(&row, OrphanDeletion::Allowed).await? {
                return Ok(row);
            }
        }
        Err(contended(id))
    }

    /// Allows the deletion of orphans of a consumer whose agent has none. On a conflict the next resync repeats it.
    pub async fn unblock_orphan_deletion(&self, consumer: &str) -> Result<(), Fault> {
        let row = self.consumer_by_name(consumer).await?;
        if let Some(row) = row.filter(|row| row.value.orphan_deletion == OrphanDeletion::Blocked) {
            self.set_orphan_deletion(&row, OrphanDeletion::Allowed).await?;
        }
        Ok(())
    }

    /// Allows the deletion of orphans with the first bundle of a consumer.
    pub(super) async fn allow_for_first_bundle(&self, mut row: Row<Consumer>) -> Result<(), Fault> {
        for _ in 0..ATTEMPTS {
            if row.value.orphan_deletion != OrphanDeletion::Undecided
                || self.set_orphan_deletion(&row, OrphanDeletion::Allowed).await?.is_some()
            {
                return Ok(());
            }
            // The caller checks again whether the consumer exists.
            let Some(newer) = self.consumer_by_name(&row.value.name).await? else { return Ok(()) };
            row = newer;
        }
        Err(contended(&row.value.name))
    }

    /// `None` on a conflict.
    async fn set_orphan_deletion(
        &self,
        row: &Row<Consumer>,
        orphan_deletion: OrphanDeletion,
    ) -> Result<Option<Row<Consumer>>, Fault> {
        self.put_consumer(Consumer { orphan_deletion, ..row.value.clone() }, Some(row)).await
    }

    /// A consumer by its id.
    pub async fn consumer_by_id(&self, id: &str) -> Result<Row<Consumer>, Fault> {
        let absent = || Fault::new(Code::NotFound, format!("Consumer with id='{id}' not found"));
        let query = of_type(CONSUMER, None).under(format!("/consumers/{id}"));
        let (rows, _) = self.page::<Consumer>(&query, Page::first(2)).await?;
        rows.into_iter().find(|row| row.value.id == id).ok_or_else(absent)
    }

    /// How many consumers meet a condition.
    pub async fn count_consumers(&self, condition: Option<Condition>) -> Result<u64, Fault> {
        self.store.count(&of_type(CONSUMER, condition)).await.map_err(store_fault)
    }

    /// The consumers that meet a condition, by age unless ordered otherwise.
    pub async fn list_consumers(
        &self,
        condition: Option<Condition>,
        slice: Slice,
    ) -> Result<Vec<Row<Consumer>>, Fault> {
        let slice = Slice { oldest_first: true, ..slice };
        let query: Query = of_type(CONSUMER, condition);
        let documents = self.store.slice(&query, &slice).await.map_err(store_fault)?;
        documents.iter().map(row).collect()
    }

    /// Sets or clears the removal mark; `None` on a conflict.
    pub(super) async fn set_leaving(
        &self,
        row: Row<Consumer>,
        since: Option<aro_base::Timestamp>,
    ) -> Result<Option<Row<Consumer>>, Fault> {
        let marked = Consumer { leaving_since: since.map(Into::into), ..row.value.clone() };
        self.put_consumer(marked, Some(&row)).await
    }

    async fn put_consumer(
        &self,
        consumer: Consumer,
        over: Option<&Row<Consumer>>,
    ) -> Result<Option<Row<Consumer>>, Fault> {
        let key = consumer_key(&consumer.name);
        let new = document(&consumer.name, CONSUMER, format!("/consumers/{}", consumer.id), &consumer)?;
        let op = match over {
            Some(row) => Op::Replace(new, row.etag.clone()),
            None => Op::Create(new),
        };
        match self.store.write(Batch::new(CONTAINER, key.partition).with(op)).await {
            Ok(written) => {
                let written = written.into_iter().next();
                Ok(written.map(|new| Row { value: consumer, etag: new.etag, revision: new.version }))
            }
            Err(StoreError::Conflict { .. }) => Ok(None),
            Err(error) => Err(store_fault(error)),
        }
    }
}

/// The document that keeps the name of a removed consumer.
fn former(name: &str) -> Result<NewDocument, Fault> {
    let id = former_consumer_key(name).id;
    document(id.as_str(), FORMER_CONSUMER, format!("/former-consumers/{name}"), &name)
}
