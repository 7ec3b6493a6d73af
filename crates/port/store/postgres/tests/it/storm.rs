//! Two replicas write as fast as they can while the feed is followed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aro_base::{ManualClock, Timestamp};
use aro_store::{
    Batch, Container, DocId, DocumentStore as _, Follower, NewDocument, Op, PartitionKey, Raw, SharedStore,
    StoreError,
};
use aro_store_postgres::{PostgresOptions, PostgresStore};
use tokio::task::JoinSet;

use crate::server::shared;

const THINGS: Container = Container::new("things");
const WRITERS: usize = 24;
const DOCUMENTS: usize = 12;

fn doc(id: &str, round: u64) -> NewDocument {
    NewDocument {
        id: DocId::new(id),
        resource_type: "t".to_owned(),
        resource_id: format!("/{id}"),
        ttl: None,
        body: Raw::of(&round).expect("a number is JSON"),
    }
}

/// Creates a document, replaces it twice, and every third one is deleted; a rival's create of it fails each time.
async fn live(store: &PostgresStore, partition: &PartitionKey, id: &str, deleted: bool) -> u64 {
    let batch = || Batch::new(THINGS, partition.clone());
    let mut last = store.write(batch().with(Op::Create(doc(id, 1)))).await.expect("created").remove(0);
    for round in 2..=3 {
        let replace = batch().with(Op::Replace(doc(id, round), last.etag));
        let (written, rival) = tokio::join!(
            store.write(replace),
            store.write(batch().with(Op::Create(doc(&format!("{id}-no"), 0))).with(Op::Create(doc(id, 0))))
        );
        assert!(matches!(rival, Err(StoreError::Conflict { index: 1, .. })), "{rival:?}");
        last = written.expect("replaced").remove(0);
    }
    if deleted {
        let delete = batch().with(Op::Delete(DocId::new(id), last.etag));
        last = store.write(delete).await.expect("deleted").remove(0);
    }
    last.version
}

/// Every third document is deleted in the end.
fn last_version(id: &str) -> u64 {
    let number: u64 = id.rsplit('-').next().and_then(|number| number.parse().ok()).expect("a number");
    if number % 3 == 1 { 4 } else { 3 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_sees_every_document_to_its_end_once_and_in_order_while_two_replicas_storm() {
    let options = PostgresOptions::new(shared().fresh_schema().expect("a schema"));
    PostgresStore::migrate(&options).await.expect("the migration works");
    let clock = ManualClock::at(Timestamp::from_second(1_800_000_000).expect("a time"));
    let mut replicas = Vec::new();
    for _ in 0..2 {
        let clock: Arc<ManualClock> = Arc::clone(&clock);
        replicas.push(PostgresStore::connect(options.clone(), clock).await.expect("opens"));
    }
    let mut follower = Follower::new(Arc::clone(&replicas[1]) as SharedStore, THINGS, None).with_limit(7);
    let mut writers = JoinSet::new();
    for w in 0..WRITERS {
        let store = Arc::clone(&replicas[w % 2]);
        writers.spawn(async move {
            let mut last = Vec::new();
            for n in 0..DOCUMENTS {
                let id = format!("{w}-{n}");
                // Some partitions are everybody's, some the document's own.
                let name = if n % 3 == 0 { id.clone() } else { format!("shared-{}", n % 2) };
                let partition = PartitionKey::new(&name);
                last.push((id.clone(), live(&store, &partition, &id, n % 3 == 1).await));
            }
            last
        });
    }
    let all = async {
        let mut truth = BTreeMap::new();
        while let Some(done) = writers.join_next().await {
            truth.extend(done.expect("the writer did not panic"));
        }
        truth
    };
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    let follow = async {
        let ended = |seen: &BTreeMap<String, u64>| {
            seen.iter().filter(|(id, version)| **version == last_version(id)).count()
        };
        while ended(&seen) < WRITERS * DOCUMENTS {
            let page = follower.next().await.expect("answers");
            for change in &page.changes {
                let before = seen.insert(change.key().id.to_string(), change.version()).unwrap_or(0);
                assert!(change.version() > before, "{change:?} came after version {before}");
            }
        }
    };
    let both = async { tokio::join!(all, follow).0 };
    let truth = tokio::time::timeout(Duration::from_mins(1), both).await.expect("in time");
    assert_eq!(seen, truth);
    let page = replicas[0].changes(THINGS, follower.cursor(), 10).await.expect("answers");
    assert!(page.changes.is_empty(), "nothing comes twice: {page:?}");
}
