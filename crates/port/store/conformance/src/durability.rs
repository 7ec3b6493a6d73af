//! What a restart must not change.

use super::{Fixture, THINGS, conflict, create, delete, doc, get, ids, part, write};
use aro_store::{Op, Query};

/// Everything acknowledged is there.
pub async fn documents_survive_a_restart<F: Fixture>(fixture: &mut F) {
    let mut written = Vec::new();
    for n in 0..20 {
        written.push(create(&fixture.store(), "p", &format!("d{n:02}")).await);
    }
    fixture.reopen().await;
    let store = fixture.store();
    for (n, written) in written.iter().enumerate() {
        let read = get(&store, "p", &format!("d{n:02}")).await.unwrap();
        assert_eq!((&read.etag, read.version), (&written.etag, written.version));
    }
    assert_eq!(ids(&store, &Query::partition(THINGS, part("p")), 7).await.len(), 20);
}

/// Etags stay valid and versions count on.
pub async fn versions_go_on_after_a_restart<F: Fixture>(fixture: &mut F) {
    let mut etag = create(&fixture.store(), "p", "a").await.etag;
    for expected in 2..5 {
        fixture.reopen().await;
        let written = write(&fixture.store(), "p", Op::Replace(doc("a"), etag)).await.unwrap();
        assert_eq!(written.version, expected);
        etag = written.etag;
    }
}

/// And its version is remembered.
pub async fn a_deletion_survives_a_restart<F: Fixture>(fixture: &mut F) {
    let created = create(&fixture.store(), "p", "a").await;
    let deleted = delete(&fixture.store(), "p", "a", created.etag.clone()).await;
    fixture.reopen().await;
    let store = fixture.store();
    assert!(get(&store, "p", "a").await.is_none());
    assert_eq!(conflict(write(&store, "p", Op::Replace(doc("a"), created.etag)).await), (0, None));
    assert!(create(&store, "p", "a").await.version > deleted.version);
}
