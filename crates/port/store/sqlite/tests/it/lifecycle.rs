//! Opening, closing, grouping and sweeping.

use std::sync::Arc;
use std::time::Duration;

use aro_store::{
    Batch, Container, DocId, DocKey, DocumentStore as _, NewDocument, Op, PartitionKey, Raw, StoreError,
};
use aro_store_conformance::Fixture as _;
use aro_store_sqlite::{OpenError, SqliteOptions, SqliteStore};
use tokio::task::JoinSet;

use crate::conformance::SqliteFixture;

const THINGS: Container = Container::new("things");

fn create(id: &str, ttl: Option<Duration>) -> Batch {
    let new = NewDocument {
        id: DocId::new(id),
        resource_type: "t".to_owned(),
        resource_id: format!("/{id}"),
        ttl,
        body: Raw::of(&id).expect("a string is JSON"),
    };
    Batch::new(THINGS, PartitionKey::new("p")).with(Op::Create(new))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_the_last_handle_frees_the_directory_at_once() {
    let mut fixture = SqliteFixture::start().await;
    let (options, clock) = (fixture.options(), Arc::clone(&fixture.clock));
    let refused = SqliteStore::open(options.clone(), clock.clone());
    assert!(matches!(refused.err(), Some(OpenError::Locked { .. })));
    drop(fixture.take());
    for n in 0..3 {
        let store = SqliteStore::open(options.clone(), clock.clone()).expect("free again");
        store.write(create(&format!("d{n}"), None)).await.expect("written");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_store_is_unavailable() {
    let fixture = SqliteFixture::start().await;
    let store = fixture.sqlite();
    store.close();
    store.close();
    assert!(matches!(store.write(create("a", None)).await, Err(StoreError::Unavailable(_))));
    assert!(matches!(store.ping().await, Err(StoreError::Unavailable(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_that_wait_together_are_committed_together() {
    let fixture = SqliteFixture::start().await;
    let store = fixture.sqlite();
    let mut writers = JoinSet::new();
    for n in 0..200 {
        let store = Arc::clone(&store);
        writers.spawn(async move { store.write(create(&format!("d{}", n % 190), None)).await.is_ok() });
    }
    let won = writers.join_all().await.into_iter().filter(|won| *won).count();
    assert_eq!(won, 190);
    let stats = store.stats();
    assert_eq!((stats.batches, stats.ops, stats.conflicts), (190, 190, 10));
    assert!(stats.commits < 150 && stats.max_group > 1, "{stats:?}");
    assert_eq!((stats.write_queue, stats.read_queue), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expired_documents_are_swept_without_being_asked() {
    let fixture = SqliteFixture::start().await;
    let clock = Arc::clone(&fixture.clock);
    fixture.sqlite().close();
    let options =
        SqliteOptions { sweep_interval: Duration::from_millis(20), sweep_rows: 3, ..fixture.options() };
    let store = SqliteStore::open(options, clock.clone()).expect("opens");
    for n in 0..10 {
        store.write(create(&format!("d{n}"), Some(Duration::from_secs(5)))).await.expect("written");
    }
    clock.advance(Duration::from_secs(6).try_into().expect("short"));
    let swept = async {
        while store.stats().swept < 10 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), swept).await.expect("swept in rounds of three");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tiny_cache_changes_nothing_but_speed() {
    let fixture = SqliteFixture::start().await;
    fixture.sqlite().close();
    let options = SqliteOptions { cache_bytes: 0, readers: 1, queue: 2, ..fixture.options() };
    let store = SqliteStore::open(options, fixture.clock.clone()).expect("opens");
    let mut tasks = JoinSet::new();
    for n in 0..50 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let id = format!("d{n}");
            store.write(create(&id, None)).await.expect("written");
            let key = DocKey { container: THINGS, partition: PartitionKey::new("p"), id: DocId::new(&id) };
            store.get(&key).await.expect("answers").is_some()
        });
    }
    assert!(tasks.join_all().await.into_iter().all(|found| found));
    assert_eq!(store.stats().cache_hits, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_just_written_is_read_from_memory() {
    let fixture = SqliteFixture::start().await;
    let store = fixture.sqlite();
    let key = DocKey { container: THINGS, partition: PartitionKey::new("p"), id: DocId::new("a") };
    let etag = store.write(create("a", None)).await.expect("written")[0].etag.clone();
    assert!(store.get(&key).await.expect("answers").is_some());
    let delete = Batch::new(THINGS, PartitionKey::new("p")).with(Op::Delete(DocId::new("a"), etag));
    store.write(delete).await.expect("deleted");
    assert!(store.get(&key).await.expect("answers").is_none());
    let stats = store.stats();
    assert_eq!((stats.cache_hits, stats.cache_misses), (2, 0));
}
