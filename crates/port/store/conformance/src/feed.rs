//! The change feed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;

use super::{Fixture, THINGS, create, delete, doc, drain, drain_until, get, key, part, text_of, write};
use aro_store::{Batch, Change, Container, Cursor, Op, Page, Query, SharedStore, StoreError};

fn texts(changes: &[Change]) -> Vec<String> {
    changes.iter().map(text_of).collect()
}

/// From a cursor taken before.
pub async fn every_write_is_seen_once_caught_up<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let start = store.latest_cursor(THINGS).await.unwrap();
    for n in 0..20 {
        create(&store, &format!("p{}", n % 3), &format!("d{n}")).await;
    }
    let (changes, _) = drain_until(&store, Some(start), |changes| changes.len() >= 20).await;
    let seen: BTreeSet<String> = texts(&changes).into_iter().collect();
    assert_eq!(seen.len(), 20);
    for change in &changes {
        let Change::Upsert(document) = change else { unreachable!("nothing was deleted") };
        let stored = store.get(&document.key).await.unwrap().unwrap();
        assert_eq!((&stored.etag, stored.body.get()), (&document.etag, document.body.get()));
        assert_eq!(stored.resource_id, document.resource_id);
    }
}

/// Latest-version mode: what was overwritten need not be delivered, the last state must be.
pub async fn only_the_latest_version_need_be_seen<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let start = store.latest_cursor(THINGS).await.unwrap();
    let mut etag = create(&store, "p", "a").await.etag;
    for _ in 0..4 {
        etag = write(&store, "p", Op::Replace(doc("a"), etag)).await.unwrap().etag;
    }
    let done = |changes: &[Change]| changes.last().is_some_and(|change| change.version() == 5);
    let (changes, cursor) = drain_until(&store, Some(start), done).await;
    assert!(changes.is_sorted_by_key(Change::version));
    assert!(drain(&store, Some(cursor), 10).await.0.is_empty());
}

/// So that a consumer that compares versions takes the deletion for newer, and a new life for newer still.
pub async fn deletions_are_seen_with_a_greater_version<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let created = create(&store, "p", "a").await;
    let (_, cursor) = drain_until(&store, None, |changes| changes.len() == 1).await;
    let deleted = delete(&store, "p", "a", created.etag).await;
    let (changes, cursor) = drain_until(&store, Some(cursor), |changes| !changes.is_empty()).await;
    let [Change::Delete { key: of, resource_type, resource_id, version }] = changes.as_slice() else {
        unreachable!("one deletion, not {changes:?}")
    };
    assert_eq!(*of, key("p", "a"));
    assert_eq!((resource_type.as_str(), resource_id.as_str()), ("Test/Things", "/things/a"));
    assert_eq!(*version, deleted.version);
    assert!(*version > created.version);
    create(&store, "p", "a").await;
    let (changes, _) = drain_until(&store, Some(cursor), |changes| !changes.is_empty()).await;
    assert_eq!(texts(&changes), ["+p/a"]);
    assert!(changes[0].version() > deleted.version);
}

/// Also within one batch.
pub async fn a_partition_is_delivered_in_the_order_of_its_writes<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let start = store.latest_cursor(THINGS).await.unwrap();
    let mut expected = Vec::new();
    for round in 0..5 {
        let mut batch = super::batch("p");
        for n in [2, 0, 1] {
            let id = format!("d{round}-{n}");
            batch.push(Op::Create(doc(&id)));
            expected.push(format!("+p/{id}"));
        }
        store.write(batch).await.unwrap();
        create(&store, "q", &format!("other{round}")).await;
    }
    let (changes, _) = drain_until(&store, Some(start), |changes| changes.len() >= 20).await;
    let of_p: Vec<_> = texts(&changes).into_iter().filter(|text| text.starts_with("+p/")).collect();
    assert_eq!(of_p, expected);
}

/// So that a consumer sees that it need not store it again.
pub async fn nothing_new_gives_back_the_same_cursor<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let empty = store.latest_cursor(THINGS).await.unwrap();
    assert_eq!(store.changes(THINGS, Some(&empty), 10).await.unwrap().next, empty);
    create(&store, "p", "a").await;
    let (_, cursor) = drain_until(&store, Some(empty), |changes| !changes.is_empty()).await;
    let again = store.changes(THINGS, Some(&cursor), 10).await.unwrap();
    assert_eq!(again.next, cursor);
    assert!(again.changes.is_empty() && !again.more);
}

