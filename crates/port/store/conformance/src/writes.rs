//! Single conditional writes.

use aro_base::ETag;

use super::{Fixture, conflict, create, delete, doc, doc_with, get, key, part, write};
use aro_store::{Batch, Container, DocId, DocKey, NewDocument, Op, Raw};

/// All that was written comes back, in the caller's spelling.
pub async fn a_created_document_reads_back_as_written<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let new = NewDocument {
        id: DocId::new("Id-ü"),
        resource_type: "Test/THINGS".to_owned(),
        resource_id: "/Things/Ünï|%_'\"".to_owned(),
        ttl: None,
        body: Raw::parse(
            "{ \"text\" : \"ü \\u0000 ' \\\" \\\\\",  \"big\": 123456789012345678901234567890 }".to_owned(),
        )
        .unwrap(),
    };
    let written = write(&store, "Part", Op::Create(new.clone())).await.unwrap();
    let read = get(&store, "pART", "Id-ü").await.unwrap();
    assert_eq!(read.key, key("part", "Id-ü"));
    assert_eq!(read.resource_type, new.resource_type);
    assert_eq!(read.resource_id, new.resource_id);
    assert_eq!(read.body.get(), new.body.get());
    assert_eq!((read.etag, read.version), (written.etag, written.version));
    assert_eq!(read.version, 1);
    assert_eq!(read.expires, None);
    use aro_base::Clock as _;
    assert_eq!(read.modified.as_microsecond(), fixture.clock().now().as_microsecond());
}

/// Create is not upsert.
pub async fn creating_what_exists_conflicts<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let first = create(&store, "p", "a").await;
    let again = write(&store, "p", Op::Create(doc_with("a", &serde_json::json!({ "other": 1 })))).await;
    assert_eq!(conflict(again), (0, Some(first.etag)));
    assert!(get(&store, "p", "a").await.unwrap().body.get().contains("\"a\""));
}

/// A stale or foreign etag is refused, with the current one in the error.
pub async fn replacing_needs_the_current_etag<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let first = create(&store, "p", "a").await;
    let second = write(&store, "p", Op::Replace(doc("a"), first.etag.clone())).await.unwrap();
    assert_eq!(second.version, 2);
    assert_ne!(first.etag, second.etag);
    for stale in [first.etag, ETag::new("junk"), ETag::new("")] {
        let refused = write(&store, "p", Op::Replace(doc("a"), stale)).await;
        assert_eq!(conflict(refused), (0, Some(second.etag.clone())));
    }
    assert_eq!(get(&store, "p", "a").await.unwrap().version, 2);
}

/// The same for deletes.
pub async fn deleting_needs_the_current_etag<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let first = create(&store, "p", "a").await;
    let second = write(&store, "p", Op::Replace(doc("a"), first.etag.clone())).await.unwrap();
    let refused = write(&store, "p", Op::Delete(DocId::new("a"), first.etag)).await;
    assert_eq!(conflict(refused), (0, Some(second.etag.clone())));
    let gone = delete(&store, "p", "a", second.etag).await;
    assert_eq!(gone.version, 3);
    assert!(get(&store, "p", "a").await.is_none());
}

/// A check holds or fails like any other operation, and leaves its document alone.
pub async fn checking_guards_a_batch_and_writes_nothing<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let guard = create(&store, "p", "guard").await;
    let check = Op::Check(DocId::new("guard"), guard.etag.clone());
    let written =
        store.write(super::batch("p").with(check.clone()).with(Op::Create(doc("a")))).await.unwrap();
    assert_eq!(written[0], guard);
    assert_eq!(get(&store, "p", "guard").await.unwrap().version, 1);
    let moved = write(&store, "p", Op::Replace(doc("guard"), guard.etag)).await.unwrap();
    let refused = store.write(super::batch("p").with(Op::Create(doc("b"))).with(check)).await;
    assert_eq!(conflict(refused), (1, Some(moved.etag)));
    assert!(get(&store, "p", "b").await.is_none());
}

/// No waiting for anything between delete and create; the version distinguishes the new life from the old.
pub async fn a_deleted_document_is_gone_at_once_and_can_be_created_anew<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let mut last = 0;
    for _ in 0..3 {
        let created = create(&store, "p", "a").await;
        assert!(created.version > last);
        let deleted = delete(&store, "p", "a", created.etag.clone()).await;
        assert!(deleted.version > created.version);
        assert!(get(&store, "p", "a").await.is_none());
        let refused = write(&store, "p", Op::Replace(doc("a"), created.etag)).await;
        assert_eq!(conflict(refused), (0, None));
        last = deleted.version;
    }
}

/// There is nothing to compare with.
pub async fn an_absent_document_can_not_be_replaced_deleted_or_checked<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let etag = create(&store, "p", "a").await.etag;
    for op in [
        Op::Replace(doc("b"), etag.clone()),
        Op::Delete(DocId::new("b"), etag.clone()),
        Op::Check(DocId::new("b"), etag.clone()),
    ] {
        assert_eq!(conflict(write(&store, "p", op).await), (0, None));
    }
}

/// Even when the clock stands still and the body stays the same.
pub async fn etags_differ_with_every_write<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let mut seen = std::collections::HashSet::new();
    let mut etag = create(&store, "p", "a").await.etag;
    for _ in 0..5 {
        assert!(seen.insert(etag.clone()));
        etag = write(&store, "p", Op::Replace(doc("a"), etag)).await.unwrap().etag;
    }
    assert!(seen.insert(delete(&store, "p", "a", etag).await.etag));
    assert!(seen.insert(create(&store, "p", "a").await.etag));
}

/// An id names a document only together with container and partition.
pub async fn partitions_do_not_share_ids<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    create(&store, "p", "a").await;
    create(&store, "q", "a").await;
    let other = Container::new("others");
    let batch = Batch::new(other, part("p")).with(Op::Create(doc("a")));
    store.write(batch).await.unwrap();
    assert!(get(&store, "p", "A").await.is_none(), "ids keep their case");
    assert!(get(&store, "r", "a").await.is_none());
    let elsewhere = DocKey { container: other, partition: part("p"), id: DocId::new("a") };
    assert_eq!(store.get(&elsewhere).await.unwrap().unwrap().key, elsewhere);
}

/// Only the very text that was handed out counts.
pub async fn an_etag_is_compared_as_text<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let etag = create(&store, "p", "a").await.etag;
    for other in [etag.as_str().to_uppercase(), format!("0{etag}"), format!("{etag} "), format!("\"{etag}\"")]
    {
        if other != etag.as_str() {
            conflict(write(&store, "p", Op::Check(DocId::new("a"), ETag::new(other))).await);
        }
    }
}

/// Readiness.
pub async fn a_ping_is_answered<F: Fixture>(fixture: &mut F) {
    fixture.store().ping().await.unwrap();
}
