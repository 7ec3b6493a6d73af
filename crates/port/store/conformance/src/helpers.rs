//! What is built on the contract: collections, followers and the faulty store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::{Fixture, THINGS, batch, conflict, create, doc, get, key, part, write};
use aro_store::fault::{Call, Fault, FaultStore, Rates};
use aro_store::{
    Change, Collection, CollectionError, DocId, Follower, Kind, Names, Op, Page, Query, StoreError,
    UnreadableDocuments,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Counter {
    name: String,
    count: u64,
}

const COUNTERS: Kind<Counter> = Kind::new("Test/Counters");

fn counters<F: Fixture>(fixture: &F) -> Collection<Counter> {
    Collection::new(fixture.store(), THINGS, COUNTERS, UnreadableDocuments::default())
}

fn names(id: &str) -> Names {
    Names { id: DocId::new(id), resource_id: format!("/counters/{id}") }
}

/// From value to operation to value.
pub async fn a_collection_reads_and_writes_values<F: Fixture>(fixture: &mut F) {
    let counters = counters(fixture);
    let partition = part("p");
    let at = counters.key(&partition, &DocId::new("a"));
    assert!(counters.find(&at).await.unwrap().is_none());
    let zero = Counter { name: "ü".to_owned(), count: 0 };
    let expiring = COUNTERS.expiring(Duration::from_secs(5));
    let expiring = Collection::new(fixture.store(), THINGS, expiring, UnreadableDocuments::default());
    let ops = [counters.create(names("a"), &zero), expiring.create(names("b"), &zero)];
    let mut all = counters.batch(&partition);
    for op in ops {
        all.push(op.unwrap());
    }
    counters.store().write(all).await.unwrap();
    let mut read = counters.find(&at).await.unwrap().unwrap();
    assert_eq!((&read.value, read.version), (&zero, 1));
    read.value.count = 7;
    let guard = counters.find(&counters.key(&partition, &DocId::new("b"))).await.unwrap().unwrap();
    assert!(guard.expires.is_some());
    let both = batch("p").with(counters.replace(&read).unwrap()).with(counters.check(&guard));
    counters.store().write(both).await.unwrap();
    let listed = counters.page(&counters.in_partition(&partition), Page::first(10)).await.unwrap();
    let (found, next) = (listed.items, listed.next);
    assert_eq!(found.iter().map(|found| found.value.count).collect::<Vec<_>>(), [7, 0]);
    assert!(next.is_none());
    counters.store().write(batch("p").with(counters.delete(&found[0]))).await.unwrap();
    assert!(counters.find(&at).await.unwrap().is_none());
}

/// Bounded, but enough for a handful of rivals.
pub async fn updates_of_a_collection_survive_contention<F: Fixture>(fixture: &mut F) {
    let counters = counters(fixture);
    let zero = Counter { name: String::new(), count: 0 };
    write(&fixture.store(), "p", counters.create(names("a"), &zero).unwrap()).await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let counters = counters.clone();
        tasks.spawn(async move {
            for _ in 0..10 {
                let add = |counter: &mut Counter| {
                    counter.count += 1;
                    true
                };
                while let Err(error) = counters.update(&key("p", "a"), add).await {
                    assert!(matches!(error, CollectionError::Contended { .. }), "{error:?}");
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let untouched = counters.update(&key("p", "a"), |_| false).await.unwrap().unwrap();
    assert_eq!((untouched.value.count, untouched.version), (40, 41));
    assert!(counters.update(&key("p", "none"), |_| true).await.unwrap().is_none());
}

/// In pages and as a whole; each read of it is counted.
pub async fn an_unreadable_document_does_not_hide_its_neighbours<F: Fixture>(fixture: &mut F) {
    let report = UnreadableDocuments::default();
    let counters = Collection::new(fixture.store(), THINGS, COUNTERS, report.clone());
    let partition = part("p");
    for id in ["a", "b", "c"] {
        let zero = Counter { name: id.to_owned(), count: 0 };
        write(&fixture.store(), "p", counters.create(names(id), &zero).unwrap()).await.unwrap();
    }
    let other: Collection<String> = Collection::new(
        fixture.store(),
        THINGS,
        Kind::new(COUNTERS.resource_type()),
        UnreadableDocuments::default(),
    );
    write(&fixture.store(), "p", other.create(names("bb"), &"no counter".to_owned()).unwrap()).await.unwrap();

    let query = counters.in_partition(&partition);
    let first = counters.page(&query, Page::first(3)).await.unwrap();
    assert_eq!((first.items.len(), first.unreadable.len(), first.next.is_some()), (2, 1, true));
    let all = counters.all(&query).await.unwrap();
    assert_eq!(all.items.iter().map(|item| item.value.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(
        matches!(&all.unreadable[..], [CollectionError::Decode { key, .. }] if key.id.as_str() == "bb"),
        "{:?}",
        all.unreadable
    );
    assert!(matches!(all.complete(), Err(CollectionError::Decode { .. })));
    assert!(counters.find(&key("p", "bb")).await.is_err());
    assert_eq!(report.reads(THINGS, COUNTERS.resource_type()), 3);
}

/// Not as an absent document.
pub async fn a_body_of_another_shape_is_an_error<F: Fixture>(fixture: &mut F) {
    create(&fixture.store(), "p", "a").await;
    let counters = counters(fixture);
    let refused = counters.find(&key("p", "a")).await;
    assert!(matches!(refused, Err(CollectionError::Decode { .. })), "{refused:?}");
}

/// Page by page, also what is written while it waits.
pub async fn a_follower_delivers_everything_and_waits_for_more<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    for n in 0..5 {
        create(&store, "p", &format!("d{n}")).await;
    }
    let mut follower = Follower::new(Arc::clone(&store), THINGS, None).with_limit(2);
    let mut seen = Vec::new();
    let writer = async {
        for n in 5..9 {
            create(&store, "p", &format!("d{n}")).await;
        }
    };
    let reader = async {
        while seen.len() < 9 {
            let page = follower.next().await.unwrap();
            assert!(!page.changes.is_empty() && page.changes.len() <= 2);
            seen.extend(page.changes.iter().map(|change| change.key().id.as_str().to_owned()));
            assert_eq!(follower.cursor(), Some(&page.next));
        }
    };
    let both = async { tokio::join!(writer, reader) };
    tokio::time::timeout(Duration::from_secs(20), both).await.expect("all is delivered");
    assert_eq!(seen, (0..9).map(|n| format!("d{n}")).collect::<Vec<_>>());
}

/// The caller cannot know, and must read.
pub async fn a_lost_reply_is_a_write_that_happened<F: Fixture>(fixture: &mut F) {
    let (store, faults) = FaultStore::wrap(fixture.store(), 1);
    faults.script(Call::Write, [Fault::LostReply]);
    let lost = write(&store, "p", Op::Create(doc("a"))).await;
    assert!(matches!(lost, Err(StoreError::Unavailable(_))));
    assert!(get(&store, "p", "a").await.is_some());
    conflict(write(&store, "p", Op::Create(doc("a"))).await);
    assert_eq!(faults.injected(), 1);
}

/// And returns what a real one would.
pub async fn a_scripted_conflict_and_a_failure_before_write_nothing<F: Fixture>(fixture: &mut F) {
    let (store, faults) = FaultStore::wrap(fixture.store(), 1);
    let etag = create(&store, "p", "a").await.etag;
    faults.script(Call::Write, [Fault::Conflict, Fault::FailBefore, Fault::Conflict]);
    assert_eq!(conflict(write(&store, "p", Op::Create(doc("b"))).await), (0, None));
    let failed = write(&store, "p", Op::Create(doc("b"))).await;
    assert!(matches!(failed, Err(StoreError::Unavailable(_))));
    let refused = write(&store, "p", Op::Replace(doc("a"), etag.clone())).await;
    assert_eq!(conflict(refused), (0, Some(etag)));
    assert!(get(&store, "p", "b").await.is_none());
    faults.random(Rates { fail_before: 1.0, ..Rates::default() });
    assert!(store.ping().await.is_err());
    faults.heal();
    store.ping().await.unwrap();
}

/// Lost replies, failures, conflicts, delays and repeated pages, all at once; a reader that retries and compares versions
/// converges.
pub async fn an_informer_converges_under_random_faults<F: Fixture>(fixture: &mut F) {
    let inner = fixture.store();
    let (store, faults) = FaultStore::wrap(Arc::clone(&inner), 42);
    let mut follower = Follower::new(Arc::clone(&store), THINGS, None).with_limit(3);
    faults.random(Rates {
        fail_before: 0.1,
        lost_reply: 0.1,
        conflict: 0.1,
        delay: 0.2,
        delay_up_to: Duration::from_millis(2),
        redeliver: 0.2,
    });
    let mut writers = JoinSet::new();
    for w in 0..3 {
        let store = Arc::clone(&store);
        writers.spawn(async move {
            for n in 0..40 {
                let at = key(&format!("p{w}"), &format!("d{}", n % 5));
                let Ok(found) = store.get(&at).await else { continue };
                let op = match found {
                    None => Op::Create(doc(at.id.as_str())),
                    Some(found) if n % 6 == 5 => Op::Delete(at.id.clone(), found.etag),
                    Some(found) => Op::Replace(doc(at.id.as_str()), found.etag),
                };
                // Whatever comes back, the next round reads first.
                let _ = store.write(batch(&format!("p{w}")).with(op)).await;
            }
        });
    }
    let mut view: BTreeMap<String, (u64, bool)> = BTreeMap::new();
    let converge = async {
        loop {
            tokio::select! {
                Some(done) = writers.join_next(), if !writers.is_empty() => done.unwrap(),
                page = follower.next() => {
                    for change in page.map(|page| page.changes).unwrap_or_default() {
                        let entry = view.entry(change.key().to_string()).or_default();
                        if change.version() > entry.0 {
                            *entry = (change.version(), matches!(change, Change::Upsert(_)));
                        }
                    }
                }
                () = tokio::time::sleep(Duration::from_millis(20)), if writers.is_empty() => {}
            }
            if writers.is_empty() {
                let truth = inner.query(&Query::all(THINGS), Page::first(100)).await.unwrap().items;
                let truth: BTreeMap<_, _> =
                    truth.into_iter().map(|document| (document.key.to_string(), document.version)).collect();
                let live = view.iter().filter(|(_, (_, live))| *live);
                if live.map(|(key, (version, _))| (key.clone(), *version)).collect::<BTreeMap<_, _>>()
                    == truth
                {
                    return;
                }
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), converge).await.expect("the view becomes the truth");
    assert!(faults.injected() > 20, "there were faults: {}", faults.injected());
}
