//! The suite every adapter must pass, and with it the precise meaning of the contract.
//!
//! An adapter implements [`Fixture`] and writes `aro_store_conformance::suite!(MyFixture);` in its
//! `tests/it/main.rs`. Each test is a function of a fresh fixture; a test added here (and to the list in the
//! macro, which a test of this crate enforces) runs against every adapter.
#![allow(clippy::unwrap_used, reason = "a test suite: a panic with a line number is what we want")]

pub mod batches;
pub mod concurrency;
pub mod conditions;
pub mod durability;
pub mod expiry;
pub mod feed;
pub mod helpers;
pub mod model;
pub mod paging;
pub mod purge;
pub mod queries;
pub mod writes;

use std::sync::Arc;
use std::time::Duration;

use aro_base::{ETag, ManualClock};
use async_trait::async_trait;

use aro_store::{
    Batch, Change, Container, Cursor, DocId, DocKey, Document, NewDocument, Op, Page, PartitionKey, Query,
    Raw, SharedStore, StoreError, Written,
};

/// How long tombstones are kept by the store under test.
pub const RETENTION: Duration = Duration::from_hours(1);

/// A store under test, empty at first, with a clock that the test moves.
#[async_trait]
pub trait Fixture: Sized + Send + Sync + 'static {
    /// Makes a fresh one. Its tombstones are kept for [`RETENTION`].
    async fn start() -> Self;
    /// The store.
    fn store(&self) -> SharedStore;
    /// The store's clock.
    fn clock(&self) -> Arc<ManualClock>;
    /// Stops the store and starts it anew on the same data, as a restarted process would.
    async fn reopen(&mut self);
    /// Removes all that is past its time, now.
    async fn purge(&self);
}