/// A consumer stores its cursor as text and is started again much later.
pub async fn the_feed_goes_on_after_a_restart_without_a_gap<F: Fixture>(fixture: &mut F) {
    let mut cursor: Option<Cursor> = None;
    let mut seen = BTreeSet::new();
    for round in 0..4 {
        let store = fixture.store();
        for n in 0..6 {
            create(&store, &format!("p{n}"), &format!("d{round}-{n}")).await;
        }
        // Only part of it is read before the restart.
        let page = store.changes(THINGS, cursor.as_ref(), 4).await.unwrap();
        seen.extend(texts(&page.changes));
        cursor = Some(Cursor::new(page.next.as_str()));
        drop(store);
        fixture.reopen().await;
    }
    let missing = 24 - seen.len();
    let (changes, _) = drain_until(&fixture.store(), cursor, |changes| changes.len() >= missing).await;
    seen.extend(texts(&changes));
    assert_eq!(seen.len(), 24, "{seen:?}");
}

/// No cursor means from the start: what is there now, nothing that was deleted before.
pub async fn the_beginning_is_every_live_document<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    for id in ["a", "b", "c", "d"] {
        create(&store, "p", id).await;
    }
    let b = get(&store, "p", "b").await.unwrap();
    delete(&store, "p", "b", b.etag).await;
    let a = get(&store, "p", "a").await.unwrap();
    write(&store, "p", Op::Replace(doc("a"), a.etag)).await.unwrap();
    let done = |changes: &[Change]| texts(changes).contains(&"+p/a".to_owned()) && changes.len() >= 3;
    let (mut changes, _) = drain_until(&store, None, done).await;
    changes.retain(|change| matches!(change, Change::Upsert(_)));
    let live: BTreeSet<_> = texts(&changes).into_iter().collect();
    assert_eq!(live.into_iter().collect::<Vec<_>>(), ["+p/a", "+p/c", "+p/d"]);
}

/// Each has its own feed and its own cursors.
pub async fn containers_do_not_see_each_other<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let others = Container::new("others");
    let batch = |id: &str| Batch::new(others, part("p")).with(Op::Create(doc(id)));
    store.write(batch("x")).await.unwrap();
    create(&store, "p", "a").await;
    let (changes, _) = drain_until(&store, None, |changes| !changes.is_empty()).await;
    assert_eq!(texts(&changes), ["+p/a"]);
    let foreign = store.latest_cursor(others).await.unwrap();
    let refused = store.changes(THINGS, Some(&foreign), 10).await;
    assert!(matches!(refused, Err(StoreError::CursorExpired)), "{refused:?}");
}

/// "List again" is the one safe answer.
pub async fn a_cursor_that_is_not_ours_is_refused<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    create(&store, "p", "a").await;
    let real = store.latest_cursor(THINGS).await.unwrap();
    for bad in ["", "junk", "0.0.0.0", "1.2.3.things", &format!("x{}", real.as_str())] {
        let refused = store.changes(THINGS, Some(&Cursor::new(bad)), 10).await;
        assert!(matches!(refused, Err(StoreError::CursorExpired)), "{bad}: {refused:?}");
    }
}

/// Starts writers that create, replace and delete in their own partitions until the test stops them.
fn writers(store: &SharedStore, count: usize, stop: &Arc<AtomicBool>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for w in 0..count {
        let (store, stop) = (Arc::clone(store), Arc::clone(stop));
        tasks.spawn(async move {
            let partition = format!("p{w}");
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) && n < 400 {
                let id = format!("d{}", n % 10);
                match get(&store, &partition, &id).await {
                    None => drop(create(&store, &partition, &id).await),
                    Some(found) if n % 7 == 0 => drop(delete(&store, &partition, &id, found.etag).await),
                    Some(found) => {
                        drop(write(&store, &partition, Op::Replace(doc(&id), found.etag)).await.unwrap());
                    }
                }
                n += 1;
            }
        });
    }
    tasks
}

