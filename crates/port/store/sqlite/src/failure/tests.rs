use std::time::Duration;

use aro_base::{ManualClock, Timestamp, chain};
use aro_store::{Batch, Container, DocId, DocKey, DocumentStore as _, NewDocument, Op, PartitionKey, Raw};

use super::*;
use crate::faults::Point;
use crate::faults::planned::Fault;
use crate::{SqliteOptions, SqliteStore};

const THINGS: Container = Container::new("things");

/// Longer than any test takes that does not hang.
const LONG: Duration = Duration::from_secs(20);

fn open(directory: &tempfile::TempDir) -> Arc<SqliteStore> {
    let clock = ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap());
    let options = SqliteOptions { readers: 1, ..SqliteOptions::new(directory.path()) };
    SqliteStore::open(options, clock).unwrap()
}

async fn write(store: &SqliteStore, id: &str) -> Result<(), StoreError> {
    let new = NewDocument {
        id: DocId::new(id),
        resource_type: "t".to_owned(),
        resource_id: format!("/{id}"),
        ttl: None,
        body: Raw::of(&id).unwrap(),
    };
    let batch = Batch::new(THINGS, PartitionKey::new("p")).with(Op::Create(new));
    tokio::time::timeout(LONG, store.write(batch)).await.expect("no writer hangs").map(drop)
}

async fn holds(store: &SqliteStore, id: &str) -> bool {
    let key = DocKey { container: THINGS, partition: PartitionKey::new("p"), id: DocId::new(id) };
    let read = tokio::time::timeout(LONG, store.get(&key)).await.expect("no reader hangs");
    read.unwrap().is_some()
}

/// Asserts that a store takes no writes any more and reports it, but still answers reads.
async fn assert_failed(store: &SqliteStore) {
    let reported = tokio::time::timeout(LONG, store.failed()).await.expect("the owner learns of it");
    assert!(reported.starts_with("the store has failed"), "{reported}");
    let refused = write(store, "late").await.unwrap_err();
    assert!(chain(&refused).to_string().contains("the store has failed"), "{}", chain(&refused));
    assert!(store.sweep().await.is_err());
    assert!(store.ping().await.is_err(), "it is not ready");
    assert!(!holds(store, "late").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failed_flush_nothing_is_written_until_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory);
    write(&store, "before").await.unwrap();
    store.faults().plan(Point::Commit, Fault::Error);
    assert!(matches!(write(&store, "lost").await, Err(StoreError::Unavailable(_))));
    assert_failed(&store).await;
    assert!(holds(&store, "before").await, "what was acknowledged can be read");
    store.close();
    let store = open(&directory);
    assert!(holds(&store, "before").await && !holds(&store, "lost").await && !holds(&store, "late").await);
    write(&store, "after").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failed_checkpoint_the_write_ahead_log_stays_for_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory);
    store.faults().plan(Point::CheckpointFlush, Fault::Error);
    write(&store, "before").await.unwrap();
    assert_failed(&store).await;
    store.close();
    let log =
        std::fs::metadata(directory.path().join("store.db-wal")).expect("closing does not remove the log");
    assert!(log.len() > 0, "nor does it cut it off");
    let store = open(&directory);
    assert!(holds(&store, "before").await);
    write(&store, "after").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_the_writer_answers_every_caller() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory);
    write(&store, "before").await.unwrap();
    store.faults().plan(Point::Commit, Fault::Panic);
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..2000 {
        let store = Arc::clone(&store);
        writers.spawn(async move { write(&store, &format!("d{n}")).await.is_err() });
    }
    assert!(writers.join_all().await.into_iter().all(|failed| failed));
    assert_failed(&store).await;
    store.close();
    assert!(holds(&open(&directory), "before").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_the_checkpoint_thread_fails_the_store_instead_of_letting_the_log_grow() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory);
    store.faults().plan(Point::CheckpointFlush, Fault::Panic);
    write(&store, "before").await.unwrap();
    assert_failed(&store).await;
    store.close();
    assert!(holds(&open(&directory), "before").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_a_read_ends_no_reader_thread() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory);
    write(&store, "before").await.unwrap();
    for _ in 0..3 {
        let read =
            tokio::time::timeout(LONG, store.read_that_panics()).await.expect("the caller is answered");
        assert!(matches!(read, Err(StoreError::Unavailable(_))));
    }
    tokio::time::timeout(LONG, store.ping()).await.expect("the only reader still works").unwrap();
    write(&store, "after").await.unwrap();
}