/// Instantiates the whole suite for a [`Fixture`].
#[macro_export]
macro_rules! suite {
    ($fixture:ty) => {
        $crate::suite! { @each $fixture =>
            batches: a_batch_with_a_failing_last_operation_leaves_nothing,
            batches: a_batch_of_a_hundred_is_taken_and_one_more_is_refused,
            batches: an_empty_batch_is_refused,
            batches: a_batch_that_names_a_document_twice_is_refused,
            batches: a_document_that_is_too_large_is_refused_and_the_largest_is_taken,
            batches: names_that_some_backend_cannot_hold_are_refused,
            batches: a_conflict_tells_which_operation_and_what_is_there,
            batches: results_come_in_the_order_of_the_operations,
            concurrency: concurrent_increments_are_all_counted,
            concurrency: of_concurrent_creates_of_one_key_exactly_one_wins,
            concurrency: a_reader_never_sees_half_a_batch,
            concurrency: what_the_feed_has_shown_is_what_a_read_returns,
            conditions: names_and_values_of_a_condition_are_never_part_of_a_statement,
            conditions: a_body_with_unpaired_escapes_is_left_out_and_fails_no_search,
            conditions: slices_together_are_the_whole_result_in_order,
            conditions: what_is_new_comes_last_when_asked_for,
            conditions: a_text_is_found_however_it_is_written,
            conditions: random_conditions_agree_with_the_reference,
            durability: documents_survive_a_restart,
            durability: versions_go_on_after_a_restart,
            durability: a_deletion_survives_a_restart,
            expiry: an_expired_document_is_invisible,
            expiry: an_expired_document_can_be_created_anew_with_a_greater_version,
            expiry: an_expired_document_can_not_be_replaced_deleted_or_checked,
            expiry: a_replace_without_ttl_makes_a_document_permanent,
            expiry: an_expired_document_vanishes_from_the_feed,
            feed: every_write_is_seen_once_caught_up,
            feed: only_the_latest_version_need_be_seen,
            feed: deletions_are_seen_with_a_greater_version,
            feed: a_partition_is_delivered_in_the_order_of_its_writes,
            feed: nothing_new_gives_back_the_same_cursor,
            feed: the_feed_goes_on_after_a_restart_without_a_gap,
            feed: the_beginning_is_every_live_document,
            feed: containers_do_not_see_each_other,
            feed: a_cursor_that_is_not_ours_is_refused,
            feed: listing_after_the_latest_cursor_misses_nothing_under_concurrent_writers,
            feed: a_slow_consumer_sees_the_last_state_of_everything_under_concurrent_writers,
            feed: a_subscriber_is_woken_by_a_write,
            helpers: a_collection_reads_and_writes_values,
            helpers: updates_of_a_collection_survive_contention,
            helpers: a_body_of_another_shape_is_an_error,
            helpers: an_unreadable_document_does_not_hide_its_neighbours,
            helpers: a_follower_delivers_everything_and_waits_for_more,
            helpers: a_lost_reply_is_a_write_that_happened,
            helpers: a_scripted_conflict_and_a_failure_before_write_nothing,
            helpers: an_informer_converges_under_random_faults,
            model: random_histories_agree_with_a_map,
            paging: pages_together_are_the_whole_result,
            paging: pages_stay_stable_while_documents_come_and_go,
            paging: a_token_survives_a_restart,
            paging: bad_tokens_are_refused,
            paging: documents_of_equal_resource_id_are_all_paged,
            paging: the_last_full_page_has_no_next,
            purge: a_cursor_before_the_purge_is_expired_and_a_newer_one_is_not,
            purge: young_tombstones_are_kept,
            purge: versions_never_go_back_even_when_all_trace_is_gone,
            purge: a_consumer_on_its_way_from_the_beginning_is_not_thrown_out_by_old_deletions,
            queries: partition_and_type_and_prefix_have_no_case,
            queries: a_document_without_a_resource_id_is_found_by_its_key_only,
            queries: a_prefix_takes_wildcards_and_unicode_literally,
            queries: a_prefix_with_a_slash_does_not_match_siblings,
            queries: a_query_without_a_partition_sees_all_of_them,
            queries: results_come_in_the_order_of_the_folded_resource_id,
            queries: filters_look_at_strings_in_the_body,
            queries: filter_values_with_quotes_are_only_values,
            queries: a_query_of_unknown_names_is_empty,
            queries: a_replaced_document_is_found_under_its_new_names_only,
            writes: a_created_document_reads_back_as_written,
            writes: creating_what_exists_conflicts,
            writes: replacing_needs_the_current_etag,
            writes: deleting_needs_the_current_etag,
            writes: checking_guards_a_batch_and_writes_nothing,
            writes: a_deleted_document_is_gone_at_once_and_can_be_created_anew,
            writes: an_absent_document_can_not_be_replaced_deleted_or_checked,
            writes: etags_differ_with_every_write,
            writes: partitions_do_not_share_ids,
            writes: an_etag_is_compared_as_text,
            writes: a_ping_is_answered,
        }
    };
    (@each $fixture:ty => $($module:ident: $test:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let mut fixture = <$fixture as $crate::Fixture>::start().await;
                $crate::$module::$test(&mut fixture).await;
            }
        )*
    };
}

/// Whether a body meets a condition, by the reference; for tests of search languages.
pub fn holds_text(condition: &aro_store::Condition, body: &str) -> bool {
    aro_store::adapter::holds(condition, &Raw::stored(body))
}

/// The container most tests use.
pub const THINGS: Container = Container::new("things");

pub(crate) fn part(name: &str) -> PartitionKey {
    PartitionKey::new(name)
}

pub(crate) fn key(partition: &str, id: &str) -> DocKey {
    DocKey { container: THINGS, partition: part(partition), id: DocId::new(id) }
}

pub(crate) fn doc(id: &str) -> NewDocument {
    doc_with(id, &serde_json::json!({ "id": id }))
}

pub(crate) fn doc_with(id: &str, body: &serde_json::Value) -> NewDocument {
    NewDocument {
        id: DocId::new(id),
        resource_type: "Test/Things".to_owned(),
        resource_id: format!("/things/{id}"),
        ttl: None,
        body: Raw::of(body).unwrap(),
    }
}

pub(crate) fn batch(partition: &str) -> Batch {
    Batch::new(THINGS, part(partition))
}

/// Writes one operation and returns what it gave.
pub(crate) async fn write(store: &SharedStore, partition: &str, op: Op) -> Result<Written, StoreError> {
    let written = store.write(batch(partition).with(op)).await?;
    assert_eq!(written.len(), 1);
    Ok(written.into_iter().next().unwrap())
}