/// Everything live, by key, with its version.
async fn listing(store: &SharedStore) -> BTreeMap<String, u64> {
    let mut page = Page::first(100);
    let mut all = BTreeMap::new();
    loop {
        let got = store.query(&Query::all(THINGS), page).await.unwrap();
        all.extend(got.items.iter().map(|document| (document.key.to_string(), document.version)));
        match got.next {
            Some(next) => page = Page { size: 100, after: Some(next) },
            None => return all,
        }
    }
}

/// Applies changes the way an informer does: by version, deaf to repetition.
fn follow(view: &mut BTreeMap<String, (u64, bool)>, changes: &[Change]) {
    for change in changes {
        let entry = view.entry(change.key().to_string()).or_insert((0, false));
        if change.version() > entry.0 {
            *entry = (change.version(), matches!(change, Change::Upsert(_)));
        }
    }
}

fn live(view: &BTreeMap<String, (u64, bool)>) -> BTreeMap<String, u64> {
    view.iter().filter(|(_, (_, live))| *live).map(|(key, (version, _))| (key.clone(), *version)).collect()
}

/// The way every informer starts.
pub async fn listing_after_the_latest_cursor_misses_nothing_under_concurrent_writers<F: Fixture>(
    fixture: &mut F,
) {
    let store = fixture.store();
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = writers(&store, 4, &stop);
    let mut views = Vec::new();
    for _ in 0..5 {
        let cursor = store.latest_cursor(THINGS).await.unwrap();
        let listed = listing(&store).await;
        let view =
            listed.into_iter().map(|(key, version)| (key, (version, true))).collect::<BTreeMap<_, _>>();
        views.push((cursor, view));
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let truth = listing(&store).await;
    for (cursor, mut view) in views {
        let mut all = Vec::new();
        drain_until(&store, Some(cursor), |changes| {
            all.extend_from_slice(&changes[all.len()..]);
            let mut view = view.clone();
            follow(&mut view, &all);
            live(&view) == truth
        })
        .await;
        follow(&mut view, &all);
        assert_eq!(live(&view), truth);
    }
}

/// Follows all the while in small pages, and checks the order within each partition as it goes.
pub async fn a_slow_consumer_sees_the_last_state_of_everything_under_concurrent_writers<F: Fixture>(
    fixture: &mut F,
) {
    let store = fixture.store();
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = writers(&store, 4, &stop);
    let mut cursor = None;
    let mut view: BTreeMap<String, (u64, bool)> = BTreeMap::new();
    let mut pages = 0;
    while pages < 200 && !tasks.is_empty() {
        let page = store.changes(THINGS, cursor.as_ref(), 5).await.unwrap();
        for change in &page.changes {
            let seen = view.get(&change.key().to_string()).map_or(0, |entry| entry.0);
            assert!(change.version() > seen, "no delivery goes back: {change:?} after {seen}");
        }
        follow(&mut view, &page.changes);
        cursor = Some(page.next);
        pages += 1;
        while let Some(done) = tasks.try_join_next() {
            done.unwrap();
        }
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let truth = listing(&store).await;
    let mut all = Vec::new();
    drain_until(&store, cursor, |changes| {
        all.extend_from_slice(&changes[all.len()..]);
        let mut view = view.clone();
        follow(&mut view, &all);
        live(&view) == truth
    })
    .await;
}

/// While it waits, and also when the write comes between its last look and its wait.
pub async fn a_subscriber_is_woken_by_a_write<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let mut signal = store.subscribe(THINGS);
    let mut cursor = store.latest_cursor(THINGS).await.unwrap();
    for n in 0..4 {
        let id = format!("d{n}");
        if n % 2 == 0 {
            create(&store, "p", &id).await;
        }
        let woken = async {
            loop {
                // It waits before it looks: only the signal can get it here.
                signal.changed().await;
                let page = store.changes(THINGS, Some(&cursor), 10).await.unwrap();
                if !page.changes.is_empty() {
                    return page;
                }
            }
        };
        let late = async {
            if n % 2 == 1 {
                create(&store, "p", &id).await;
            }
        };
        let both = async { tokio::join!(woken, late).0 };
        let page = tokio::time::timeout(Duration::from_secs(10), both).await.expect("woken in time");
        assert_eq!(texts(&page.changes), [format!("+p/{id}")]);
        cursor = page.next;
    }
}
