//! The shared suite.

use std::sync::Arc;

use aro_base::{ManualClock, Timestamp};
use aro_store::SharedStore;
use aro_store_conformance::{Fixture, RETENTION};
use aro_store_postgres::{PostgresOptions, PostgresStore};
use async_trait::async_trait;

use crate::server::shared;

/// A store in a schema of its own.
pub struct PostgresFixture {
    options: PostgresOptions,
    clock: Arc<ManualClock>,
    store: Option<Arc<PostgresStore>>,
}

#[async_trait]
impl Fixture for PostgresFixture {
    async fn start() -> Self {
        let clock = ManualClock::at(Timestamp::from_second(1_800_000_000).expect("a time"));
        let connection = shared().fresh_schema().expect("a schema");
        let options = PostgresOptions {
            tombstone_retention: RETENTION,
            pool_size: 8,
            ..PostgresOptions::new(connection)
        };
        PostgresStore::migrate(&options).await.expect("the migration works");
        let mut fixture = Self { options, clock, store: None };
        fixture.reopen().await;
        fixture
    }

    fn store(&self) -> SharedStore {
        Arc::clone(self.store.as_ref().expect("open")) as SharedStore
    }

    fn clock(&self) -> Arc<ManualClock> {
        Arc::clone(&self.clock)
    }

    async fn reopen(&mut self) {
        if let Some(store) = self.store.take() {
            store.close().await;
        }
        let clock: Arc<ManualClock> = Arc::clone(&self.clock);
        let store = PostgresStore::connect(self.options.clone(), clock).await.expect("the store opens");
        self.store = Some(store);
    }

    async fn purge(&self) {
        self.store.as_ref().expect("open").purge().await.expect("the purge works");
    }
}

aro_store_conformance::suite!(PostgresFixture);