pub(crate) async fn create(store: &SharedStore, partition: &str, id: &str) -> Written {
    write(store, partition, Op::Create(doc(id))).await.unwrap()
}

pub(crate) async fn delete(store: &SharedStore, partition: &str, id: &str, etag: ETag) -> Written {
    write(store, partition, Op::Delete(DocId::new(id), etag)).await.unwrap()
}

pub(crate) async fn get(store: &SharedStore, partition: &str, id: &str) -> Option<Document> {
    store.get(&key(partition, id)).await.unwrap()
}

/// Asserts that this is a conflict and returns its index and the etag in it.
#[track_caller]
pub(crate) fn conflict<T: std::fmt::Debug>(result: Result<T, StoreError>) -> (usize, Option<ETag>) {
    match result {
        Err(StoreError::Conflict { index, now, .. }) => (index, now),
        other => {
            assert!(matches!(other, Err(StoreError::Conflict { .. })), "expected a conflict, got {other:?}");
            unreachable!()
        }
    }
}

/// All ids of a query, page by page.
pub(crate) async fn ids(store: &SharedStore, query: &Query, size: usize) -> Vec<String> {
    let mut page = Page::first(size);
    let mut ids = Vec::new();
    loop {
        let got = store.query(query, page).await.unwrap();
        assert!(got.items.len() <= size);
        ids.extend(got.items.iter().map(|document| document.key.id.as_str().to_owned()));
        match got.next {
            Some(next) => page = Page { size, after: Some(next) },
            None => return ids,
        }
    }
}

/// Reads the feed until nothing is ready, and returns the changes and the cursor reached.
pub(crate) async fn drain(store: &SharedStore, after: Option<Cursor>, limit: usize) -> (Vec<Change>, Cursor) {
    let mut after = after;
    let mut changes = Vec::new();
    loop {
        let page = store.changes(THINGS, after.as_ref(), limit).await.unwrap();
        assert!(page.changes.len() <= limit);
        changes.extend(page.changes);
        if !page.more {
            return (changes, page.next);
        }
        after = Some(page.next);
    }
}

/// Reads the feed until `enough` holds: a feed may lag a moment behind a write by another connection.
pub(crate) async fn drain_until(
    store: &SharedStore,
    after: Option<Cursor>,
    mut enough: impl FnMut(&[Change]) -> bool,
) -> (Vec<Change>, Cursor) {
    let mut signal = store.subscribe(THINGS);
    let wait = async {
        let (mut changes, mut cursor) = drain(store, after, 7).await;
        while !enough(&changes) {
            signal.changed().await;
            let (more, next) = drain(store, Some(cursor), 7).await;
            changes.extend(more);
            cursor = next;
        }
        (changes, cursor)
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("the feed delivers what was written")
}

pub(crate) fn text_of(change: &Change) -> String {
    let key = change.key();
    match change {
        Change::Upsert(_) => format!("+{}/{}", key.partition.as_str(), key.id),
        Change::Delete { .. } => format!("-{}/{}", key.partition.as_str(), key.id),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_test_of_the_suite_is_in_the_macro() {
        let macro_text = include_str!("lib.rs");
        let sources = [
            ("batches", include_str!("batches.rs")),
            ("concurrency", include_str!("concurrency.rs")),
            ("conditions", include_str!("conditions.rs")),
            ("durability", include_str!("durability.rs")),
            ("expiry", include_str!("expiry.rs")),
            ("feed", include_str!("feed.rs")),
            ("helpers", include_str!("helpers.rs")),
            ("model", include_str!("model.rs")),
            ("paging", include_str!("paging.rs")),
            ("purge", include_str!("purge.rs")),
            ("queries", include_str!("queries.rs")),
            ("writes", include_str!("writes.rs")),
        ];
        for (module, source) in sources {
            let declared = source.lines().filter_map(|line| line.strip_prefix("pub async fn "));
            for name in declared.filter_map(|rest| rest.split(['<', '(']).next()) {
                assert!(macro_text.contains(&format!("{module}: {name},")), "{module}::{name} never runs");
            }
        }
    }
}
