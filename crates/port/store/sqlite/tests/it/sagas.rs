//! Journals of sagas in documents.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails by panicking")]

use aro_base::Timestamp;
use aro_control::saga::{Journal as _, JournalError, Phase, Record};
use aro_control::{Epoch, FencingToken};
use aro_store::{Container, DocumentJournal, Fence, PartitionKey, SharedStore};
use aro_store_conformance::Fixture as _;

use crate::conformance::SqliteFixture;

const JOBS: Container = Container::new("jobs");

fn journal(store: &SharedStore) -> DocumentJournal {
    let fence = Fence::new(store.clone(), JOBS, "test");
    DocumentJournal::new(store.clone(), JOBS, fence, |key| (PartitionKey::new(key), String::new()))
}

fn record() -> Record {
    Record {
        saga: "test.build".to_owned(),
        version: 1,
        phase: Phase::Undoing { step: "network".to_owned(), reason: "refused".to_owned() },
        done: vec!["names".to_owned()],
        undone: Vec::new(),
        since: Timestamp::UNIX_EPOCH,
        waiting: None,
        state: [("network", "10.0.0.0")].into_iter().collect(),
    }
}

fn token(epoch: u64) -> FencingToken {
    FencingToken { shard: 0, epoch: Epoch(epoch) }
}

#[tokio::test]
async fn a_journal_survives_and_is_replaced_under_its_revision_only() {
    let fixture = SqliteFixture::start().await;
    let store = fixture.store();
    let journal = journal(&store);
    assert!(journal.load("k", "test.build").await.unwrap().is_none());
    let first = journal.store("k", &record(), None, None).await.unwrap();
    let read = journal.load("k", "test.build").await.unwrap().unwrap();
    assert_eq!((&read.record, &read.revision), (&record(), &first));
    let second = journal.store("k", &record(), Some(&first), None).await.unwrap();
    assert_ne!(first, second);
    for stale in [Some(&first), None] {
        let late = journal.store("k", &record(), stale, None).await;
        assert!(matches!(late, Err(JournalError::Conflict { .. })));
    }
    journal.remove("k", "test.build", None).await.unwrap();
    journal.remove("k", "test.build", None).await.unwrap();
    assert!(journal.load("k", "test.build").await.unwrap().is_none());
}

#[tokio::test]
async fn a_former_holder_of_the_lease_writes_no_journal() {
    let fixture = SqliteFixture::start().await;
    let store = fixture.store();
    let (old, new) = (journal(&store), journal(&store));
    let revision = old.store("k", &record(), None, Some(token(1))).await.unwrap();
    let revision = new.store("k", &record(), Some(&revision), Some(token(2))).await.unwrap();
    let late = old.store("k", &record(), Some(&revision), Some(token(1))).await;
    assert!(matches!(late, Err(JournalError::Conflict { .. })));
    let later = old.store("k", &record(), Some(&revision), Some(token(1))).await;
    assert!(matches!(later, Err(JournalError::Failed { .. })), "the fence is read again");
    assert!(new.store("k", &record(), Some(&revision), Some(token(2))).await.is_ok());
}
