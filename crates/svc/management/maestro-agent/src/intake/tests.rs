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
    match decide(&event(version, DATA), None, NOW) {
        Decision::Apply(record) => *record,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_bundle_is_applied_and_the_same_again_is_only_answered() {
    let known = applied(3);
    assert_eq!((known.version, known.spec.manifests.len()), (3, 1));
    assert_eq!(decide(&event(3, DATA), Some(&known), NOW), Decision::Repeat);
    assert!(matches!(decide(&event(4, DATA), Some(&known), NOW), Decision::Apply(_)));
    let mut labelled = event(3, DATA);
    labelled.metadata = Some(r#"{"name":"w","labels":{"a":"b"}}"#.to_owned());
    assert!(
        matches!(decide(&labelled, Some(&known), NOW), Decision::Apply(_)),
        "labels change without a version"
    );
}

#[test]
fn an_older_version_is_dropped_and_version_zero_is_not_older() {
    let known = applied(3);
    assert!(matches!(decide(&event(2, DATA), Some(&known), NOW), Decision::Drop(_)));
    assert!(matches!(decide(&event(0, DATA), Some(&known), NOW), Decision::Apply(_)));
}

#[test]
fn what_a_deletion_says_about_what_stays_is_the_last_word() {
    let known = applied(1);
    let orphan =
        DATA.replace("{\"manifests\"", "{\"deleteOption\":{\"propagationPolicy\":\"Orphan\"},\"manifests\"");
    let mut delete = event(2, &orphan);
    delete.deletion_timestamp = Some(NOW);
    for known in [Some(&known), None] {
        let Decision::Delete(gone) = decide(&delete, known, NOW) else { panic!() };
        let option = gone.spec.delete_option.as_ref().unwrap();
        assert_eq!(option.propagation_policy, DeletePropagationPolicy::Orphan);
        assert_eq!(gone.spec.manifests.len(), 1);
    }
    let late = Event { resource_version: Some(0), ..delete };
    let Decision::Delete(gone) = decide(&late, Some(&known), NOW) else { panic!() };
    assert_eq!(gone.spec.delete_option, None, "an older word does not count");
}

#[test]
fn deleting_is_terminal_and_works_for_what_nobody_knows() {
    let known = Record { deleting: true, ..applied(3) };
    assert!(matches!(decide(&event(4, DATA), Some(&known), NOW), Decision::Drop(_)));
    let mut delete = event(4, "");
    delete.deletion_timestamp = Some(NOW);
    delete.metadata = None;
    let Decision::Delete(gone) = decide(&delete, None, NOW) else { panic!() };
    assert_eq!((gone.name.as_str(), gone.version, gone.deleting), ("w", 4, true));
    delete.resource_version = None;
    let Decision::Delete(gone) = decide(&delete, Some(&known), NOW) else { panic!() };
    assert_eq!(gone.version, 3, "one without a version is about what is there");
}

#[test]
fn what_cannot_be_applied_is_refused_with_the_reason() {
    for (data, expected) in [
        ("", "cannot be read"),
        ("{\"manifests\":", "cannot be read"),
        ("{\"manifests\":[]}", "holds no manifests"),
        ("{\"manifests\":7}", "cannot be read"),
    ] {
        let Decision::Refuse(record, why) = decide(&event(1, data), None, NOW) else { panic!("{data}") };
        assert!(why.contains(expected), "{data}: {why}");
        assert_eq!((record.id.as_str(), record.version), ("w", 1));
    }
    let large = format!(r#"{{"manifests":[{{"kind":"ConfigMap","data":"{}"}}]}}"#, "x".repeat(MAX_MANIFESTS));
    let Decision::Refuse(_, why) = decide(&event(1, &large), None, NOW) else { panic!() };
    assert!(why.contains("more than 512000"), "{why}");
}

#[test]
fn a_name_the_cluster_would_not_take_gives_way_to_the_id() {
    for name in ["", "With Space", "ü"] {
        let mut odd = event(1, DATA);
        odd.metadata = Some(format!(r#"{{"name":"{name}"}}"#));
        let Decision::Apply(record) = decide(&odd, None, NOW) else { panic!() };
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
    fn no_message_makes_reading_or_deciding_panic(
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
            && let Decision::Apply(record) = decide(&event, known.as_ref(), NOW)
        {
            let _ = (record.work(), record.echo("c1"));
        }
    }

    #[test]
    fn no_event_makes_deciding_panic(
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
        let _ = decide(&event, known.as_ref(), NOW);
    }
}
