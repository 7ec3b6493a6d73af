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

fn seen(book: &mut Book, id: &str, message: &str) {
    book.saw(id, 1, status(message), TIMES);
}

/// A book with works whose statuses the server has.
fn heard(ids: &[&str]) -> Book {
    let mut book = Book::default();
    for id in ids {
        book.note(sample(id, 1));
        seen(&mut book, id, "x");
        let (id, say) = book.next(NOW).unwrap();
        book.said(&id, &say);
    }
    book
}

fn message(say: &Say) -> String {
    let Say::Status { record, .. } = say else { panic!("{say:?}") };
    record.seen.as_ref().unwrap().status.conditions[0].message.clone()
}

#[test]
fn of_many_statuses_of_a_work_only_the_newest_waits() {
    let mut book = Book::default();
    book.note(sample("a", 1));
    for text in ["one", "two", "three"] {
        seen(&mut book, "a", text);
    }
    let (id, say) = book.next(NOW).unwrap();
    assert_eq!(message(&say), "three");
    assert!(book.next(NOW).is_none(), "one for each work");
    seen(&mut book, "a", "four");
    assert!(book.next(NOW).is_none(), "not before the last one has arrived");
    book.said(&id, &say);
    let (id, say) = book.next(NOW).unwrap();
    assert_eq!(message(&say), "four");
    book.said(&id, &say);
    assert!(book.next(NOW).is_none());
}

#[test]
fn what_was_not_acknowledged_is_sent_again_with_a_greater_sequence() {
    let mut book = Book::default();
    book.note(sample("a", 1));
    seen(&mut book, "a", "one");
    let (id, first) = book.next(NOW).unwrap();
    book.unsaid(&id, &first);
    let (_, second) = book.next(NOW).unwrap();
    let sequence = |say: &Say| match say {
        Say::Status { sequence, .. } => *sequence,
        _ => panic!(),
    };
    assert!(sequence(&second) > sequence(&first));
}

#[test]
fn a_deleted_work_is_forgotten_only_when_its_end_was_acknowledged() {
    let mut book = Book::default();
    book.note(sample("a", 1));
    book.note(Record { deleting: true, ..sample("a", 2) });
    book.gone("a");
    seen(&mut book, "a", "late");
    let (id, say) = book.next(NOW).unwrap();
    assert!(matches!(say, Say::Gone { .. }), "{say:?}");
    book.unsaid(&id, &say);
    assert_eq!(book.len(), 1);
    let (id, say) = book.next(NOW).unwrap();
    book.last_round();
    book.take_due(10);
    book.said(&id, &say);
    assert_eq!(book.len(), 0);
    assert!(!book.begin_round());
    assert_eq!(book.take_due(10), [("a".to_owned(), None)]);
}

#[test]
fn a_work_that_is_not_being_deleted_cannot_be_gone() {
    let mut book = Book::default();
    book.note(sample("a", 1));
    book.gone("a");
    assert!(book.next(NOW).is_none());
}

#[test]
fn after_a_restart_only_what_was_not_acknowledged_is_said() {
    let mut book = Book::default();
    for id in ["a", "b"] {
        book.note(sample(id, 1));
        seen(&mut book, id, "x");
    }
    let (id, say) = book.next(NOW).unwrap();
    book.said(&id, &say);
    let records: Vec<Record> = book.records().cloned().collect();
    let written: Vec<Record> =
        records.iter().map(|r| serde_json::from_str(&serde_json::to_string(r).unwrap()).unwrap()).collect();
    let mut again = Book::load(written);
    let (id, _) = again.next(NOW).unwrap();
    assert_eq!(id, "b");
    assert!(again.next(NOW).is_none());
}

#[test]
fn sequences_go_on_after_a_restart_even_if_the_clock_was_set_back() {
    let mut book = Book::default();
    book.note(sample("a", 1));
    seen(&mut book, "a", "x");
    let later: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let (_, Say::Status { sequence: before, .. }) = book.next(later).unwrap() else { panic!() };
    let records = book.records().cloned().collect();
    let (_, Say::Status { sequence: after, .. }) = Book::load(records).next(NOW).unwrap() else { panic!() };
    assert!(after > before);
}

#[test]
fn a_status_resync_answers_what_differs_and_an_empty_one_everything() {
    let mut book = heard(&["a", "b", "c"]);
    let hash = book.get("a").unwrap().seen.as_ref().unwrap().hash.clone();
    let known = |id: &str, hash: &str| KnownStatus { id: id.to_owned(), hash: hash.to_owned() };
    let request =
        StatusResync { status_hashes: vec![known("a", &hash), known("b", "other"), known("x", "y")] };
    assert_eq!(book.resync(&request, None), 1);
    let (id, say) = book.next(NOW).unwrap();
    assert!(id == "b" && matches!(say, Say::Status { asked: true, .. }));
    book.said(&id, &say);
    assert!(book.next(NOW).is_none());
    assert_eq!(book.resync(&StatusResync::default(), None), 3);
    assert_eq!(std::iter::from_fn(|| book.next(NOW)).count(), 3);
}

