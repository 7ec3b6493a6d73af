//! Rows on either store, with a manual clock, and sample events.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use aro_base::{ManualClock, SignedDuration, Timestamp};
use aro_bundle::{Action, Event, EventType};
use aro_maestro::rows::{Bundle, Row, Rows};
use aro_store::testing::postgres::TestPostgres;
use aro_store_postgres::{PostgresOptions, PostgresStore};
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use serde_json::{Value, json};

/// Rows and the owner of their store.
pub struct Site {
    pub rows: Rows,
    pub clock: Arc<ManualClock>,
    _directory: Option<tempfile::TempDir>,
}

fn clock() -> Arc<ManualClock> {
    ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap())
}

impl Site {
    pub fn sqlite() -> Self {
        let (clock, directory) = (clock(), tempfile::tempdir().unwrap());
        let store = SqliteStore::open(SqliteOptions::new(directory.path()), clock.clone()).unwrap();
        Self { rows: Rows::new(store, clock.clone(), "maestro"), clock, _directory: Some(directory) }
    }

    pub async fn postgres() -> Self {
        static SERVER: OnceLock<TestPostgres> = OnceLock::new();
        let server = SERVER.get_or_init(|| TestPostgres::launch().expect("PostgreSQL starts"));
        let options = PostgresOptions::new(server.fresh_schema().unwrap());
        PostgresStore::migrate(&options).await.unwrap();
        let clock = clock();
        let store = PostgresStore::connect(options, clock.clone()).await.unwrap();
        Self { rows: Rows::new(store, clock.clone(), "maestro"), clock, _directory: None }
    }

    pub fn pass(&self, seconds: i64) {
        self.clock.advance(SignedDuration::from_secs(seconds));
    }

    pub async fn consumer(&self, name: &str) -> String {
        self.rows.create_consumer(Some(name), BTreeMap::new()).await.unwrap().value.id
    }

    /// A bundle of version 1 of an existing consumer.
    pub async fn bundle(&self, id: &str, consumer: &str) -> Row<Bundle> {
        self.rows.create(&spec(Action::Create, id, consumer, 0, "one")).await.unwrap()
    }
}

/// A source's event.
pub fn spec(action: Action, id: &str, consumer: &str, version: i32, content: &str) -> Event {
    let event =
        Event::new(format!("event-{id}-{version}-{content}"), "source", EventType::spec(action), consumer);
    let event = Event {
        time: Some(Timestamp::from_second(1_700_000_000).unwrap()),
        resource_id: Some(id.to_owned()),
        resource_version: Some(version),
        metadata: Some(json!({"name": format!("work-{id}"), "labels": {"app": content}}).to_string()),
        log_tracing: Some("{}".to_owned()),
        ..event
    };
    event.with_payload(&json!({ "manifests": [manifest(content)] })).unwrap()
}

pub fn manifest(content: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "config", "namespace": "default"}, "data": {"content": content},
    })
}

/// An agent's event.
pub fn status(id: &str, consumer: &str, version: i32, sequence: &str, condition: &str) -> Event {
    let kind = EventType::status(Action::Update);
    let event =
        Event::new(format!("status-{id}-{sequence}"), format!("{consumer}-work-agent"), kind, consumer);
    let event = Event {
        original_source: Some("maestro".to_owned()),
        resource_id: Some(id.to_owned()),
        resource_version: Some(version),
        sequence_id: Some(sequence.to_owned()),
        metadata: Some(json!({ "name": id }).to_string()),
        ..event
    };
    let conditions = json!([{
        "type": condition, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    event.with_payload(&json!({ "conditions": conditions, "resourceStatus": [] })).unwrap()
}

/// Runs a test on both stores.
#[macro_export]
macro_rules! on_both_stores {
    ($($(#[$doc:meta])* async fn $name:ident($site:ident: Site) $body:block)*) => {
        $(
            mod $name {
                use super::*;

                $(#[$doc])*
                async fn case($site: Site) $body

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn on_sqlite() {
                    case(Site::sqlite()).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn on_postgres() {
                    case(Site::postgres().await).await;
                }
            }
        )*
    };
}
