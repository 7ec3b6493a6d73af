use aro_bundle::{IdRange, KnownStatus, StatusResync};
use proptest::prelude::*;

use super::*;
use crate::record::sample;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const TIMES: Times = Times { received: NOW, applied: None, observed: NOW };

fn status(message: &str) -> ManifestWorkStatus {
    serde_json::from_value(serde_json::json!({
        "conditions": [{"type": "Applied", "status": "True", "reason": "x", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }))
    .unwrap()
}

fn observe(state: &mut AgentState, id: &str, message: &str) {
    state.record_status(id, 1, status(message), TIMES);
}

/// A state with works whose statuses the broker has acknowledged.
fn acked(ids: &[&str]) -> AgentState {
    let mut state = AgentState::default();
    for id in ids {
        state.upsert(sample(id, 1));
        observe(&mut state, id, "x");
        let (id, report) = state.next_report(NOW).unwrap();
        state.ack(&id, &report);
    }
    state
}

fn message(report: &Report) -> String {
    let Report::Status { record, .. } = report else { panic!("{report:?}") };
    record.observed.as_ref().unwrap().status.conditions[0].message.clone()
}

#[test]
fn only_the_newest_status_of_a_work_waits() {
    let mut state = AgentState::default();
    state.upsert(sample("a", 1));
    for text in ["one", "two", "three"] {
        observe(&mut state, "a", text);
    }
    let (id, report) = state.next_report(NOW).unwrap();
    assert_eq!(message(&report), "three");
    assert!(state.next_report(NOW).is_none(), "one per work");
    observe(&mut state, "a", "four");
    assert!(state.next_report(NOW).is_none(), "not before the last one is acknowledged");
    state.ack(&id, &report);
    let (id, report) = state.next_report(NOW).unwrap();
    assert_eq!(message(&report), "four");
    state.ack(&id, &report);
    assert!(state.next_report(NOW).is_none());
}

#[test]
fn nacked_status_is_published_again_with_a_greater_sequence() {
    let mut state = AgentState::default();
    state.upsert(sample("a", 1));
    observe(&mut state, "a", "one");
    let (id, first) = state.next_report(NOW).unwrap();
    state.nack(&id, &first);
    let (_, second) = state.next_report(NOW).unwrap();
    let sequence = |report: &Report| match report {
        Report::Status { sequence, .. } => *sequence,
        _ => panic!(),
    };
    assert!(sequence(&second) > sequence(&first));
}

#[test]
fn deleted_work_is_forgotten_once_its_report_is_acknowledged() {
    let mut state = AgentState::default();
    state.upsert(sample("a", 1));
    state.upsert(Record { deleting: true, ..sample("a", 2) });
    state.record_deleted("a");
    observe(&mut state, "a", "late");
    let (id, report) = state.next_report(NOW).unwrap();
    assert!(matches!(report, Report::Deleted { .. }), "{report:?}");
    state.nack(&id, &report);
    assert_eq!(state.len(), 1);
    let (id, report) = state.next_report(NOW).unwrap();
    state.begin_last_round();
    state.take_due(10);
    state.finish_writes(&["a".to_owned()], &[]);
    state.ack(&id, &report);
    assert_eq!(state.len(), 0);
    assert!(!state.begin_round());
    assert_eq!(state.take_due(10), [("a".to_owned(), None)]);
}

#[test]
fn work_that_is_not_being_deleted_cannot_be_deleted() {
    let mut state = AgentState::default();
    state.upsert(sample("a", 1));
    state.record_deleted("a");
    assert!(state.next_report(NOW).is_none());
}

#[test]
fn restart_republishes_only_unacked_statuses() {
    let mut state = AgentState::default();
    for id in ["a", "b"] {
        state.upsert(sample(id, 1));
        observe(&mut state, id, "x");
    }
    let (id, report) = state.next_report(NOW).unwrap();
    state.ack(&id, &report);
    let records: Vec<Record> = state.entries.records().cloned().collect();
    let written: Vec<Record> =
        records.iter().map(|r| serde_json::from_str(&serde_json::to_string(r).unwrap()).unwrap()).collect();
    let mut again = AgentState::load(written);
    let (id, _) = again.next_report(NOW).unwrap();
    assert_eq!(id, "b");
    assert!(again.next_report(NOW).is_none());
}

#[test]
fn sequence_continues_after_a_restart_with_a_clock_set_back() {
    let mut state = AgentState::default();
    state.upsert(sample("a", 1));
    observe(&mut state, "a", "x");
    let later: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let (_, Report::Status { sequence: before, .. }) = state.next_report(later).unwrap() else { panic!() };
    let records = state.entries.records().cloned().collect();
    let (_, Report::Status { sequence: after, .. }) = AgentState::load(records).next_report(NOW).unwrap()
    else {
        panic!()
    };
    assert!(after > before);
}

#[test]
fn status_resync_queues_what_differs_and_an_empty_one_everything() {
    let mut state = acked(&["a", "b", "c"]);
    let hash = state.get("a").unwrap().observed.as_ref().unwrap().hash.clone();
    let known = |id: &str, hash: &str| KnownStatus { id: id.to_owned(), hash: hash.to_owned() };
    let request =
        StatusResync { status_hashes: vec![known("a", &hash), known("b", "other"), known("x", "y")] };
    assert_eq!(state.resync(&request, None), 1);
    let (id, report) = state.next_report(NOW).unwrap();
    assert!(id == "b" && matches!(report, Report::Status { requested: true, .. }));
    state.ack(&id, &report);
    assert!(state.next_report(NOW).is_none());
    assert_eq!(state.resync(&StatusResync::default(), None), 3);
    assert_eq!(std::iter::from_fn(|| state.next_report(NOW)).count(), 3);
}

#[test]
fn status_missing_from_the_servers_range_is_published_again() {
    let mut state = acked(&["a", "b", "c"]);
    let hash = state.get("a").unwrap().observed.as_ref().unwrap().hash.clone();
    let request = StatusResync { status_hashes: vec![KnownStatus { id: "a".to_owned(), hash }] };
    let up_to_c = IdRange { from: Some("!".to_owned()), to: Some("c".to_owned()) };
    assert_eq!(state.resync(&request, Some(&up_to_c)), 1, "c may be on another page");
    let (id, _) = state.next_report(NOW).unwrap();
    assert_eq!(id, "b");
}

#[test]
fn versions_include_works_of_the_cluster_without_a_record() {
    let mut state = AgentState::default();
    state.upsert(sample("55c61e54-a3f6-563d-9fec-b1fe297bdfdb", 3));
    let unclaimed =
        ["55c61e54-a3f6-563d-9fec-b1fe297bdfdb", "0d3cc1ae-6a4f-52a5-8a0f-0b9c3a2a0c55", "made-by-hand"];
    let versions = state.versions(unclaimed.map(str::to_owned).to_vec());
    let versions: Vec<(&str, i64)> =
        versions.iter().map(|known| (known.id.as_str(), known.version)).collect();
    assert_eq!(
        versions,
        [("55c61e54-a3f6-563d-9fec-b1fe297bdfdb", 3), ("0d3cc1ae-6a4f-52a5-8a0f-0b9c3a2a0c55", 0)]
    );
}

#[test]
fn record_is_stored_once_its_status_is_acked_and_otherwise_a_round_later() {
    let taken = |state: &mut AgentState| state.take_due(10).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    let mut state = AgentState::default();
    for id in ["acked", "unacked"] {
        state.upsert(sample(id, 1));
    }
    observe(&mut state, "acked", "x");
    let (id, report) = state.next_report(NOW).unwrap();
    state.ack(&id, &report);
    assert!(state.begin_round(), "one is deferred");
    assert_eq!(taken(&mut state), ["acked"]);
    assert!(!state.begin_round());
    assert_eq!(taken(&mut state), ["unacked"], "none is deferred twice");
    state.upsert(sample("last", 1));
    state.begin_last_round();
    assert_eq!(taken(&mut state), ["last"]);
    state.finish_writes(&["last".to_owned()], &["last".to_owned()]);
    assert_eq!(taken(&mut state), ["last"]);
}

#[test]
fn record_the_engine_waits_for_is_due_at_once_and_released_as_it_is_then() {
    let mut state = AgentState::default();
    for id in ["changed", "deleted", "back", "plain"] {
        state.upsert(sample(id, 1));
    }
    state.upsert_stored_first(sample("changed", 2));
    for id in ["deleted", "back"] {
        state.upsert_stored_first(Record { deleting: true, ..sample(id, 1) });
    }
    assert!(state.begin_round(), "`plain` waits for its status");
    let written: Vec<String> = state.take_due(10).into_iter().map(|(id, _)| id).collect();
    assert_eq!(written, ["back", "changed", "deleted"]);
    // During the write the engine finished the deletion, and the bundle was received again.
    state.record_deleted("back");
    state.upsert(sample("back", 3));
    let released = state.finish_writes(&written, &[]);
    let released: Vec<_> =
        released.iter().map(|record| (record.id.as_str(), record.version, record.deleting)).collect();
    assert_eq!(released, [("back", 3, false), ("changed", 2, false), ("deleted", 1, true)]);
    assert!(state.finish_writes(&written, &[]).is_empty(), "released once");
}

#[test]
fn work_received_again_during_its_deletion_is_returned_for_the_engine() {
    let mut state = AgentState::default();
    state.upsert(Record { deleting: true, ..sample("a", 1) });
    state.upsert(sample("a", 2));
    assert_eq!(state.record_deleted("a").map(|record| record.version), Some(2));
    assert_eq!(state.record_deleted("unknown"), None);
}

#[test]
fn bundles_with_one_name_do_not_share_a_work() {
    let mut state = AgentState::default();
    state.upsert(sample("a", 1));
    let other = state.upsert(Record { name: "a".to_owned(), ..sample("b", 1) });
    assert_eq!(other.name, "b");
}

#[test]
fn rejections_are_reported_and_bounded_and_the_earlier_work_stays() {
    let mut state = AgentState::default();
    state.upsert(sample("a", 1));
    state.reject(sample("a", 2), "no manifests".to_owned());
    let (id, report) = state.next_report(NOW).unwrap();
    assert!(matches!(&report, Report::Rejected { rejection, .. } if rejection.record.version == 2));
    state.ack(&id, &report);
    assert_eq!(state.get("a").unwrap().version, 1);
    for number in 0..2 * MAX_REJECTIONS {
        state.reject(sample(&format!("r{number}"), 1), String::new());
    }
    assert_eq!(state.rejected.len(), MAX_REJECTIONS);
}

#[test]
fn status_that_waits_behind_a_rejection_is_published_after_it() {
    let mut state = AgentState::default();
    state.upsert(sample("a", 1));
    observe(&mut state, "a", "x");
    state.reject(sample("a", 2), String::new());
    let (id, rejected) = state.next_report(NOW).unwrap();
    assert!(matches!(rejected, Report::Rejected { .. }));
    state.ack(&id, &rejected);
    let (_, status) = state.next_report(NOW).unwrap();
    assert_eq!(message(&status), "x");
}

#[test]
fn engine_gets_no_version_that_is_not_stored() {
    let mut state = AgentState::default();
    state.upsert_stored_first(sample("a", 1));
    state.begin_round();
    let taken = vec!["a".to_owned()];
    assert_eq!(state.take_due(10).len(), 1);
    state.upsert_stored_first(sample("a", 2));
    assert_eq!(state.finish_writes(&taken, &[]), [], "the store holds version 1");
    state.begin_round();
    state.take_due(10);
    let released = state.finish_writes(&taken, &[]);
    assert_eq!(released.iter().map(|record| record.version).collect::<Vec<_>>(), [2]);
}

/// One call of the agent's tasks.
#[derive(Debug, Clone)]
enum Step {
    Upsert { stored_first: bool },
    Delete,
    Deleted,
    Status(u8),
    Reject,
    Request,
    Publish,
    Answer { acked: bool },
    Round { last: bool },
    Take,
    Finish { failed: bool },
}

fn step() -> impl Strategy<Value = (u8, Step)> {
    let step = prop_oneof![
        any::<bool>().prop_map(|stored_first| Step::Upsert { stored_first }),
        Just(Step::Delete),
        Just(Step::Deleted),
        (0..3_u8).prop_map(Step::Status),
        Just(Step::Reject),
        Just(Step::Request),
        Just(Step::Publish),
        any::<bool>().prop_map(|acked| Step::Answer { acked }),
        any::<bool>().prop_map(|last| Step::Round { last }),
        Just(Step::Take),
        any::<bool>().prop_map(|failed| Step::Finish { failed }),
    ];
    (0..4_u8, step)
}

/// The agent's tasks around one state: reports in flight, a write under way, and what the store holds.
#[derive(Default)]
struct Tasks {
    state: AgentState,
    in_flight: Vec<(String, Report)>,
    writing: Vec<(String, Option<Record>)>,
    stored: HashMap<String, Record>,
    version: i32,
}

impl Tasks {
    fn run(&mut self, id: &str, step: &Step) {
        self.version += 1;
        match step {
            Step::Upsert { stored_first } if self.state.get(id).is_none_or(|record| !record.deleting) => {
                let observed = self.state.get(id).and_then(|record| record.observed.clone());
                let record = Record { observed, ..sample(id, self.version) };
                if *stored_first {
                    self.state.upsert_stored_first(record);
                } else {
                    self.state.upsert(record);
                }
            }
            Step::Delete => {
                let known = self.state.get(id).cloned().unwrap_or_else(|| sample(id, self.version));
                self.state.upsert_stored_first(Record { deleting: true, ..known });
            }
            Step::Deleted => drop(self.state.record_deleted(id)),
            Step::Status(text) => observe(&mut self.state, id, &text.to_string()),
            Step::Reject => self.state.reject(sample(id, self.version), String::new()),
            Step::Request => self.state.request_status(id),
            Step::Publish => self.in_flight.extend(self.state.next_report(NOW)),
            Step::Answer { acked } => {
                if let Some((id, report)) = self.in_flight.pop() {
                    if *acked {
                        self.state.ack(&id, &report);
                    } else {
                        self.state.nack(&id, &report);
                    }
                }
            }
            Step::Round { last: false } => drop(self.state.begin_round()),
            Step::Round { last: true } => self.state.begin_last_round(),
            Step::Take if self.writing.is_empty() => self.writing = self.state.take_due(2),
            Step::Upsert { .. } | Step::Take => {}
            Step::Finish { failed } => self.finish(*failed),
        }
    }

    fn finish(&mut self, failed: bool) {
        let writing = std::mem::take(&mut self.writing);
        let ids: Vec<String> = writing.iter().map(|(id, _)| id.clone()).collect();
        if !failed {
            for (id, record) in writing {
                match record {
                    Some(record) => self.stored.insert(id, record),
                    None => self.stored.remove(&id),
                };
            }
        }
        let failed = if failed { ids.clone() } else { Vec::new() };
        self.state.finish_writes(&ids, &failed);
    }

    fn drain(&mut self) {
        self.finish(false);
        for (id, report) in std::mem::take(&mut self.in_flight) {
            self.state.nack(&id, &report);
        }
        while let Some((id, report)) = self.state.next_report(NOW) {
            self.state.ack(&id, &report);
        }
        self.state.begin_last_round();
        loop {
            self.writing = self.state.take_due(2);
            if self.writing.is_empty() {
                return;
            }
            self.finish(false);
        }
    }
}

proptest! {
    #[test]
    fn indexes_follow_the_entries_and_everything_is_reported_and_stored_in_the_end(
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut tasks = Tasks::default();
        for (id, step) in steps {
            tasks.run(&id.to_string(), &step);
            tasks.state.entries.check();
            let mut ids: Vec<&String> = tasks.in_flight.iter().map(|(id, _)| id).collect();
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(ids.len(), tasks.in_flight.len(), "one report in flight per work");
        }
        tasks.drain();
        tasks.state.entries.check();
        let left: Vec<&Record> = tasks.state.entries.records().collect();
        prop_assert!(left.iter().all(|record| !record.has_unacked_report()));
        prop_assert!(tasks.state.rejected.is_empty());
        prop_assert_eq!(left.len(), tasks.stored.len());
        for record in left {
            prop_assert_eq!(Some(record), tasks.stored.get(&record.id));
        }
    }
}
