//! A store that fails on purpose, around any other.
//!
//! Faults are either *scripted* (the next calls of a kind fail in a given order) or *random* (with a probability,
//! from a seed, so a failing run can be repeated). Both are set at run time through a [`Faults`] handle.

mod plan;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use plan::Plan;
pub use plan::{Call, Fault, Rates};

use crate::{
    Batch, ChangePage, ChangeSignal, Container, Cursor, DocKey, Document, DocumentStore, Page, Paged, Query,
    SharedStore, Slice, StoreError, Written,
};

/// Said by a store that fails on purpose.
#[derive(Debug, thiserror::Error)]
#[error("injected fault: {0:?}")]
pub struct Injected(pub Fault);

/// Sets the faults of a [`FaultStore`] while it is in use. Cheap to clone.
#[derive(Clone)]
pub struct Faults(Arc<Mutex<Plan>>);

impl Faults {
    /// The next calls of this kind that have no fault lined up yet fail like this, in order.
    pub fn script(&self, call: Call, faults: impl IntoIterator<Item = Fault>) {
        self.lock().script(call, faults);
    }

    /// From now on faults happen at random.
    pub fn random(&self, rates: Rates) {
        self.lock().rates = rates;
    }

    /// From now on nothing fails, whatever was set before.
    pub fn heal(&self) {
        self.lock().heal();
    }

    /// How many faults were injected so far.
    pub fn injected(&self) -> u64 {
        self.lock().injected
    }

    fn lock(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wrapper.
pub struct FaultStore {
    inner: SharedStore,
    faults: Faults,
}

impl FaultStore {
    /// Wraps a store. Nothing fails until the handle asks for it; `seed` decides all that is random.
    pub fn wrap(inner: SharedStore, seed: u64) -> (SharedStore, Faults) {
        let faults = Faults(Arc::new(Mutex::new(Plan::new(seed))));
        (Arc::new(Self { inner, faults: faults.clone() }), faults)
    }

    /// Picks the fault of one call; has waited already if it is a delay.
    async fn fault(&self, call: Call) -> Option<Fault> {
        let fault = self.faults.lock().draw(call);
        if let Some(Fault::Delay(time)) = fault {
            tokio::time::sleep(time).await;
            return None;
        }
        fault
    }

    async fn read<T>(
        &self,
        call: Call,
        read: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        match self.fault(call).await {
            None | Some(Fault::Conflict | Fault::Redeliver) => read.await,
            Some(fault) => Err(StoreError::Unavailable(Box::new(Injected(fault)))),
        }
    }
}

#[async_trait]
impl DocumentStore for FaultStore {
    async fn get(&self, key: &DocKey) -> Result<Option<Document>, StoreError> {
        self.read(Call::Get, self.inner.get(key)).await
    }

    async fn write(&self, batch: Batch) -> Result<Vec<Written>, StoreError> {
        let fault = self.fault(Call::Write).await;
        match fault {
            None | Some(Fault::Redeliver | Fault::Delay(_)) => self.inner.write(batch).await,
            Some(Fault::FailBefore) => Err(StoreError::Unavailable(Box::new(Injected(Fault::FailBefore)))),
            Some(Fault::LostReply) => {
                // The reply of a conflict is lost, too.
                let _ = self.inner.write(batch).await;
                Err(StoreError::Unavailable(Box::new(Injected(Fault::LostReply))))
            }
            Some(Fault::Conflict) => {
                batch.check().map_err(StoreError::Batch)?;
                let Some(op) = batch.ops().first() else { return self.inner.write(batch).await };
                let (container, partition) = (batch.container(), batch.partition().clone());
                let key = DocKey { container, partition, id: op.id().clone() };
                let now = self.inner.get(&key).await?.map(|document| document.etag);
                Err(StoreError::Conflict { index: 0, key, now })
            }
        }
    }

    async fn query(&self, query: &Query, page: Page) -> Result<Paged, StoreError> {
        self.read(Call::Query, self.inner.query(query, page)).await
    }

    async fn slice(&self, query: &Query, slice: &Slice) -> Result<Vec<Document>, StoreError> {
        self.read(Call::Query, self.inner.slice(query, slice)).await
    }

    async fn count(&self, query: &Query) -> Result<u64, StoreError> {
        self.read(Call::Query, self.inner.count(query)).await
    }

    /// A redelivered page is an earlier one again, with its own `next`: the consumer is sent back, as by a feed that
    /// delivers at least once.
    async fn changes(
        &self,
        container: Container,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<ChangePage, StoreError> {
        let fault = self.fault(Call::Changes).await;
        match fault {
            Some(Fault::FailBefore | Fault::LostReply) => {
                Err(StoreError::Unavailable(Box::new(Injected(fault.unwrap_or(Fault::FailBefore)))))
            }
            Some(Fault::Redeliver) => {
                let earlier = self.faults.lock().earlier(container);
                let again = earlier.as_ref().map_or(after, Option::as_ref);
                match self.inner.changes(container, again, limit).await {
                    // Too old by now to be delivered again; the consumer's own cursor may still be good.
                    Err(StoreError::CursorExpired) => self.inner.changes(container, after, limit).await,
                    page => page,
                }
            }
            None | Some(Fault::Conflict | Fault::Delay(_)) => {
                let page = self.inner.changes(container, after, limit).await?;
                if !page.changes.is_empty() {
                    self.faults.lock().delivered(container, after.cloned());
                }
                Ok(page)
            }
        }
    }

    async fn latest_cursor(&self, container: Container) -> Result<Cursor, StoreError> {
        self.read(Call::Changes, self.inner.latest_cursor(container)).await
    }

    fn subscribe(&self, container: Container) -> Box<dyn ChangeSignal> {
        // Spurious wake-ups, so that faults of the feed are met even when nothing is written.
        Box::new(Restless(self.inner.subscribe(container)))
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.read(Call::Ping, self.inner.ping()).await
    }
}

struct Restless(Box<dyn ChangeSignal>);

#[async_trait]
impl ChangeSignal for Restless {
    async fn changed(&mut self) {
        let _ = tokio::time::timeout(Duration::from_millis(50), self.0.changed()).await;
    }
}
