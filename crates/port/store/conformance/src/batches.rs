//! Batches: all or nothing, and their limits.

use super::{Fixture, batch, conflict, create, delete, doc, get, ids, part, write};
use aro_store::{BatchError, DocId, MAX_BATCH, MAX_DOCUMENT_BYTES, Op, Query, Raw, StoreError};

/// The order of operations does not matter for atomicity.
pub async fn a_batch_with_a_failing_last_operation_leaves_nothing<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let kept = create(&store, "p", "kept").await;
    let doomed = create(&store, "p", "doomed").await;
    let cursor = store.latest_cursor(super::THINGS).await.unwrap();
    let failing = batch("p")
        .with(Op::Create(doc("new")))
        .with(Op::Replace(doc("kept"), kept.etag.clone()))
        .with(Op::Delete(DocId::new("doomed"), doomed.etag))
        .with(Op::Create(doc("kept")));
    // One batch cannot name a document twice, so the last operation is about another.
    assert!(matches!(store.write(failing).await, Err(StoreError::Batch(BatchError::Twice(_)))));
    let failing = batch("p")
        .with(Op::Create(doc("new")))
        .with(Op::Replace(doc("kept"), kept.etag.clone()))
        .with(Op::Create(doc("doomed")));
    assert_eq!(conflict(store.write(failing).await).0, 2);
    assert!(get(&store, "p", "new").await.is_none());
    assert_eq!(get(&store, "p", "kept").await.unwrap().etag, kept.etag);
    assert_eq!(ids(&store, &Query::partition(super::THINGS, part("p")), 10).await, ["doomed", "kept"]);
    // A cursor may lie a little before what is already written, so what came earlier may be delivered again.
    for change in super::drain(&store, Some(cursor), 10).await.0 {
        assert!(
            change.version() == 1 && change.key().id.as_str() != "new",
            "the feed delivers it: {change:?}"
        );
    }
    assert_eq!(create(&store, "p", "new").await.version, 1);
}

/// Cosmos DB's limit is everybody's.
pub async fn a_batch_of_a_hundred_is_taken_and_one_more_is_refused<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let mut full = batch("p");
    for n in 0..MAX_BATCH {
        full.push(Op::Create(doc(&format!("d{n}"))));
    }
    let over = full.clone().with(Op::Create(doc("over")));
    assert!(matches!(store.write(over).await, Err(StoreError::Batch(BatchError::TooMany(101)))));
    assert!(get(&store, "p", "d0").await.is_none());
    assert_eq!(store.write(full).await.unwrap().len(), MAX_BATCH);
    assert_eq!(ids(&store, &Query::partition(super::THINGS, part("p")), 33).await.len(), MAX_BATCH);
}

/// There is nothing to do, so something is wrong with the caller.
pub async fn an_empty_batch_is_refused<F: Fixture>(fixture: &mut F) {
    let refused = fixture.store().write(batch("p")).await;
    assert!(matches!(refused, Err(StoreError::Batch(BatchError::Empty))));
}

/// Two operations on one document have no defined order.
pub async fn a_batch_that_names_a_document_twice_is_refused<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let twice = batch("p").with(Op::Create(doc("a"))).with(Op::Create(doc("b"))).with(Op::Create(doc("a")));
    assert!(
        matches!(store.write(twice).await, Err(StoreError::Batch(BatchError::Twice(id))) if id.as_str() == "a")
    );
    assert!(get(&store, "p", "a").await.is_none());
}

/// The limit is inclusive.
pub async fn a_document_that_is_too_large_is_refused_and_the_largest_is_taken<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let mut large = doc("large");
    large.body = Raw::of(&"x".repeat(MAX_DOCUMENT_BYTES - 2)).unwrap();
    write(&store, "p", Op::Create(large.clone())).await.unwrap();
    assert_eq!(get(&store, "p", "large").await.unwrap().body.get().len(), MAX_DOCUMENT_BYTES);
    large.id = DocId::new("larger");
    large.body = Raw::of(&"x".repeat(MAX_DOCUMENT_BYTES - 1)).unwrap();
    let refused = write(&store, "p", Op::Create(large)).await;
    assert!(matches!(refused, Err(StoreError::Batch(BatchError::TooLarge { .. }))));
}

/// By every backend, so that a move to another one finds none of them.
pub async fn names_that_some_backend_cannot_hold_are_refused<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let long = "x".repeat(1024);
    for name in ["", "a\0b", "a\nb", long.as_str()] {
        let refused = write(&store, "p", Op::Create(doc(name))).await;
        assert!(matches!(refused, Err(StoreError::Batch(BatchError::BadName { .. }))), "{name:?}");
        assert!(store.get(&super::key("p", name)).await.unwrap().is_none(), "asking is harmless");
        let query = Query::partition(super::THINGS, part(name)).under(name);
        assert!(ids(&store, &query, 10).await.is_empty());
    }
    write(&store, "p", Op::Create(doc(&"ü".repeat(511)))).await.unwrap();
    let mut longest = doc("longest");
    longest.resource_id = format!("/{}", "y/".repeat(999));
    write(&store, "p", Op::Create(longest)).await.unwrap();
}

/// The first failing operation is named, with its key and the etag that would have passed.
pub async fn a_conflict_tells_which_operation_and_what_is_there<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let a = create(&store, "p", "a").await;
    let b = create(&store, "p", "b").await;
    delete(&store, "p", "b", b.etag.clone()).await;
    let refused = batch("p").with(Op::Create(doc("c"))).with(Op::Create(doc("a"))).with(Op::Create(doc("b")));
    let error = store.write(refused).await.unwrap_err();
    assert!(matches!(&error, StoreError::Conflict { index: 1, key, now: Some(now) }
        if *key == super::key("p", "a") && *now == a.etag));
    let refused = batch("p").with(Op::Check(DocId::new("a"), a.etag)).with(Op::Replace(doc("b"), b.etag));
    assert_eq!(conflict(store.write(refused).await), (1, None));
}

/// One result per operation, whatever their kinds.
pub async fn results_come_in_the_order_of_the_operations<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let a = create(&store, "p", "a").await;
    let b = create(&store, "p", "b").await;
    let c = create(&store, "p", "c").await;
    let mixed = batch("p")
        .with(Op::Create(doc("z")))
        .with(Op::Delete(DocId::new("b"), b.etag))
        .with(Op::Check(DocId::new("c"), c.etag.clone()))
        .with(Op::Replace(doc("a"), a.etag))
        .with(Op::Create(doc("d")));
    let written = store.write(mixed).await.unwrap();
    assert_eq!(written.iter().map(|written| written.version).collect::<Vec<_>>(), [1, 2, 1, 2, 1]);
    assert_eq!(written[2], c);
    for (id, at) in [("z", 0), ("a", 3), ("d", 4)] {
        assert_eq!(get(&store, "p", id).await.unwrap().etag, written[at].etag, "{id}");
    }
}
