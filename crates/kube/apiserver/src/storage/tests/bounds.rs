//! What one cluster costs the others: history, and the lock that the log thread needs.

use std::sync::mpsc;
use std::time::Duration;

use aro_base::{ManualClock, SignedDuration, Timestamp};
use futures::future::join_all;

use super::*;

const DEADLINE: Duration = Duration::from_secs(20);

fn clock() -> Arc<ManualClock> {
    ManualClock::at(Timestamp::from_second(1_800_000_000).unwrap())
}

fn limits(bytes: u64) -> HistoryLimits {
    HistoryLimits { events: 100_000, bytes, age: SignedDuration::from_mins(10) }
}

async fn put(store: &Arc<ClusterStore>, key: &str, value: &Value) {
    let cache = store.watch_cache("things");
    let latest = store.latest(&cache, key);
    let expect = latest.map_or(Expect::Absent, |latest| Expect::Version(latest.version));
    store.commit(&cache, key, expect, Change::Put(Draft::of(value))).await.unwrap();
}

#[tokio::test]
async fn history_of_a_busy_cluster_is_cut_and_that_of_a_quiet_one_is_not() {
    const BYTES: u64 = 100_000;
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(dir.path(), false, limits(BYTES), clock()).unwrap();
    let quiet = engine.create("quiet", Vec::new()).await.unwrap();
    let busy = engine.create("busy", Vec::new()).await.unwrap();
    for index in 0..5 {
        put(&quiet, &format!("a/{index}"), &object("a/x", index)).await;
    }
    let mut large = object("a/x", 1);
    large["text"] = json!("x".repeat(1000));
    for _ in 0..500 {
        put(&busy, "a/x", &large).await;
    }
    // The reply comes before the cut: one more write is behind it.
    put(&quiet, "a/last", &object("a/last", 1)).await;
    assert!(engine.history_bytes() <= BYTES + 3000, "{} bytes", engine.history_bytes());
    assert!(engine.history_bytes() > BYTES / 2, "no more than needed: {} bytes", engine.history_bytes());
    let (busy_cache, quiet_cache) = (busy.watch_cache("things"), quiet.watch_cache("things"));
    let too_old = busy_cache.since(0, usize::MAX).unwrap_err();
    assert!(too_old.oldest > 300, "{too_old:?}");
    assert!(busy_cache.since(too_old.oldest, usize::MAX).is_ok(), "from the floor on everything is there");
    assert!(busy_cache.list_at(1, "", None, usize::MAX, |_| true).is_err());
    assert_eq!(quiet_cache.since(0, usize::MAX).unwrap().len(), 6);

    drop((busy_cache, quiet_cache));
    for store in [busy, quiet] {
        engine.drop_space(&store).await.unwrap();
    }
    assert_eq!(engine.history_bytes(), 0, "what is dropped gives its bytes back");
    engine.close();
}

#[tokio::test]
async fn events_that_are_too_old_are_dropped_where_nothing_is_written_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let clock = clock();
    let engine = Engine::open(dir.path(), false, limits(u64::MAX), clock.clone()).unwrap();
    let store = engine.create("one", Vec::new()).await.unwrap();
    put(&store, "a/x", &object("a/x", 1)).await;
    clock.advance(SignedDuration::from_mins(9));
    put(&store, "a/y", &object("a/y", 2)).await;
    let cache = store.watch_cache("things");
    assert_eq!(cache.since(0, usize::MAX).unwrap().len(), 2);
    clock.advance(SignedDuration::from_mins(2));
    engine.compact();
    assert_eq!(cache.since(0, usize::MAX).unwrap_err(), TooOld { oldest: 1 });
    assert_eq!(cache.since(1, usize::MAX).unwrap().len(), 1);
    clock.advance(SignedDuration::from_mins(20));
    engine.compact();
    assert_eq!(cache.since(1, usize::MAX).unwrap_err(), TooOld { oldest: 2 });
    assert!(cache.since(2, usize::MAX).unwrap().is_empty(), "the newest version is never too old");
    assert_eq!(engine.history_bytes(), 0);
    engine.close();
}

/// More objects than a list copies at once.
const MANY: usize = 3000;

async fn many(engine: &Engine) -> Arc<ClusterStore> {
    let store = engine.create("one", Vec::new()).await.unwrap();
    let keys: Vec<String> = (0..MANY).map(|index| format!("a/{index:05}")).collect();
    join_all(keys.iter().map(|key| {
        let store = &store;
        async move { put(store, key, &object(key, 1)).await }
    }))
    .await;
    store
}

#[test]
fn a_selector_that_takes_long_keeps_no_write_waiting_and_sees_one_version() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(dir.path(), false, 10_000, SystemClock::shared()).unwrap();
    let store = runtime().block_on(many(&engine));
    let cache = store.watch_cache("things");
    let version = store.version();
    let before = cache.list("", None, usize::MAX, || store.version(), |_| true);
    let (orders, inbox) = mpsc::channel();
    let (done, written) = mpsc::channel();
    let writer = {
        let store = store.clone();
        std::thread::spawn(move || {
            let runtime = runtime();
            while inbox.recv().is_ok() {
                runtime.block_on(async {
                    // One is changed, one is deleted and one is added, behind what the list has read.
                    put(&store, "a/02500", &object("a/02500", 2)).await;
                    let cache = store.watch_cache("things");
                    let gone = store.latest(&cache, "a/02600").unwrap().version;
                    store.commit(&cache, "a/02600", Expect::Version(gone), Change::Delete).await.unwrap();
                    put(&store, "a/02700-new", &object("a/02700-new", 1)).await;
                });
                let _ = done.send(());
            }
        })
    };
    let mut asked = false;
    let listed = cache.list(
        "",
        None,
        usize::MAX,
        || store.version(),
        |_| {
            if !asked {
                asked = true;
                orders.send(()).unwrap();
                written.recv_timeout(DEADLINE).expect("a write is done while a selector is evaluated");
            }
            true
        },
    );
    drop(orders);
    writer.join().unwrap();
    assert_eq!((listed.version, listed.total), (version, Some(MANY)));
    let versions = |objects: &[Arc<Stored>]| objects.iter().map(|object| object.version).collect::<Vec<_>>();
    assert_eq!(versions(&listed.objects), versions(&before.objects), "the list shows one version");
    assert_eq!(cache.len(), MANY);
    assert!(cache.get("a/02600").is_none() && cache.get("a/02700-new").is_some());
    engine.close();
}

#[test]
fn a_list_whose_history_is_cut_meanwhile_starts_over_and_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(dir.path(), false, 1, SystemClock::shared()).unwrap();
    let store = runtime().block_on(many(&engine));
    let cache = store.watch_cache("things");
    let mut asked = false;
    let (orders, inbox) = mpsc::channel();
    let (done, written) = mpsc::channel();
    let writer = {
        let store = store.clone();
        std::thread::spawn(move || {
            while inbox.recv().is_ok() {
                runtime().block_on(async {
                    for value in 0..200 {
                        put(&store, "a/02500", &object("a/02500", value)).await;
                    }
                });
                let _ = done.send(());
            }
        })
    };
    let listed = cache.list(
        "",
        None,
        usize::MAX,
        || store.version(),
        |_| {
            if !asked {
                asked = true;
                orders.send(()).unwrap();
                written.recv_timeout(DEADLINE).unwrap();
            }
            true
        },
    );
    drop(orders);
    writer.join().unwrap();
    assert_eq!((listed.objects.len(), listed.version), (MANY, store.version()));
    engine.close();
}
