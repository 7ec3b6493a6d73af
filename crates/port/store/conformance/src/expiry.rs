//! Documents with a time to live. The clock is the test's; nothing sleeps.

use std::time::Duration;

use aro_base::Clock as _;

use super::{Fixture, THINGS, conflict, create, doc, drain, get, ids, part, write};
use aro_store::{DocId, NewDocument, Op, Query, SharedStore, Written};

async fn create_for(store: &SharedStore, id: &str, seconds: u64) -> Written {
    let new = NewDocument { ttl: Some(Duration::from_secs(seconds)), ..doc(id) };
    write(store, "p", Op::Create(new)).await.unwrap()
}

fn advance<F: Fixture>(fixture: &F, seconds: u64) {
    fixture.clock().advance(Duration::from_secs(seconds).try_into().unwrap());
}

/// From the very moment, in every kind of read, swept or not.
pub async fn an_expired_document_is_invisible<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    create_for(&store, "short", 30).await;
    create_for(&store, "long", 60).await;
    create(&store, "p", "forever").await;
    let expires = get(&store, "p", "short").await.unwrap().expires.unwrap();
    let due = fixture.clock().now() + Duration::from_secs(30);
    assert_eq!(expires.as_microsecond(), due.as_microsecond());
    advance(fixture, 29);
    assert!(get(&store, "p", "short").await.is_some());
    advance(fixture, 1);
    for swept in [false, true] {
        assert!(get(&store, "p", "short").await.is_none(), "swept: {swept}");
        assert_eq!(ids(&store, &Query::partition(THINGS, part("p")), 10).await, ["forever", "long"]);
        assert_eq!(ids(&store, &Query::all(THINGS).of_type("test/things"), 10).await, ["forever", "long"]);
        fixture.purge().await;
    }
}

/// As after a deletion.
pub async fn an_expired_document_can_be_created_anew_with_a_greater_version<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let first = create_for(&store, "a", 30).await;
    conflict(write(&store, "p", Op::Create(doc("a"))).await);
    advance(fixture, 30);
    let second = create_for(&store, "a", 30).await;
    assert!(second.version > first.version);
    advance(fixture, 30);
    fixture.purge().await;
    let third = create(&store, "p", "a").await;
    assert!(third.version > second.version, "also when the old one was swept");
    assert_eq!(get(&store, "p", "a").await.unwrap().expires, None);
}

/// It does not exist, whatever its etag was.
pub async fn an_expired_document_can_not_be_replaced_deleted_or_checked<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let etag = create_for(&store, "a", 30).await.etag;
    advance(fixture, 31);
    for op in [
        Op::Replace(doc("a"), etag.clone()),
        Op::Delete(DocId::new("a"), etag.clone()),
        Op::Check(DocId::new("a"), etag.clone()),
    ] {
        assert_eq!(conflict(write(&store, "p", op).await), (0, None));
    }
}

/// The time to live counts from each write anew.
pub async fn a_replace_without_ttl_makes_a_document_permanent<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let a = create_for(&store, "a", 30).await;
    let b = create_for(&store, "b", 30).await;
    advance(fixture, 20);
    write(&store, "p", Op::Replace(doc("a"), a.etag)).await.unwrap();
    let longer = NewDocument { ttl: Some(Duration::from_secs(30)), ..doc("b") };
    write(&store, "p", Op::Replace(longer, b.etag)).await.unwrap();
    advance(fixture, 20);
    assert!(get(&store, "p", "a").await.is_some());
    assert!(get(&store, "p", "b").await.is_some());
    advance(fixture, 20);
    assert!(get(&store, "p", "a").await.is_some());
    assert!(get(&store, "p", "b").await.is_none());
}

/// Expiry is not delivered; an expired document is simply no longer delivered.
pub async fn an_expired_document_vanishes_from_the_feed<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let start = store.latest_cursor(THINGS).await.unwrap();
    create_for(&store, "a", 30).await;
    create(&store, "p", "b").await;
    advance(fixture, 31);
    let (changes, cursor) = super::drain_until(&store, Some(start), |changes| !changes.is_empty()).await;
    assert_eq!(changes.iter().map(super::text_of).collect::<Vec<_>>(), ["+p/b"]);
    fixture.purge().await;
    assert!(drain(&store, Some(cursor), 10).await.0.is_empty(), "and no cursor is lost to it");
}
