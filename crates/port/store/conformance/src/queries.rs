//! Queries by type, prefix and members.

use serde_json::json;

use super::{Fixture, THINGS, create, doc_with, drain_until, ids, part, write};
use aro_store::{Container, DocId, DocKey, Filter, NewDocument, Op, Query, SharedStore};

async fn named(store: &SharedStore, partition: &str, id: &str, resource_type: &str, resource_id: &str) {
    let new = NewDocument {
        resource_type: resource_type.to_owned(),
        resource_id: resource_id.to_owned(),
        ..doc_with(id, &json!({}))
    };
    write(store, partition, Op::Create(new)).await.unwrap();
}

/// ARM compares so, and so do we.
pub async fn partition_and_type_and_prefix_have_no_case<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    named(&store, "Sub-A", "1", "Test/Clusters", "/Subscriptions/A/c1").await;
    named(&store, "sub-a", "2", "test/clusters", "/subscriptions/a/C2").await;
    named(&store, "sub-a", "3", "test/pools", "/subscriptions/a/c2/p").await;
    let query = Query::partition(THINGS, part("SUB-A")).of_type("TEST/CLUSTERS").under("/SUBSCRIPTIONS/a/C");
    assert_eq!(ids(&store, &query, 10).await, ["1", "2"]);
    let all = Query::all(THINGS).of_type("tEsT/pOOls").under("/subscriptions/A/c2/");
    assert_eq!(ids(&store, &all, 10).await, ["3"]);
    let untyped = Query::partition(THINGS, part("sub-a")).under("/subscriptions/a/C2");
    assert_eq!(ids(&store, &untyped, 10).await, ["2", "3"]);
}

/// What is only ever read by its key need not pay for being found otherwise.
pub async fn a_document_without_a_resource_id_is_found_by_its_key_only<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    named(&store, "p", "listed", "test/things", "/a").await;
    named(&store, "p", "unlisted", "test/things", "").await;
    for query in [Query::partition(THINGS, part("p")), Query::all(THINGS).of_type("test/things")] {
        assert_eq!(ids(&store, &query, 10).await, ["listed"]);
    }
    let key = DocKey { container: THINGS, partition: part("p"), id: DocId::new("unlisted") };
    assert_eq!(store.get(&key).await.unwrap().unwrap().resource_id, "");
    // The feed delivers it, though perhaps not at once.
    drain_until(&store, None, |changes| changes.iter().any(|change| change.key() == &key)).await;
}

/// A prefix is text, not a pattern.
pub async fn a_prefix_takes_wildcards_and_unicode_literally<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    for (id, resource_id) in [
        ("1", "/a%b"),
        ("2", "/axb"),
        ("3", "/a_b"),
        ("4", "/a\\b"),
        ("5", "/Äö"),
        ("6", "/a*b"),
        ("7", "/äÖ/\u{10FFFF}"),
    ] {
        named(&store, "p", id, "t", resource_id).await;
    }
    for (prefix, expected) in [
        ("/a%", vec!["1"]),
        ("/a_", vec!["3"]),
        ("/a\\", vec!["4"]),
        ("/a*", vec!["6"]),
        ("/äÖ", vec!["5", "7"]),
        ("/äö/\u{10FFFF}", vec!["7"]),
        ("%", vec![]),
        ("'", vec![]),
        ("/", vec!["1", "6", "4", "3", "2", "5", "7"]),
    ] {
        let typed = Query::partition(THINGS, part("p")).of_type("t").under(prefix);
        assert_eq!(ids(&store, &typed, 10).await, expected, "{prefix}");
        assert_eq!(ids(&store, &Query::all(THINGS).under(prefix), 2).await, expected, "{prefix}");
    }
}

/// The slash is the caller's; with it, `/a/b/` is not `/a/bc/`.
pub async fn a_prefix_with_a_slash_does_not_match_siblings<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    named(&store, "p", "1", "t", "/a/b").await;
    named(&store, "p", "2", "t", "/a/b/x").await;
    named(&store, "p", "3", "t", "/a/bc/x").await;
    let query = Query::partition(THINGS, part("p"));
    assert_eq!(ids(&store, &query.clone().under("/a/b/"), 10).await, ["2"]);
    assert_eq!(ids(&store, &query.under("/a/b"), 10).await, ["1", "2", "3"]);
}

/// And only those of its container.
pub async fn a_query_without_a_partition_sees_all_of_them<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    for partition in ["p", "q", "r"] {
        create(&store, partition, &format!("in-{partition}")).await;
    }
    let all = Query::all(THINGS);
    assert_eq!(ids(&store, &all, 2).await, ["in-p", "in-q", "in-r"]);
    assert_eq!(ids(&store, &all.of_type("test/things"), 2).await, ["in-p", "in-q", "in-r"]);
    assert_eq!(ids(&store, &Query::partition(THINGS, part("q")), 2).await, ["in-q"]);
    assert_eq!(ids(&store, &Query::all(Container::new("others")), 2).await, [""; 0]);
}

