//! The store itself.

use std::sync::Arc;
use std::time::Duration;

use aro_base::SharedClock;
use aro_store::adapter::Signals;
use aro_store::{
    Batch, ChangePage, ChangeSignal, Container, Cursor, DocKey, Document, DocumentStore, Page, Paged, Query,
    Slice, StoreError, Written,
};
use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::notify::{Notifier, Outbox};
use crate::pool::{Connections, settings};
use crate::upkeep::{Upkeep, purge};
use crate::writer::{Parts, Writer};
use crate::{OpenError, PostgresOptions, feed, read, schema};

/// Readers of the feed look at least this often, whatever happened to notifications.
const POLL: Duration = Duration::from_secs(1);

/// A document store in a PostgreSQL database.
///
/// Its background tasks belong to the store itself and not to its builder: the store must outlive every
/// scope that uses it, and [`PostgresStore::close`] (or dropping it) ends them.
pub struct PostgresStore {
    connections: Arc<Connections>,
    clock: SharedClock,
    purge_rows: i32,
    life: String,
    signals: Arc<Signals>,
    writer: Arc<Writer>,
    tasks: TaskTracker,
    cancel: CancellationToken,
}

impl PostgresStore {
    /// Brings the schema up to date; see [`crate::migrate`].
    pub async fn migrate(options: &PostgresOptions) -> Result<(), OpenError> {
        schema::migrate(options).await
    }

    /// Connects to a database that was migrated, and starts the background tasks.
    pub async fn connect(options: PostgresOptions, clock: SharedClock) -> Result<Arc<Self>, OpenError> {
        let life = schema::verify(&options).await?;
        let (config, connector) = settings(&options)?;
        let signals = Arc::new(Signals::new(POLL));
        let outbox = Arc::new(Outbox::default());
        let tasks = TaskTracker::new();
        let cancel = CancellationToken::new();
        let connections = Arc::new(Connections::new(&options)?);
        let notifier =
            Notifier { config, connector, signals: Arc::clone(&signals), outbox: Arc::clone(&outbox) };
        tasks.spawn(notifier.run(cancel.clone()));
        let writer = Writer::new(Parts {
            connections: Arc::clone(&connections),
            clock: Arc::clone(&clock),
            retention: options.tombstone_retention,
            deadline: options.deadline,
            pool_size: options.pool_size,
            signals: Arc::clone(&signals),
            outbox,
            tasks: tasks.clone(),
        });
        let upkeep = Upkeep {
            connections: Arc::clone(&connections),
            clock: Arc::clone(&clock),
            interval: options.purge_interval,
            rows: options.purge_rows,
            writer: Arc::clone(&writer),
        };
        tasks.spawn(upkeep.run(cancel.clone()));
        tasks.close();
        Ok(Arc::new(Self {
            connections,
            clock,
            purge_rows: options.purge_rows,
            life,
            signals,
            writer,
            tasks,
            cancel,
        }))
    }

    /// Removes what is past its time, now. Returns how many rows went.
    pub async fn purge(&self) -> Result<u64, StoreError> {
        let mut total = 0;
        loop {
            let rows = purge(&self.connections, self.clock.now(), self.purge_rows).await?;
            total += rows;
            if rows == 0 {
                return Ok(total);
            }
        }
    }

    /// Stops the background tasks, lets the writes that run come to their end, and closes all connections. Calls after it fail with `Unavailable`.
    pub async fn close(&self) {
        self.cancel.cancel();
        self.writer.close();
        self.tasks.wait().await;
        self.connections.close();
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

#[async_trait]
impl DocumentStore for PostgresStore {
    async fn get(&self, key: &DocKey) -> Result<Option<Document>, StoreError> {
        read::get(&self.connections, key, self.clock.now()).await
    }

    async fn write(&self, batch: Batch) -> Result<Vec<Written>, StoreError> {
        batch.check().map_err(StoreError::Batch)?;
        self.writer.write(batch).await
    }

    async fn query(&self, query: &Query, page: Page) -> Result<Paged, StoreError> {
        read::query(&self.connections, query, &page, self.clock.now()).await
    }

    async fn slice(&self, query: &Query, slice: &Slice) -> Result<Vec<Document>, StoreError> {
        read::slice(&self.connections, query, slice, self.clock.now()).await
    }

    async fn count(&self, query: &Query) -> Result<u64, StoreError> {
        read::count(&self.connections, query, self.clock.now()).await
    }

    async fn changes(
        &self,
        container: Container,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<ChangePage, StoreError> {
        let now = self.clock.now();
        let (page, hidden) =
            feed::changes(&self.connections, container, after, limit, &self.life, now).await?;
        if hidden {
            self.signals.soon(container);
        }
        Ok(page)
    }

    async fn latest_cursor(&self, container: Container) -> Result<Cursor, StoreError> {
        feed::latest(&self.connections, container, &self.life).await
    }

    fn subscribe(&self, container: Container) -> Box<dyn ChangeSignal> {
        self.signals.subscribe(container)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.connections.read("SELECT 1", &[]).await.map(drop)
    }
}
