//! The repository.

use std::collections::BTreeMap;

use aro_base::{Clock as _, SignedDuration};
use aro_bundle::{Action, Delivery, Event, EventType};
use aro_maestro::fault::Code;
use aro_maestro::rows::{CONTAINER, Deletion, FeedRow, Outcome, Update};
use aro_maestro::search::{self, Table};
use aro_store::{Change, Page, Slice};

use crate::on_both_stores;
use crate::site::{Site, spec, status};

fn update(id: &str, version: i32, content: &str) -> Event {
    spec(Action::Update, id, "c1", version, content)
}

/// The ids of what is due now.
async fn due(site: &Site) -> Vec<String> {
    let (rows, next) = site.rows.due_bundles(site.clock.now(), Page::first(100)).await.unwrap();
    assert!(next.is_none());
    rows.into_iter().map(|row| row.value.id).collect()
}

on_both_stores! {
    async fn bundle_is_created_once_and_only_for_an_existing_consumer(site: Site) {
        let event = spec(Action::Create, "b1", "c1", 0, "one");
        let fault = site.rows.create(&event).await.unwrap_err();
        assert_eq!(fault.to_string(), "maestro-8: there is no consumer `c1`");
        site.consumer("c1").await;
        let row = site.rows.create(&event).await.unwrap();
        assert_eq!((row.value.version, row.value.name.as_str(), row.value.source.as_str()), (1, "b1", "source"));
        assert_eq!(row.value.spec_event().unwrap(), event, "the event is stored as received");
        let again = site.rows.create(&event).await.unwrap();
        assert_eq!(again.etag, row.etag, "the same event again is a retry");
        let other = Event { id: "another".to_owned(), ..event };
        assert_eq!(site.rows.create(&other).await.unwrap_err().to_string(), "maestro-6: This Resource already exists");
        let unnamed = Event { resource_id: None, ..spec(Action::Create, "b2", "c1", 0, "x") };
        assert_eq!(site.rows.create(&unnamed).await.unwrap_err().code, Code::Validation);
        let broken = spec(Action::Create, "b2", "c1", 0, "x").with_payload(&serde_json::json!({"manifests": [{}]})).unwrap();
        assert_eq!(site.rows.create(&broken).await.unwrap_err().code, Code::Validation);
    }

    async fn update_requires_the_latest_version_the_owner_and_the_same_consumer(site: Site) {
        site.consumer("c1").await;
        site.bundle("b1", "c1").await;
        let changed = site.rows.update(&update("b1", 1, "two")).await.unwrap();
        let Update::Changed(row) = changed else { panic!("{changed:?}") };
        assert_eq!((row.value.version, row.value.delivery.version, row.value.delivery.observed_version), (2, 2, 0));
        let fault = site.rows.update(&update("b1", 1, "three")).await.unwrap_err();
        assert_eq!(fault.to_string(), "maestro-6: the resource version is not the latest, the latest version: 2");
        let unlocked = site.rows.update(&update("b1", 0, "three")).await.unwrap();
        assert!(matches!(unlocked, Update::Changed(row) if row.value.version == 3));
        let foreign = Event { source: "other".to_owned(), ..update("b1", 3, "four") };
        assert_eq!(site.rows.update(&foreign).await.unwrap_err().code, Code::Forbidden);
        let moved = Event { cluster_name: "c2".to_owned(), ..update("b1", 3, "four") };
        assert_eq!(site.rows.update(&moved).await.unwrap_err().code, Code::Validation);
        let fault = site.rows.update(&update("none", 1, "x")).await.unwrap_err();
        assert_eq!(fault.to_string(), "maestro-7: Resource with id='none' not found");
        site.rows.delete("b1", Some("source")).await.unwrap();
        let fault = site.rows.update(&update("b1", 3, "four")).await.unwrap_err();
        assert_eq!(fault.to_string(), "maestro-6: the resource is under deletion, id: b1");
    }

    async fn update_without_a_change_keeps_the_version(site: Site) {
        site.consumer("c1").await;
        site.bundle("b1", "c1").await;
        // As a client patches: with the times and versions that the server set.
        let metadata = r#"{"labels":{"app":"one"},"name":"work-b1","resourceVersion":"1","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z"}"#;
        let same = Event {
            id: "fresh".to_owned(), time: None, metadata: Some(metadata.to_owned()), log_tracing: None,
            ..update("b1", 1, "one")
        };
        let outcome = site.rows.update(&same).await.unwrap();
        assert!(matches!(outcome, Update::Same(row) if row.value.version == 1));
        let relabelled = Event { metadata: Some(r#"{"name":"work-b1","labels":{"app":"x"}}"#.to_owned()), ..same };
        assert!(matches!(site.rows.update(&relabelled).await.unwrap(), Update::Changed(row) if row.value.version == 2));
    }

    /// The write succeeded and its response was lost.
    async fn retry_after_a_lost_response_is_applied_once(site: Site) {
        use aro_store::fault::{Call, Fault, FaultStore};
        site.consumer("c1").await;
        let (store, faults) = FaultStore::wrap(site.rows.store().clone(), 1);
        let rows = aro_maestro::rows::Rows::new(store, site.clock.clone(), "maestro");
        let create = spec(Action::Create, "b1", "c1", 0, "one");
        faults.script(Call::Write, [Fault::LostReply]);
        assert_eq!(rows.create(&create).await.unwrap_err().code, Code::General);
        assert_eq!(rows.create(&create).await.unwrap().value.version, 1);
        let change = update("b1", 1, "two");
        faults.script(Call::Write, [Fault::LostReply]);
        assert_eq!(rows.update(&change).await.unwrap_err().code, Code::General);
        assert!(matches!(rows.update(&change).await.unwrap(), Update::Same(row) if row.value.version == 2));
        let reused = Event { id: change.id.clone(), ..update("b1", 1, "three") };
        assert_eq!(rows.update(&reused).await.unwrap_err().code, Code::Conflict, "a reused event id is no retry");
        let applied = status("b1", "c1", 2, "10", "Applied");
        faults.script(Call::Write, [Fault::LostReply]);
        assert_eq!(rows.record_status(&applied).await.unwrap_err().code, Code::General);
        assert_eq!(rows.record_status(&applied).await.unwrap(), Outcome::Duplicate);
        faults.script(Call::Write, [Fault::Conflict, Fault::Conflict]);
        assert!(matches!(rows.delete("b1", None).await.unwrap(), Deletion::Marked(_)), "conflicts are retried");
    }

    async fn deletion_is_idempotent(site: Site) {
        site.consumer("c1").await;
        site.bundle("b1", "c1").await;
        assert_eq!(site.rows.delete("b1", Some("other")).await.unwrap_err().code, Code::Forbidden);
        let first = site.rows.delete("b1", Some("source")).await.unwrap();
        let Deletion::Marked(first) = first else { panic!("{first:?}") };
        assert_eq!(first.value.version, 1, "the spec did not change");
        for source in [None, Some("source")] {
            let again = site.rows.delete("b1", source).await.unwrap();
            assert!(matches!(&again, Deletion::Already(row) if row.revision == first.revision), "{again:?}");
        }
        assert!(matches!(site.rows.delete("none", None).await.unwrap(), Deletion::Absent));
    }

    async fn status_is_stored_only_for_its_row_and_if_newer(site: Site) {
        site.consumer("c1").await;
        site.bundle("b1", "c1").await;
        let report = |event: Event| { let rows = site.rows.clone(); async move { rows.record_status(&event).await.unwrap() } };
        let applied = |sequence: &str| status("b1", "c1", 1, sequence, "Applied");
        assert_eq!(report(status("none", "c1", 1, "10", "Applied")).await, Outcome::Unknown);
        assert_eq!(report(status("b1", "c2", 1, "10", "Applied")).await, Outcome::WrongConsumer);
        assert_eq!(report(Event { original_source: Some("x".to_owned()), ..applied("10") }).await, Outcome::WrongSource);
        assert_eq!(report(status("b1", "c1", 0, "10", "Applied")).await, Outcome::Stale);
        assert_eq!(report(applied("x")).await, Outcome::Stale);
        assert_eq!(report(applied("10")).await, Outcome::Stored);
        assert_eq!(report(applied("10")).await, Outcome::Duplicate);
        assert_eq!(report(applied("9")).await, Outcome::Stale);
        assert_eq!(report(applied("11")).await, Outcome::Stored);
        let row = site.rows.bundle("b1").await.unwrap().value;
        let kept = row.status_event().unwrap().unwrap();
        assert_eq!(kept.sequence_id.as_deref(), Some("11"));
        assert_eq!(kept.metadata_object().unwrap()["name"], "work-b1", "the source's metadata, not the agent's");
        assert_eq!((row.version, row.delivery.observed_version), (1, 1));
        assert!(row.delivery.applied.is_some() && row.delivery.next_attempt.is_none() && !row.is_undelivered());
        // Our agent reports times and the digest of the spec.
        let now = site.clock.now();
        let mut timed = applied("12");
        let times = Delivery { hash: row.delivery.hash, received: now, applied: Some(now), observed: Some(now) };
        times.attach(&mut timed);
        assert_eq!(report(timed).await, Outcome::Stored);
        assert_eq!(site.rows.bundle("b1").await.unwrap().value.delivery.received, Some(now.into()));
        let mut other = applied("13");
        Delivery { hash: "of something else".to_owned(), ..times }.attach(&mut other);
        assert_eq!(report(other).await, Outcome::Stale, "the same version of a former bundle");
        let broken = Event { data: "nonsense".into(), ..applied("14") };
        assert_eq!(site.rows.record_status(&broken).await.unwrap_err().code, Code::Validation);
    }

    async fn removal_leaves_a_tombstone_and_the_id_can_be_reused_at_once(site: Site) {
        site.consumer("c1").await;
        site.bundle("b1", "c1").await;
        site.rows.update(&update("b1", 1, "two")).await.unwrap();
        site.rows.record_status(&status("b1", "c1", 2, "10", "Applied")).await.unwrap();
        let before = site.rows.store().latest_cursor(CONTAINER).await.unwrap();
        site.rows.delete("b1", None).await.unwrap();
        // Independent of the agent's version and clock.
        let gone = status("b1", "c1", 1, "8", "Deleted");
        assert_eq!(site.rows.record_status(&gone).await.unwrap(), Outcome::Removed);
        assert!(site.rows.find_bundle("b1").await.unwrap().is_none());
        let farewell = tombstone(&site, before, "b1").await;
        assert_eq!((farewell.source.as_str(), farewell.version), ("source", 2));
        assert!(farewell.status.get().contains("Deleted") && farewell.status.get().contains("work-b1"));
        assert!(farewell.payload.get().contains("manifests"));
        for life in 0..2 {
            let row = site.bundle("b1", "c1").await;
            assert_eq!(row.value.version, 1);
            // Late statuses of the former bundle.
            for late in [gone.clone(), status("b1", "c1", 1, "7", "Applied")] {
                assert_eq!(site.rows.record_status(&late).await.unwrap(), Outcome::Stale, "{life}");
            }
            let sequence = (20 + 20 * life).to_string();
            let news = status("b1", "c1", 1, &sequence, "Applied");
            assert_eq!(site.rows.record_status(&news).await.unwrap(), Outcome::Stored);
            site.rows.delete("b1", None).await.unwrap();
            assert_eq!(site.rows.record_status(&gone).await.unwrap(), Outcome::Stale, "the deletion of the former bundle");
            let sequence = (30 + 20 * life).to_string();
            let end = status("b1", "c1", 1, &sequence, "Deleted");
            assert_eq!(site.rows.record_status(&end).await.unwrap(), Outcome::Removed);
        }
    }

    async fn status_with_an_impossible_time_leaves_a_decodable_row(site: Site) {
        site.consumer("c1").await;
        let row = site.bundle("b1", "c1").await;
        let mut odd = status("b1", "c1", 1, "1", "Applied");
        odd.time = Some("-000001-01-01T00:00:00Z".parse().unwrap());
        let never = aro_base::Timestamp::MIN;
        let delivery =
            Delivery { hash: row.value.delivery.hash, received: never, applied: Some(never), observed: Some(never) };
        delivery.attach(&mut odd);
        assert_eq!(site.rows.record_status(&odd).await.unwrap(), Outcome::Stored);
        assert!(site.rows.bundle("b1").await.unwrap().value.status.is_some());
        let next = status("b1", "c1", 1, "2", "Available");
        assert_eq!(site.rows.record_status(&next).await.unwrap(), Outcome::Stored);
        site.rows.delete("b1", None).await.unwrap();
        assert_eq!(site.rows.abandon("c1").await.unwrap(), 1);
    }

    async fn status_with_a_duplicate_member_is_rejected(site: Site) {
        site.consumer("c1").await;
        site.bundle("b1", "c1").await;
        let twice = r#"{"conditions":[],"resourceStatus":[],"resourceStatus":[]}"#;
        let odd = Event { data: twice.into(), ..status("b1", "c1", 1, "1", "Applied") };
        assert_eq!(site.rows.record_status(&odd).await.unwrap_err().code, Code::Validation);
        assert!(site.rows.bundle("b1").await.unwrap().value.status.is_none());
    }

    async fn version_is_raised_above_the_agents(site: Site) {
        site.consumer("c1").await;
        site.bundle("b1", "c1").await;
        assert!(site.rows.raise_version("b1", 0).await.unwrap().is_none(), "it is above already");
        let raised = site.rows.raise_version("b1", 5).await.unwrap().unwrap();
        assert_eq!((raised.version, raised.delivery.version, raised.is_undelivered()), (6, 6, true));
        assert!(site.rows.raise_version("b1", i64::from(i32::MAX)).await.unwrap().is_none(), "there is no room");
        assert!(site.rows.raise_version("none", 5).await.unwrap().is_none());
        site.rows.delete("b1", None).await.unwrap();
        assert!(site.rows.raise_version("b1", 9).await.unwrap().is_none(), "it is being deleted");
    }

    async fn agent_cannot_use_up_the_versions_of_a_bundle(site: Site) {
        site.consumer("c1").await;
        site.bundle("b1", "c1").await;
        for (sequence, version) in [("10", i32::MAX), ("11", i32::MAX - 1), ("12", i32::MAX / 2)] {
            let ahead = status("b1", "c1", version, sequence, "Applied");
            let ahead = Event { kind: EventType::status(Action::ResyncResponse), ..ahead };
            assert_eq!(site.rows.record_status(&ahead).await.unwrap(), Outcome::Stale, "{version}");
            let listed = site.rows.raise_version("b1", version.into()).await.unwrap();
            assert!(listed.is_none(), "{version}");
        }
        let row = site.rows.bundle("b1").await.unwrap().value;
        assert_eq!(row.version, 1, "a source can change the bundle as often as before");
    }

    async fn agent_with_a_newer_version_gets_the_bundle_with_one_above(site: Site) {
        site.consumer("c1").await;
        site.bundle("b1", "c1").await;
        let ahead = status("b1", "c1", 7, "10", "Applied");
        assert_eq!(site.rows.record_status(&ahead).await.unwrap(), Outcome::Stale, "no resync was requested");
        let ahead = Event { kind: EventType::status(Action::ResyncResponse), ..ahead };
        assert_eq!(site.rows.record_status(&ahead).await.unwrap(), Outcome::Republish);
        let row = site.rows.bundle("b1").await.unwrap().value;
        assert_eq!((row.version, row.is_undelivered(), row.status.is_none()), (8, true, true));
        assert_eq!(site.rows.record_status(&ahead).await.unwrap(), Outcome::Stale, "a duplicate is stale");
        let next = status("b1", "c1", 8, "11", "Applied");
        assert_eq!(site.rows.record_status(&next).await.unwrap(), Outcome::Stored);
        site.rows.delete("b1", None).await.unwrap();
        let late = status("b1", "c1", 9, "12", "Applied");
        assert_eq!(site.rows.record_status(&late).await.unwrap(), Outcome::Stale, "it is being deleted");
    }

    async fn attempt_postponed_by_a_wrong_clock_is_due(site: Site) {
        site.consumer("c1").await;
        site.pass(3600);
        let row = site.bundle("b1", "c1").await;
        let then = site.clock.now() - SignedDuration::from_secs(3600);
        assert!(row.value.delivery.is_due(then), "no pause is that long");
        assert!(!row.value.delivery.is_due(site.clock.now()));
    }

    async fn bundle_deleted_by_its_agent_is_published_again(site: Site) {
        site.consumer("c1").await;
        site.bundle("b1", "c1").await;
        site.rows.record_status(&status("b1", "c1", 1, "10", "Applied")).await.unwrap();
        site.pass(100);
        assert_eq!(due(&site).await, Vec::<String>::new());
        let outcome = site.rows.record_status(&status("b1", "c1", 1, "11", "Deleted")).await.unwrap();
        assert_eq!(outcome, Outcome::Republish);
        site.pass(2);
        assert_eq!(due(&site).await, ["b1"]);
        let again = site.rows.record_status(&status("b1", "c1", 1, "11", "Deleted")).await.unwrap();
        assert_eq!(again, Outcome::Stale);
    }

    async fn unconfirmed_bundle_is_due_with_growing_pauses_and_claimed_by_one_replica(site: Site) {
        site.consumer("c1").await;
        for id in ["b1", "b2", "b3"] {
            site.bundle(id, "c1").await;
        }
        assert_eq!(due(&site).await, Vec::<String>::new(), "the replica that stored it publishes it first");
        site.rows.record_status(&status("b2", "c1", 1, "10", "Applied")).await.unwrap();
        site.pass(1);
        assert_eq!(due(&site).await, ["b1", "b3"]);
        let row = site.rows.bundle("b1").await.unwrap();
        let (one, other) = tokio::join!(site.rows.claim_attempt(&row), site.rows.claim_attempt(&row));
        assert_eq!(usize::from(one.unwrap().is_some()) + usize::from(other.unwrap().is_some()), 1);
        assert_eq!(due(&site).await, ["b3"]);
        let mut row = site.rows.bundle("b1").await.unwrap();
        for seconds in [2, 4, 8, 16, 32, 60, 60] {
            let next = row.value.delivery.next_attempt.unwrap().0;
            assert_eq!(next.duration_since(site.clock.now()), SignedDuration::from_secs(seconds));
            site.pass(seconds);
            row = site.rows.claim_attempt(&row).await.unwrap().unwrap();
        }
        assert!(site.rows.mark_published("b1", 1, site.clock.now()).await.unwrap());
        assert!(!site.rows.mark_published("b1", 1, site.clock.now()).await.unwrap(), "the first time counts");
        site.rows.update(&update("b1", 1, "two")).await.unwrap();
        let delivery = site.rows.bundle("b1").await.unwrap().value.delivery;
        assert_eq!((delivery.attempts, delivery.published), (0, None), "a change starts over");
        assert!(!site.rows.mark_published("b1", 1, site.clock.now()).await.unwrap(), "another version");
        // A deletion is due until it is confirmed itself.
        site.rows.delete("b2", None).await.unwrap();
        site.pass(1);
        assert!(due(&site).await.contains(&"b2".to_owned()));
        site.rows.record_status(&status("b2", "c1", 1, "11", "Applied")).await.unwrap();
        assert!(due(&site).await.contains(&"b2".to_owned()));
        let confirmed = site.rows.bundle("b3").await.unwrap();
        site.rows.record_status(&status("b3", "c1", 1, "10", "Applied")).await.unwrap();
        assert!(site.rows.claim_attempt(&confirmed).await.unwrap().is_none(), "another replica claimed it");
        let (waiting, _) = site.rows.undelivered_bundles(Some("c1"), Page::first(9)).await.unwrap();
        assert_eq!(waiting.iter().map(|row| row.value.id.as_str()).collect::<Vec<_>>(), ["b1", "b2"]);
        assert!(site.rows.undelivered_bundles(Some("c"), Page::first(9)).await.unwrap().0.is_empty());
    }

    async fn concurrent_status_and_update_are_both_stored(site: Site) {
        site.consumer("c1").await;
        site.bundle("b1", "c1").await;
        let tasks = (0..8).map(|turn| {
            let rows = site.rows.clone();
            async move {
                if turn % 2 == 0 {
                    rows.update(&update("b1", 0, &format!("v{turn}"))).await.map(|_| ())
                } else {
                    rows.mark_published("b1", 1, rows.clock().now()).await.map(|_| ())
                }
            }
        });
        for result in futures::future::join_all(tasks).await {
            result.unwrap();
        }
        assert_eq!(site.rows.bundle("b1").await.unwrap().value.version, 5, "four changes, none lost");
    }

    async fn consumer_is_removed_only_without_bundles(site: Site) {
        let id = site.consumer("c1").await;
        let taken = site.rows.create_consumer(Some("c1"), BTreeMap::new()).await.unwrap_err();
        assert_eq!(taken.to_string(), "maestro-6: This Consumer already exists");
        let servers = site.rows.create_consumer(Some("maestro"), BTreeMap::new()).await.unwrap_err();
        assert_eq!(servers.code, Code::Validation, "an agent of that name would be the server to the broker");
        let unnamed = site.rows.create_consumer(None, BTreeMap::new()).await.unwrap().value;
        assert_eq!(unnamed.name, unnamed.id);
        site.bundle("b1", "c1").await;
        let refused = site.rows.delete_consumer(&id).await.unwrap_err();
        assert_eq!(refused.to_string(), "maestro-4: Unable to delete Consumer: 1 bundle belongs to it");
        site.bundle("b2", "c1").await;
        site.rows.delete_consumer(&unnamed.id).await.unwrap();
        assert_eq!(site.rows.consumer_by_id(&unnamed.id).await.unwrap_err().code, Code::NotFound);
        assert!(site.rows.consumer_by_name("c1").await.unwrap().is_some());
        let prefix = &id[..8];
        assert_eq!(site.rows.consumer_by_id(prefix).await.unwrap_err().code, Code::NotFound, "a prefix is no id");
    }

    /// A create during the removal of its consumer: both exist afterwards, or neither.
    async fn removed_consumer_leaves_no_bundle(site: Site) {
        for round in 0..20 {
            let name = format!("c{round}");
            let id = site.consumer(&name).await;
            let bundle = format!("b{round}");
            let event = spec(Action::Create, &bundle, &name, 0, "one");
            let (created, removed) = tokio::join!(site.rows.create(&event), site.rows.delete_consumer(&id));
            let there = site.rows.find_bundle(&bundle).await.unwrap().is_some();
            let kept = site.rows.consumer_by_name(&name).await.unwrap().is_some();
            assert_eq!(there, created.is_ok(), "{round}");
            assert_eq!(kept, removed.is_err(), "{round}: {removed:?}");
            assert!(kept || !there, "{round}: a bundle without its consumer");
        }
    }

    /// A removal began, and its replica ended.
    async fn stale_removal_mark_expires(site: Site) {
        use aro_store::{Batch, DocId, DocKey, NewDocument, Op, PartitionKey, Raw};
        site.consumer("c1").await;
        let key = DocKey { container: CONTAINER, partition: PartitionKey::new("consumers"), id: DocId::new("c1") };
        let document = site.rows.store().get(&key).await.unwrap().unwrap();
        let mut body: serde_json::Value = document.body.to().unwrap();
        body["leaving_since"] = site.clock.now().to_string().into();
        let marked = NewDocument {
            id: key.id.clone(), resource_type: document.resource_type, resource_id: document.resource_id, ttl: None,
            body: Raw::of(&body).unwrap(),
        };
        let batch = Batch::new(CONTAINER, key.partition).with(Op::Replace(marked, document.etag));
        site.rows.store().write(batch).await.unwrap();
        let event = spec(Action::Create, "b1", "c1", 0, "one");
        assert_eq!(site.rows.create(&event).await.unwrap_err().code, Code::Validation);
        site.pass(31);
        site.rows.create(&event).await.unwrap();
        assert!(site.rows.consumer_by_name("c1").await.unwrap().unwrap().value.leaving_since.is_none());
    }

    async fn orphan_deletion_is_blocked_if_the_agent_reports_before_the_first_bundle(site: Site) {
        let may_delete = async |consumer: &str| site.rows.may_delete_orphans(consumer).await.unwrap();
        assert!(!may_delete("c1").await, "there is no such consumer");
        for consumer in ["c1", "c2", "c3"] {
            site.consumer(consumer).await;
        }
        site.bundle("b1", "c1").await;
        assert!(may_delete("c1").await, "the bundle was created first");
        assert!(!may_delete("c2").await, "the agent reported first");
        site.bundle("b2", "c2").await;
        assert!(!may_delete("c2").await, "a first bundle does not allow it");
        site.rows.unblock_orphan_deletion("c2").await.unwrap();
        assert!(may_delete("c2").await, "the agent has no unknown work");
        assert!(!may_delete("c3").await);
        let id = site.rows.consumer_by_name("c3").await.unwrap().unwrap().value.id;
        site.rows.allow_orphan_deletion(&id).await.unwrap();
        assert!(may_delete("c3").await, "an operator allows it");
    }

    async fn abandoning_a_consumer_removes_only_bundles_being_deleted(site: Site) {
        site.consumer("c1").await;
        site.consumer("c2").await;
        for (id, consumer) in [("b1", "c1"), ("b2", "c1"), ("b3", "c2")] {
            site.bundle(id, consumer).await;
        }
        site.rows.record_status(&status("b1", "c1", 1, "10", "Applied")).await.unwrap();
        site.rows.delete("b1", None).await.unwrap();
        site.rows.delete("b3", None).await.unwrap();
        let before = site.rows.store().latest_cursor(CONTAINER).await.unwrap();
        assert_eq!(site.rows.abandon("c1").await.unwrap(), 1);
        assert!(site.rows.find_bundle("b1").await.unwrap().is_none());
        assert!(site.rows.find_bundle("b2").await.unwrap().is_some());
        assert!(site.rows.find_bundle("b3").await.unwrap().is_some());
        let farewell = tombstone(&site, before, "b1").await;
        let last: aro_bundle::BundleStatus =
            aro_bundle::json::read(farewell.status.get()).unwrap().payload().unwrap();
        assert!(last.is_deleted());
        assert_eq!(site.rows.abandon("c1").await.unwrap(), 0);
    }

    async fn searches_find_the_same_on_every_store(site: Site) {
        site.consumer("c1").await;
        site.consumer("c2").await;
        for (id, consumer, content) in [("b1", "c1", "x"), ("b2", "c2", "y"), ("b3", "c1", "y")] {
            site.rows.create(&spec(Action::Create, id, consumer, 0, content)).await.unwrap();
            site.pass(1);
        }
        site.rows.record_status(&status("b2", "c2", 1, "10", "Applied")).await.unwrap();
        for (search, expected) in [
            ("", vec!["b1", "b2", "b3"]),
            ("consumer_name='c1'", vec!["b1", "b3"]),
            ("source='source' and (consumer_name='c1' or consumer_name='c2') and version = 1", vec!["b1", "b2", "b3"]),
            ("payload->'metadata'->'labels'->>'app'='y'", vec!["b2", "b3"]),
            ("consumer_name='c1' and payload->'metadata'->'labels'@>'{\"app\":\"y\"}'", vec!["b3"]),
            ("payload->'data'->'manifests'@>'[{\"data\":{\"content\":\"x\"}}]'", vec!["b1"]),
            ("status->'data'->'conditions'@>'[{\"type\":\"Applied\",\"status\":\"True\"}]'", vec!["b2"]),
            ("created_at >= '2027-01-15T08:00:01Z'", vec!["b2", "b3"]),
            ("deleted_at is not null", vec![]),
        ] {
            let condition = search::condition(Table::Bundles, search).unwrap();
            let all = Slice { size: 100, ..Slice::default() };
            let documents = site.rows.list_bundles(condition.clone(), all).await.unwrap();
            let ids: Vec<&str> = documents.iter().map(|document| document.key.id.as_str()).collect();
            assert_eq!(ids, expected, "{search}");
            assert_eq!(site.rows.count_bundles(condition).await.unwrap(), expected.len() as u64, "{search}");
        }
        let order = search::order(Table::Bundles, "consumer_name desc, id desc").unwrap();
        let documents = site.rows.list_bundles(None, Slice { order, skip: 1, size: 1, ..Slice::default() }).await.unwrap();
        assert_eq!(documents[0].key.id.as_str(), "b3");
        let (rows, _) = site.rows.of_consumer("c1", Page::first(10)).await.unwrap();
        assert_eq!(rows.len(), 2);
    }
}

/// The tombstone of a bundle, from the feed as every replica reads it.
async fn tombstone(site: &Site, after: aro_store::Cursor, id: &str) -> aro_maestro::rows::Tombstone {
    let mut signal = site.rows.store().subscribe(CONTAINER);
    let look = async {
        loop {
            let page = site.rows.store().changes(CONTAINER, Some(&after), 100).await.unwrap();
            for change in page.changes {
                if let Change::Upsert(document) = change
                    && let Some(FeedRow::Tombstone(farewell)) = FeedRow::read(&document).unwrap()
                    && farewell.id == id
                {
                    return *farewell;
                }
            }
            signal.changed().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), look).await.expect("a tombstone in the feed")
}