#[test]
fn what_a_server_does_not_list_though_it_speaks_for_it_is_told_it_again() {
    let mut book = heard(&["a", "b", "c"]);
    let hash = book.get("a").unwrap().seen.as_ref().unwrap().hash.clone();
    let request = StatusResync { status_hashes: vec![KnownStatus { id: "a".to_owned(), hash }] };
    let up_to_c = IdRange { from: Some("!".to_owned()), to: Some("c".to_owned()) };
    assert_eq!(book.resync(&request, Some(&up_to_c)), 1, "c may be on another page");
    let (id, _) = book.next(NOW).unwrap();
    assert_eq!(id, "b");
}

#[test]
fn what_the_cluster_has_and_nobody_wrote_down_is_told_as_well() {
    let mut book = Book::default();
    book.note(sample("55c61e54-a3f6-563d-9fec-b1fe297bdfdb", 3));
    let unclaimed =
        ["55c61e54-a3f6-563d-9fec-b1fe297bdfdb", "0d3cc1ae-6a4f-52a5-8a0f-0b9c3a2a0c55", "made-by-hand"];
    let told = book.versions(unclaimed.map(str::to_owned).to_vec());
    let told: Vec<(&str, i64)> = told.iter().map(|one| (one.id.as_str(), one.version)).collect();
    assert_eq!(
        told,
        [("55c61e54-a3f6-563d-9fec-b1fe297bdfdb", 3), ("0d3cc1ae-6a4f-52a5-8a0f-0b9c3a2a0c55", 0)]
    );
}

#[test]
fn a_work_is_written_once_when_its_status_was_heard_soon_and_else_in_the_next_round() {
    let taken = |book: &mut Book| book.take_due(10).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    let mut book = Book::default();
    for id in ["heard", "unheard"] {
        book.note(sample(id, 1));
    }
    seen(&mut book, "heard", "x");
    let (id, say) = book.next(NOW).unwrap();
    book.said(&id, &say);
    assert!(book.begin_round(), "one waits");
    assert_eq!(taken(&mut book), ["heard"]);
    assert!(!book.begin_round());
    assert_eq!(taken(&mut book), ["unheard"], "nobody waits for two rounds");
    book.note(sample("last", 1));
    book.last_round();
    assert_eq!(taken(&mut book), ["last"]);
    book.not_written(["last".to_owned()]);
    assert_eq!(taken(&mut book), ["last"]);
}

#[test]
fn what_is_held_is_due_at_once_and_released_as_it_is_then() {
    let mut book = Book::default();
    for id in ["changed", "deleted", "back", "plain"] {
        book.note(sample(id, 1));
    }
    book.note(sample("changed", 2));
    for id in ["deleted", "back"] {
        book.note(Record { deleting: true, ..sample(id, 1) });
    }
    for id in ["changed", "deleted", "back"] {
        book.hold(id);
    }
    assert!(book.begin_round(), "the plain one waits for its status");
    let written: Vec<String> = book.take_due(10).into_iter().map(|(id, _)| id).collect();
    assert_eq!(written, ["back", "changed", "deleted"]);
    // While it was written, the engine was done with it, and it came again.
    book.gone("back");
    book.note(sample("back", 3));
    let released = book.release(written.iter());
    let released: Vec<_> = released.iter().map(|one| (one.id.as_str(), one.version, one.deleting)).collect();
    assert_eq!(released, [("back", 3, false), ("changed", 2, false), ("deleted", 1, true)]);
    assert!(book.release(written.iter()).is_empty(), "the engine is told once");
}

#[test]
fn a_work_that_came_again_while_the_last_of_it_went_is_given_to_the_engine_again() {
    let mut book = Book::default();
    book.note(Record { deleting: true, ..sample("a", 1) });
    book.note(sample("a", 2));
    assert_eq!(book.gone("a").map(|record| record.version), Some(2));
    assert_eq!(book.gone("unheard-of"), None);
}

#[test]
fn two_bundles_of_one_name_do_not_share_a_work() {
    let mut book = Book::default();
    book.note(sample("a", 1));
    let other = book.note(Record { name: "a".to_owned(), ..sample("b", 1) });
    assert_eq!(other.name, "b");
}

#[test]
fn refusals_are_told_and_bounded_and_the_work_that_was_before_stays() {
    let mut book = Book::default();
    book.note(sample("a", 1));
    book.refuse(sample("a", 2), "no manifests".to_owned());
    let (id, say) = book.next(NOW).unwrap();
    assert!(matches!(&say, Say::Refused { refusal, .. } if refusal.record.version == 2));
    book.said(&id, &say);
    assert_eq!(book.get("a").unwrap().version, 1);
    for number in 0..2 * MOST_REFUSALS {
        book.refuse(sample(&format!("r{number}"), 1), String::new());
    }
    assert_eq!(book.refusals.len(), MOST_REFUSALS);
}