/// In byte order of the folded text, whatever the database's locale.
pub async fn results_come_in_the_order_of_the_folded_resource_id<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    for (id, resource_id) in
        [("1", "/b"), ("2", "/A"), ("3", "/a-b"), ("4", "/a/b"), ("5", "/É"), ("6", "/z"), ("7", "/a b")]
    {
        named(&store, "p", id, if id < "4" { "t" } else { "u" }, resource_id).await;
    }
    let expected = ["2", "7", "3", "4", "1", "6", "5"];
    assert_eq!(ids(&store, &Query::partition(THINGS, part("p")), 3).await, expected);
    assert_eq!(ids(&store, &Query::all(THINGS), 1).await, expected);
}

/// Equality of strings at a dotted path; everything else does not match.
pub async fn filters_look_at_strings_in_the_body<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    for (id, body) in [
        ("1", json!({ "s": { "state": "Ready" }, "n": 1 })),
        ("2", json!({ "s": { "state": "ready" }, "n": "1" })),
        ("3", json!({ "s": { "state": null } })),
        ("4", json!({ "s": "Ready" })),
        ("5", json!({ "s": [{ "state": "Ready" }] })),
        ("6", json!({ "s": { "state": "ÄB" } })),
        ("7", json!("Ready")),
    ] {
        write(&store, "p", Op::Create(doc_with(id, &body))).await.unwrap();
    }
    let text = |text: &str| text.to_owned();
    for (filter, expected) in [
        (Filter::Eq("s.state", text("Ready")), vec!["1"]),
        (Filter::Eq("n", text("1")), vec!["2"]),
        (Filter::EqIgnoreCase("s.state", text("READY")), vec!["1", "2"]),
        (Filter::EqIgnoreCase("s.state", text("Äb")), vec!["6"]),
        (Filter::EqIgnoreCase("s.state", text("äb")), vec![]),
        (Filter::In("s.state", vec![text("Ready"), text("ÄB")]), vec!["1", "6"]),
        (Filter::In("s.state", vec![]), vec![]),
        (Filter::Absent("s.state"), vec!["3", "4", "5", "7"]),
        (Filter::Absent("n"), vec!["3", "4", "5", "6", "7"]),
        (Filter::Eq("s", text("Ready")), vec!["4"]),
    ] {
        let query = Query::partition(THINGS, part("p")).filter(filter.clone());
        assert_eq!(ids(&store, &query, 2).await, expected, "{filter:?}");
    }
    let both = Query::all(THINGS)
        .filter(Filter::EqIgnoreCase("s.state", text("ready")))
        .filter(Filter::Eq("n", text("1")));
    assert_eq!(ids(&store, &both, 10).await, ["2"]);
}

/// A value is never part of a statement.
pub async fn filter_values_with_quotes_are_only_values<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let nasty = ["' OR '1'='1", "\"; DROP TABLE document; --", "%", "_", "\\", "$1", "ü", "a\nb", "{}"];
    for (n, value) in nasty.iter().enumerate() {
        write(&store, "p", Op::Create(doc_with(&format!("d{n}"), &json!({ "v": value })))).await.unwrap();
    }
    for (n, value) in nasty.iter().enumerate() {
        for filter in [Filter::Eq("v", (*value).to_owned()), Filter::In("v", vec![(*value).to_owned()])] {
            let query = Query::partition(THINGS, part("p")).filter(filter);
            assert_eq!(ids(&store, &query, 10).await, [format!("d{n}")], "{value}");
        }
    }
}

/// Not an error.
pub async fn a_query_of_unknown_names_is_empty<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let nothing: [&str; 0] = [];
    assert_eq!(ids(&store, &Query::all(THINGS), 10).await, nothing);
    create(&store, "p", "a").await;
    assert_eq!(ids(&store, &Query::partition(THINGS, part("q")), 10).await, nothing);
    assert_eq!(ids(&store, &Query::all(THINGS).of_type("none"), 10).await, nothing);
    assert_eq!(ids(&store, &Query::all(THINGS).under("/none"), 10).await, nothing);
}

/// A replace may change type and resource id.
pub async fn a_replaced_document_is_found_under_its_new_names_only<F: Fixture>(fixture: &mut F) {
    let store = fixture.store();
    let etag = create(&store, "p", "a").await.etag;
    let moved = NewDocument {
        resource_type: "Other".to_owned(),
        resource_id: "/elsewhere".to_owned(),
        ..doc_with("a", &json!({}))
    };
    write(&store, "p", Op::Replace(moved, etag)).await.unwrap();
    let query = Query::partition(THINGS, part("p"));
    assert_eq!(ids(&store, &query.clone().of_type("test/things"), 10).await, [""; 0]);
    assert_eq!(ids(&store, &query.clone().under("/things"), 10).await, [""; 0]);
    assert_eq!(ids(&store, &query.of_type("other").under("/else"), 10).await, ["a"]);
}
