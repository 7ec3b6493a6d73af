//! The shared suite.

use std::sync::Arc;

use aro_base::{ManualClock, Timestamp};
use aro_store::SharedStore;
use aro_store_conformance::{Fixture, RETENTION};
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use async_trait::async_trait;

/// A store in a directory of its own.
pub struct SqliteFixture {
    pub directory: tempfile::TempDir,
    pub clock: Arc<ManualClock>,
    store: Option<Arc<SqliteStore>>,
}

impl SqliteFixture {
    pub fn options(&self) -> SqliteOptions {
        SqliteOptions { tombstone_retention: RETENTION, ..SqliteOptions::new(self.directory.path()) }
    }

    pub fn take(&mut self) -> Option<Arc<SqliteStore>> {
        self.store.take()
    }

    pub fn sqlite(&self) -> Arc<SqliteStore> {
        Arc::clone(self.store.as_ref().expect("open"))
    }
}

#[async_trait]
impl Fixture for SqliteFixture {
    async fn start() -> Self {
        let clock = ManualClock::at(Timestamp::from_second(1_800_000_000).expect("a time"));
        let directory = tempfile::tempdir().expect("a directory");
        let mut fixture = Self { directory, clock, store: None };
        fixture.reopen().await;
        fixture
    }

    fn store(&self) -> SharedStore {
        self.sqlite()
    }

    fn clock(&self) -> Arc<ManualClock> {
        Arc::clone(&self.clock)
    }

    async fn reopen(&mut self) {
        if let Some(store) = self.store.take() {
            store.close();
        }
        let clock: Arc<ManualClock> = Arc::clone(&self.clock);
        self.store = Some(SqliteStore::open(self.options(), clock).expect("the store opens"));
    }

    async fn purge(&self) {
        self.sqlite().sweep().await.expect("the sweep works");
    }
}

aro_store_conformance::suite!(SqliteFixture);
