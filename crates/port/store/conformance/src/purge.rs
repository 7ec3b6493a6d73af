//! What happens when tombstones are finally removed.

use std::time::Duration;

use super::{Fixture, RETENTION, THINGS, create, delete, drain, drain_until, text_of};
use aro_store::StoreError;

fn pass<F: Fixture>(fixture: &F, time: Duration) {
    fixture.clock().advance(time.try_into().unwrap());
}

/// Exactly the cursors that may have missed a deletion are refused, also after a restart.
pub async fn a_cursor_before_the_purge_is_expired_and_a_newer_one_is_not<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    create(&store, "p", "stays").await;
    let doomed = create(&store, "p", "doomed").await;
    let (_, before) = drain_until(&store, None, |changes| changes.len() == 2).await;
    delete(&store, "p", "doomed", doomed.etag).await;
    let (changes, behind) = drain_until(&store, Some(before.clone()), |changes| !changes.is_empty()).await;
    assert_eq!(changes.iter().map(text_of).collect::<Vec<_>>(), ["-p/doomed"]);
    pass(fixture, RETENTION);
    fixture.purge().await;
    for restarted in [false, true] {
        let store = fixture.store();
        let refused = store.changes(THINGS, Some(&before), 10).await;
        assert!(matches!(refused, Err(StoreError::CursorExpired)), "restarted: {restarted}, {refused:?}");
        assert!(drain(&store, Some(behind.clone()), 10).await.0.is_empty());
        if !restarted {
            drop(store);
            fixture.reopen().await;
        }
    }
    let store = fixture.store();
    create(&store, "p", "later").await;
    let (changes, _) = drain_until(&store, Some(behind), |changes| !changes.is_empty()).await;
    assert_eq!(changes.iter().map(text_of).collect::<Vec<_>>(), ["+p/later"]);
    let (changes, _) = drain_until(&store, None, |changes| changes.len() >= 2).await;
    assert_eq!(changes.iter().map(text_of).collect::<Vec<_>>(), ["+p/stays", "+p/later"]);
}

/// The promise of the retention time.
pub async fn young_tombstones_are_kept<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let a = create(&store, "p", "a").await;
    let (_, before) = drain_until(&store, None, |changes| changes.len() == 1).await;
    delete(&store, "p", "a", a.etag).await;
    pass(fixture, RETENTION.checked_sub(Duration::from_secs(1)).unwrap());
    fixture.purge().await;
    let (changes, _) = drain_until(&store, Some(before), |changes| !changes.is_empty()).await;
    assert_eq!(changes.iter().map(text_of).collect::<Vec<_>>(), ["-p/a"]);
}

/// A consumer that remembers versions must not take a new life of a key for an old one.
pub async fn versions_never_go_back_even_when_all_trace_is_gone<F: Fixture>(fixture: &mut F) {
    let mut last = 0;
    for _ in 0..3 {
        let store = fixture.store();
        let created = create(&store, "p", "a").await;
        assert!(created.version > last);
        last = delete(&store, "p", "a", created.etag).await.version;
        pass(fixture, RETENTION);
        fixture.purge().await;
        drop(store);
        fixture.reopen().await;
    }
}

/// It never saw what was deleted before it began, so it cannot miss the deletion.
pub async fn a_consumer_on_its_way_from_the_beginning_is_not_thrown_out_by_old_deletions<F: Fixture>(
    fixture: &mut F,
) {
    let store = fixture.store();
    for n in 0..4 {
        create(&store, "p", &format!("d{n}")).await;
    }
    let doomed = create(&store, "p", "doomed").await;
    delete(&store, "p", "doomed", doomed.etag).await;
    // Written after the deletion: once the feed shows it, the deletion lies behind the feed's end.
    create(&store, "p", "marker").await;
    drain_until(&store, None, |changes| changes.iter().any(|change| text_of(change) == "+p/marker")).await;
    let first = store.changes(THINGS, None, 2).await.unwrap();
    assert!(first.more);
    pass(fixture, RETENTION);
    fixture.purge().await;
    let (rest, _) = drain(&store, Some(first.next.clone()), 10).await;
    assert_eq!(rest.iter().map(text_of).collect::<Vec<_>>(), ["+p/d2", "+p/d3", "+p/marker"]);
    let d3 = rest.into_iter().find_map(|change| match change {
        aro_store::Change::Upsert(document) if document.key.id.as_str() == "d3" => Some(document),
        _ => None,
    });
    delete(&store, "p", "d3", d3.unwrap().etag).await;
    pass(fixture, RETENTION);
    fixture.purge().await;
    let refused = store.changes(THINGS, Some(&first.next), 10).await;
    assert!(matches!(refused, Err(StoreError::CursorExpired)), "this one it could have missed: {refused:?}");
}
