//! The journal on the embedded store.

use std::time::Duration;

use aro_base::{ManualClock, SharedClock, Timestamp};
use aro_runtime::{Metrics, Scope};
use aro_store::SharedStore;
use aro_store_sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

use crate::{Decisions, Entry, Outcome, Timeline};

const CLUSTER: &str =
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/c";

fn store() -> (SharedStore, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let clock: SharedClock = ManualClock::at(Timestamp::UNIX_EPOCH);
    let store = SqliteStore::open(SqliteOptions::new(directory.path()), clock).unwrap();
    (store, directory)
}

fn entry(subjects: &[&str], step: &'static str, outcome: Outcome) -> Entry {
    Entry {
        correlation_id: Some("correlation".to_owned()),
        subjects: subjects.iter().map(|name| (*name).to_owned()).collect(),
        step,
        outcome,
        detail: String::new(),
    }
}

async fn record(store: &SharedStore, role: &'static str, at: i64, entries: Vec<Entry>) {
    let clock: SharedClock = ManualClock::at(Timestamp::from_second(at).unwrap());
    let scope = Scope::root("test");
    let decisions = Decisions::new(store, role, clock, &Metrics::new());
    decisions.start(&scope);
    for entry in entries {
        decisions.record(entry);
    }
    scope.close(Duration::from_secs(10)).await.unwrap();
}

#[tokio::test]
async fn every_name_of_a_thing_leads_to_one_timeline() {
    let (store, _directory) = store();
    let accepted = entry(&[CLUSTER, "operation-1"], "accept", Outcome::Done);
    record(&store, "frontend", 1, vec![accepted]).await;
    let started = entry(&[CLUSTER, "/api/aro_hcp/v1alpha1/clusters/2abc"], "provision", Outcome::Started);
    record(&store, "clusters-service", 2, vec![started]).await;
    // Maestro knows the bundle and the id only.
    let published = entry(&["bundle-1", "2abc"], "publish", Outcome::Done);
    record(&store, "maestro", 3, vec![published]).await;
    for name in [CLUSTER, "operation-1", "2abc", "/api/clusters_mgmt/v1/clusters/2abc", "bundle-1"] {
        let timeline = Timeline::read(&store, name).await.unwrap();
        let steps: Vec<&str> = timeline.entries.iter().map(|entry| entry.step.as_str()).collect();
        assert_eq!(steps, ["accept", "provision", "publish"], "{name}");
    }
    let pool = format!("{CLUSTER}/nodePools/n");
    assert_eq!(Timeline::read(&store, &pool).await.unwrap().entries.len(), 3);
    assert!(Timeline::read(&store, "unknown").await.unwrap().entries.is_empty());
}

#[tokio::test]
async fn what_is_not_finished_is_the_blocker() {
    let (store, _directory) = store();
    let waiting = Outcome::Waiting { on: "subnet s".to_owned() };
    let entries = vec![
        entry(&[CLUSTER], "group", Outcome::Started),
        entry(&[CLUSTER], "group", Outcome::Done),
        entry(&[CLUSTER], "network", Outcome::Started),
        entry(&[CLUSTER], "network", waiting.clone()),
    ];
    record(&store, "clusters-service", 1, entries).await;
    let timeline = Timeline::read(&store, CLUSTER).await.unwrap();
    let blockers = timeline.blockers();
    assert_eq!(blockers.len(), 1);
    assert_eq!((blockers[0].step.as_str(), &blockers[0].outcome), ("network", &waiting));
    let state = vec![entry(&[CLUSTER], "state", Outcome::Done)];
    record(&store, "backend", 2, state.clone()).await;
    assert_eq!(Timeline::read(&store, CLUSTER).await.unwrap().blockers().len(), 1, "another role's state");
    record(&store, "clusters-service", 3, state).await;
    assert!(Timeline::read(&store, CLUSTER).await.unwrap().blockers().is_empty());
}

#[tokio::test]
async fn a_store_that_is_too_slow_costs_entries_and_never_the_caller() {
    let (store, _directory) = store();
    let metrics = Metrics::new();
    let clock: SharedClock = ManualClock::at(Timestamp::UNIX_EPOCH);
    let decisions = Decisions::new(&store, "role", clock, &metrics);
    for _ in 0..20_000 {
        decisions.record(entry(&[CLUSTER], "step", Outcome::Done));
    }
    let text = metrics.encode();
    let dropped = text.lines().find(|line| line.starts_with("aro_decisions_dropped_total")).unwrap();
    assert!(!dropped.ends_with(" 0"), "{dropped}");
}
