use aro_bundle::{Action, EventType};
use aro_crds::work::v1::DeletePropagationPolicy;
use proptest::prelude::*;

use super::*;
use crate::record::sample;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn event(version: i32, data: &str) -> Event {
    let mut event = Event::new("e", "maestro", EventType::spec(Action::Create), "c1");
    event.resource_id = Some("w".to_owned());
    event.resource_version = Some(version);
    event.metadata = Some(r#"{"name":"w"}"#.to_owned());
    event.data = data.to_owned().into();
    event
}

const DATA: &str = r#"{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]}"#;

fn applied(version: i32) -> Record {
    match plan(&event(version, DATA), None, NOW) {
        Decision::Apply(record) => *record,
        other => panic!("{other:?}"),
    }
}

#[test]
fn new_bundle_is_applied_and_a_duplicate_only_republishes_the_status() {
    let known = applied(3);
    assert_eq!((known.version, known.spec.manifests.len()), (3, 1));
    assert_eq!(plan(&event(3, DATA), Some(&known), NOW), Decision::Republish);
    assert!(matches!(plan(&event(4, DATA), Some(&known), NOW), Decision::Apply(_)));
    let mut labelled = event(3, DATA);
    labelled.metadata = Some(r#"{"name":"w","labels":{"a":"b"}}"#.to_owned());
    assert!(
        matches!(plan(&labelled, Some(&known), NOW), Decision::Apply(_)),
        "labels change without a version"
    );
}

#[test]
fn stale_version_is_dropped_and_version_zero_is_not_stale() {
    let known = applied(3);
    assert!(matches!(plan(&event(2, DATA), Some(&known), NOW), Decision::Drop(_)));
    assert!(matches!(plan(&event(0, DATA), Some(&known), NOW), Decision::Apply(_)));
}

#[test]
fn deletion_event_overrides_the_delete_option() {
    let known = applied(1);
    let orphan =
        DATA.replace("{\"manifests\"", "{\"deleteOption\":{\"propagationPolicy\":\"Orphan\"},\"manifests\"");
    let mut delete = event(2, &orphan);
    delete.deletion_timestamp = Some(NOW);
    for known in [Some(&known), None] {
        let Decision::Delete(record) = plan(&delete, known, NOW) else { panic!() };
        let option = record.spec.delete_option.as_ref().unwrap();
        assert_eq!(option.propagation_policy, DeletePropagationPolicy::Orphan);
        assert_eq!(record.spec.manifests.len(), 1);
    }
    let late = Event { resource_version: Some(0), ..delete };
    let Decision::Delete(record) = plan(&late, Some(&known), NOW) else { panic!() };
    assert_eq!(record.spec.delete_option, None, "a stale event does not override it");
}

#[test]
fn deletion_is_terminal_and_accepted_for_an_unknown_bundle() {
    let known = Record { deleting: true, ..applied(3) };
    assert!(matches!(plan(&event(4, DATA), Some(&known), NOW), Decision::Drop(_)));
    let mut delete = event(4, "");
    delete.deletion_timestamp = Some(NOW);
    delete.metadata = None;
    let Decision::Delete(record) = plan(&delete, None, NOW) else { panic!() };
    assert_eq!((record.name.as_str(), record.version, record.deleting), ("w", 4, true));
    delete.resource_version = None;
    let Decision::Delete(record) = plan(&delete, Some(&known), NOW) else { panic!() };
    assert_eq!(record.version, 3, "an event without a version deletes the version there is");
}

#[test]
fn bundle_that_cannot_be_applied_is_rejected_with_the_reason() {
    for (data, expected) in [
        ("", "cannot be read"),
        ("{\"manifests\":", "cannot be read"),
        ("{\"manifests\":[]}", "holds no manifests"),
        ("{\"manifests\":7}", "cannot be read"),
    ] {
        let Decision::Reject(record, reason) = plan(&event(1, data), None, NOW) else { panic!("{data}") };
        assert!(reason.contains(expected), "{data}: {reason}");
        assert_eq!((record.id.as_str(), record.version), ("w", 1));
    }
    let large = format!(r#"{{"manifests":[{{"kind":"ConfigMap","data":"{}"}}]}}"#, "x".repeat(MAX_MANIFESTS));
    let Decision::Reject(_, reason) = plan(&event(1, &large), None, NOW) else { panic!() };
    assert!(reason.contains("more than 512000"), "{reason}");
}

#[test]
fn name_invalid_on_the_cluster_is_replaced_by_the_id() {
    for name in ["", "With Space", "ü"] {
        let mut odd = event(1, DATA);
        odd.metadata = Some(format!(r#"{{"name":"{name}"}}"#));
        let Decision::Apply(record) = plan(&odd, None, NOW) else { panic!() };
        assert_eq!(record.name, "w");
    }
}

fn property() -> impl Strategy<Value = (String, String)> {
    let names = prop_oneof![
        Just("ce-specversion"),
        Just("ce-id"),
        Just("ce-source"),
        Just("ce-type"),
        Just("ce-time"),
        Just("ce-clustername"),
        Just("ce-resourceid"),
        Just("ce-resourceversion"),
        Just("ce-deletiontimestamp"),
        Just("ce-metadata"),
        Just("ce-logtracing"),
        Just("ce-resyncfrom"),
        Just("other"),
        Just(""),
    ];
    let known = EventType::spec(Action::Create).to_string();
    let values = prop_oneof![
        Just("1.0".to_owned()),
        Just(known),
        Just("{}".to_owned()),
        Just("1".to_owned()),
        ".{0,30}"
    ];
    (names.prop_map(str::to_owned), values)
}

proptest! {
    #[test]
    fn no_message_makes_decoding_or_planning_panic(
        user_properties in proptest::collection::vec(property(), 0..14),
        content_type in proptest::option::of(prop_oneof![Just("application/cloudevents+json".to_owned()), ".{0,20}"]),
        payload in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..60),
            Just(DATA.as_bytes().to_vec()),
            Just(b"{\"manifests\":[null,1,\"x\",{}]}".to_vec()),
        ],
        known in any::<bool>(),
    ) {
        let message = aro_bundle::mqtt::Message { content_type, user_properties, payload: payload.into() };
        let known = known.then(|| sample("1", 1));
        if let Ok(event) = aro_bundle::mqtt::read(&message)
            && let Decision::Apply(record) = plan(&event, known.as_ref(), NOW)
        {
            let _ = (record.work(), record.status_metadata("c1"));
        }
    }

    #[test]
    fn no_event_makes_planning_panic(
        version in proptest::option::of(any::<i32>()),
        id in proptest::option::of(".{0,20}"),
        metadata in proptest::option::of(".{0,60}"),
        data in proptest::collection::vec(any::<u8>(), 0..80),
        deleted in any::<bool>(),
        known in any::<bool>(),
    ) {
        let mut event = event(1, "");
        event.resource_id = id;
        event.resource_version = version;
        event.metadata = metadata;
        event.data = data.into();
        event.deletion_timestamp = deleted.then_some(NOW);
        let known = known.then(|| sample("w", 5));
        let _ = plan(&event, known.as_ref(), NOW);
    }
}
