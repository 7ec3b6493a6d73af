//! Continuation tokens.

use std::collections::BTreeSet;

use super::{Fixture, THINGS, create, delete, doc, ids, part, write};
use aro_store::{Filter, NewDocument, Op, Page, PageToken, Query, SharedStore, StoreError};

async fn fill(store: &SharedStore, partition: &str, count: usize) {
    for n in 0..count {
        create(store, partition, &format!("d{n:02}")).await;
    }
}

/// Whatever the size of a page, also with conditions that leave most out.
pub async fn pages_together_are_the_whole_result<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    fill(&store, "p", 23).await;
    let expected: Vec<String> = (0..23).map(|n| format!("d{n:02}")).collect();
    for size in [1, 2, 7, 22, 23, 24, 1000] {
        assert_eq!(ids(&store, &Query::partition(THINGS, part("p")), size).await, expected, "{size}");
        assert_eq!(ids(&store, &Query::all(THINGS).of_type("test/things"), size).await, expected, "{size}");
    }
    let few = Query::all(THINGS).filter(Filter::In("id", vec!["d03".into(), "d11".into(), "d22".into()]));
    for size in [1, 2, 3] {
        assert_eq!(ids(&store, &few, size).await, ["d03", "d11", "d22"], "{size}");
    }
}

/// What existed throughout comes exactly once; what came or went in between comes at most once.
pub async fn pages_stay_stable_while_documents_come_and_go<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    fill(&store, "p", 30).await;
    let query = Query::partition(THINGS, part("p"));
    let mut page = Page::first(4);
    let mut seen: Vec<String> = Vec::new();
    let mut round = 0;
    loop {
        let got = store.query(&query, page).await.unwrap();
        seen.extend(got.items.iter().map(|document| document.key.id.as_str().to_owned()));
        let Some(next) = got.next else { break };
        // The very document the token points at goes, others come before and behind it.
        let last = got.items.last().unwrap();
        if round % 2 == 0 {
            delete(&store, "p", last.key.id.as_str(), last.etag.clone()).await;
        }
        create(&store, "p", &format!("a-{round}")).await;
        create(&store, "p", &format!("z-{round}")).await;
        page = Page { size: 4, after: Some(next) };
        round += 1;
        assert!(round < 50, "paging ends");
    }
    let unique: BTreeSet<_> = seen.iter().cloned().collect();
    assert_eq!(unique.len(), seen.len(), "no duplicates: {seen:?}");
    for n in 0..30 {
        assert!(
            unique.contains(&format!("d{n:02}")),
            "d{n:02} was there all the time (or until it was seen)"
        );
    }
    assert!(!unique.iter().any(|id| id.starts_with("a-")), "the past is not visited again");
}

/// A token is text in a URL; the process that made it may be gone.
pub async fn a_token_survives_a_restart<F: Fixture>(fixture: &mut F) {
    fill(&fixture.store(), "p", 5).await;
    let query = Query::partition(THINGS, part("p"));
    let first = fixture.store().query(&query, Page::first(2)).await.unwrap();
    let text = first.next.unwrap().as_str().to_owned();
    assert!(
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)),
        "safe in a URL: {text}"
    );
    fixture.reopen().await;
    let page = Page { size: 10, after: Some(PageToken::new(text)) };
    let rest = fixture.store().query(&query, page).await.unwrap();
    assert_eq!(rest.items.len(), 3);
    assert_eq!(rest.items[0].key.id.as_str(), "d02");
}

/// Junk, cut tokens and tokens of another query are distinct from an empty page.
pub async fn bad_tokens_are_refused<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    fill(&store, "p", 5).await;
    let query = Query::partition(THINGS, part("p"));
    let token = store.query(&query, Page::first(2)).await.unwrap().next.unwrap();
    let cut = PageToken::new(&token.as_str()[1..]);
    for bad in [PageToken::new(""), PageToken::new("junk!"), PageToken::new("anVuaw"), cut] {
        let refused = store.query(&query, Page { size: 2, after: Some(bad.clone()) }).await;
        assert!(matches!(refused, Err(StoreError::BadToken)), "{bad:?}: {refused:?}");
    }
    for other in [
        Query::partition(THINGS, part("q")),
        Query::all(THINGS),
        query.clone().of_type("test/things"),
        query.clone().under("/things"),
        query.clone().filter(Filter::Absent("x")),
    ] {
        let refused = store.query(&other, Page { size: 2, after: Some(token.clone()) }).await;
        assert!(matches!(refused, Err(StoreError::BadToken)), "{other:?}: {refused:?}");
    }
    store.query(&query, Page { size: 9, after: Some(token) }).await.unwrap();
}

/// Resource ids need not be unique: the same thing may have several documents, in several partitions.
pub async fn documents_of_equal_resource_id_are_all_paged<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    for n in 0..12 {
        let new = NewDocument { resource_id: "/same".to_owned(), ..doc(&format!("d{n}")) };
        write(&store, &format!("p{}", n % 3), Op::Create(new)).await.unwrap();
    }
    for (query, count) in [(Query::all(THINGS), 12), (Query::partition(THINGS, part("p1")), 4)] {
        for size in [1, 3, 5] {
            let got: BTreeSet<_> = ids(&store, &query, size).await.into_iter().collect();
            assert_eq!(got.len(), count, "{size}");
        }
    }
}

/// A client follows `next` until there is none: an empty last page would be noise, a missing one a loss.
pub async fn the_last_full_page_has_no_next<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    fill(&store, "p", 4).await;
    let query = Query::partition(THINGS, part("p"));
    assert!(store.query(&query, Page::first(4)).await.unwrap().next.is_none());
    assert!(store.query(&query, Page::first(3)).await.unwrap().next.is_some());
    assert_eq!(store.query(&query, Page::first(0)).await.unwrap().items.len(), 1, "at least one is taken");
}
