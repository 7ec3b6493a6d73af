//! Many writers at once.

use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinSet;

use super::{Fixture, THINGS, batch, create, doc, doc_with, drain, get, write};
use aro_store::{Change, Op, StoreError};

/// Sixteen tasks, fifty increments each, one counter.
pub async fn concurrent_increments_are_all_counted<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    write(&store, "p", Op::Create(doc_with("counter", &json!(0)))).await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            for _ in 0..50 {
                loop {
                    let seen = get(&store, "p", "counter").await.unwrap();
                    let count: u64 = seen.body.to().unwrap();
                    let next = doc_with("counter", &json!(count + 1));
                    match write(&store, "p", Op::Replace(next, seen.etag)).await {
                        Ok(_) => break,
                        Err(StoreError::Conflict { .. }) => {}
                        Err(error) => unreachable!("{error:?}"),
                    }
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let end = get(&store, "p", "counter").await.unwrap();
    assert_eq!(end.body.get(), "800");
    assert_eq!(end.version, 801);
}

/// And the others get the winner's etag.
pub async fn of_concurrent_creates_of_one_key_exactly_one_wins<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    for round in 0..5 {
        let mut tasks = JoinSet::new();
        for n in 0..12 {
            let store = Arc::clone(&store);
            let id = format!("d{round}");
            tasks.spawn(async move { write(&store, "p", Op::Create(doc_with(&id, &json!(n)))).await });
        }
        let (mut won, mut lost) = (Vec::new(), Vec::new());
        while let Some(done) = tasks.join_next().await {
            match done.unwrap() {
                Ok(written) => won.push(written.etag),
                Err(StoreError::Conflict { now, .. }) => lost.push(now.unwrap()),
                Err(error) => unreachable!("{error:?}"),
            }
        }
        assert_eq!(won.len(), 1);
        assert_eq!(lost.len(), 11);
        assert!(lost.iter().all(|etag| *etag == won[0]));
    }
}

/// Two documents that are always written together are always read alike, in one query.
pub async fn a_reader_never_sees_half_a_batch<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let pair = |n: u64| ["a", "b"].map(|id| doc_with(id, &json!(n)));
    let [a, b] = pair(0);
    let mut etags = store.write(batch("p").with(Op::Create(a)).with(Op::Create(b))).await.unwrap();
    let mut tasks = JoinSet::new();
    {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            for n in 1..100 {
                let [a, b] = pair(n);
                let both = batch("p")
                    .with(Op::Replace(a, etags[0].etag.clone()))
                    .with(Op::Replace(b, etags[1].etag.clone()));
                etags = store.write(both).await.unwrap();
            }
        });
    }
    let query = aro_store::Query::partition(THINGS, super::part("p"));
    while tasks.try_join_next().is_none() {
        let got = store.query(&query, aro_store::Page::first(10)).await.unwrap().items;
        assert_eq!(got[0].body.get(), got[1].body.get());
    }
}

/// A consumer that gets version n from the feed and reads must get at least n: no cache may lag behind the feed.
pub async fn what_the_feed_has_shown_is_what_a_read_returns<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    for n in 0..4 {
        create(&store, "p", &format!("d{n}")).await;
    }
    let mut tasks = JoinSet::new();
    for w in 0..4 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let id = format!("d{w}");
            let mut etag = get(&store, "p", &id).await.unwrap().etag;
            for _ in 0..60 {
                etag = write(&store, "p", Op::Replace(doc(&id), etag)).await.unwrap().etag;
            }
        });
    }
    let mut cursor = None;
    while !tasks.is_empty() {
        let (changes, next) = drain(&store, cursor, 100).await;
        for change in &changes {
            let Change::Upsert(delivered) = change else { continue };
            let read = store.get(&delivered.key).await.unwrap().unwrap();
            assert!(
                read.version >= delivered.version,
                "read {} after {} was delivered",
                read.version,
                delivered.version
            );
        }
        cursor = Some(next);
        while let Some(done) = tasks.try_join_next() {
            done.unwrap();
        }
    }
}
