//! Events of the original: its published samples, and events captured on a broker.
//!
//! They are in a directory beside the checkout; without it these tests report that they are skipped.

use std::path::PathBuf;

use aro_bundle::{
    Action, Attribute, BundleStatus, Event, EventType, ManifestBundle, SpecResync, grpc, json, mqtt,
    status_hash, validate,
};
use aro_crds::work::v1::{ManifestResourceStatus, ManifestWorkStatus};

fn specs() -> Option<PathBuf> {
    aro_prerequisites::specs("maestro")
}

fn sample(name: &str) -> Option<Event> {
    let text = std::fs::read_to_string(specs()?.join("samples").join(name)).expect("a sample");
    Some(json::read(&text).expect(name))
}

#[test]
fn every_sample_survives_a_round_trip_in_every_encoding() {
    let files = [
        ("cloudevents.grpcclient.json", EventType::spec(Action::Create)),
        ("cloudevents.spec.maestro.json", EventType::spec(Action::Create)),
        ("cloudevents.agent.json", EventType::status(Action::Update)),
        ("cloudevents.status.maestro.json", EventType::status(Action::Update)),
        ("grpc-cloudevent.json", EventType::spec(Action::Create)),
        ("grpc-cloudevent-update.json", EventType::spec(Action::Update)),
        ("grpc-cloudevent-delete.json", EventType::spec(Action::Delete)),
        ("grpc-cloudevent-status-resync.json", EventType::status(Action::ResyncRequest)),
    ];
    for (name, kind) in files {
        let Some(event) = sample(name) else { return };
        assert_eq!(event.kind, kind, "{name}");
        assert_eq!(mqtt::read(&mqtt::write(&event)).as_ref(), Ok(&event), "{name}");
        assert_eq!(grpc::read(grpc::write(&event)).as_ref(), Ok(&event), "{name}");
        let stored = json::write(&event).expect("it can be written");
        let again = json::read(stored.get()).expect("it can be read");
        assert_eq!(again.metadata_object(), event.metadata_object(), "{name}");
        let without = |event: &Event| Event { metadata: None, data: "".into(), ..event.clone() };
        assert_eq!(without(&again), without(&event), "{name}");
    }
}

#[test]
fn sample_payloads_are_bundles_and_statuses() {
    let Some(create) = sample("cloudevents.grpcclient.json") else { return };
    let bundle: ManifestBundle = create.payload().expect("a bundle");
    assert_eq!((bundle.manifests.len(), bundle.manifest_configs.len()), (1, 1));
    assert_eq!(validate(&bundle), []);
    let event = sample("cloudevents.status.maestro.json").expect("a sample");
    let status: BundleStatus = event.payload().expect("a status");
    assert!(status.manifest_bundle.is_some() && !status.is_deleted());
    assert_eq!(status.resource_status[0].resource_meta.resource, "deployments");
}

/// `topic | name:value name:value … | payload`; only metadata values contain blanks, up to the next `ce-`.
fn captured(line: &str) -> mqtt::Message {
    let mut parts = line.splitn(3, " | ");
    let (_, properties, payload) =
        (parts.next(), parts.next().expect("properties"), parts.next().expect("data"));
    let mut user_properties = Vec::new();
    for property in format!(" {properties}").split(" ce-").skip(1) {
        let (name, value) = property.split_once(':').expect("a value");
        user_properties.push((format!("ce-{name}"), value.to_owned()));
    }
    mqtt::Message { content_type: None, user_properties, payload: payload.trim_end().to_owned().into() }
}

#[test]
fn events_of_the_original_agent_are_decoded_and_their_digest_matches() {
    let Some(specs) = specs() else { return };
    let (mut statuses, mut resyncs) = (0, 0);
    for file in ["agent-events-1.txt", "agent-events-2.txt"] {
        for line in
            std::fs::read_to_string(specs.join("captured").join(file)).expect("captured events").lines()
        {
            let event = mqtt::read(&captured(line)).expect(line);
            assert_eq!(event.cluster_name, "c1");
            if event.kind == EventType::spec(Action::ResyncRequest) {
                assert_eq!(event.payload::<SpecResync>(), Ok(SpecResync::default()));
                assert_eq!(event.original_source.as_deref(), Some(""));
                resyncs += 1;
            }
            if event.kind == EventType::status(Action::Update) {
                let status: BundleStatus = event.payload().expect("a status");
                let work = ManifestWorkStatus {
                    conditions: status.conditions,
                    resource_status: ManifestResourceStatus { manifests: status.resource_status },
                };
                assert_eq!(Some(status_hash(&work)), event.status_hash);
                assert_eq!(event.version(), Ok(1));
                statuses += 1;
            }
            assert!(!event.others.values().any(|value| matches!(value, Attribute::Time(_))));
        }
    }
    assert!(statuses >= 3 && resyncs >= 1);
}
