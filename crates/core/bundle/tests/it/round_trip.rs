//! Encoding and decoding are inverse; no input makes a decoder panic.

use std::collections::{BTreeMap, HashMap};

use aro_base::Timestamp;
use aro_bundle::grpc::{AttributeValue, CloudEvent, Data, Value};
use aro_bundle::{
    Action, Attribute, Event, EventType, SpecResync, StatusResync, Subresource, grpc, json, mqtt,
};
use proptest::prelude::*;

fn time() -> impl Strategy<Value = Timestamp> {
    (-1_000_000_000_i64..4_000_000_000, 0..1_000_000_000_i32)
        .prop_map(|(seconds, nanos)| Timestamp::new(seconds, nanos).expect("in range"))
}

fn event() -> impl Strategy<Value = Event> {
    let kinds = prop::sample::select(vec![
        Action::Create,
        Action::Update,
        Action::Delete,
        Action::ResyncRequest,
        Action::ResyncResponse,
    ]);
    let subresources = prop::sample::select(vec![Subresource::Spec, Subresource::Status]);
    let text = "[ -~]{0,12}";
    (
        ("[a-z0-9-]{1,12}", "[a-z0-9-]{1,12}", kinds, subresources, prop::option::of(time())),
        (text, prop::option::of(text), prop::option::of(text), prop::option::of(any::<i32>())),
        (prop::option::of(time()), prop::option::of(text), prop::option::of("[0-9]{1,19}")),
        prop::option::of(Just(r#"{"name":"x"}"#.to_owned())),
        prop::collection::btree_map("own[a-z]{1,5}", text, 0..3),
        prop::option::of(Just(r#"{"manifests":[]}"#)),
    )
        .prop_map(|(first, second, third, metadata, others, data)| {
            let (id, source, action, subresource, time) = first;
            let (cluster, original, resource, version) = second;
            let (deletion, tracing, sequence) = third;
            let mut event = Event::new(id, source, EventType { subresource, action }, cluster);
            event.time = time;
            event.original_source = original;
            event.resource_id = resource;
            event.resource_version = version;
            event.deletion_timestamp = deletion;
            event.log_tracing = tracing;
            event.sequence_id = sequence;
            event.metadata = metadata;
            let others = others.into_iter().map(|(name, value)| (name, Attribute::Text(value)));
            event.others = others.collect::<BTreeMap<_, _>>();
            event.data = data.unwrap_or_default().into();
            event
        })
}

proptest! {
    #[test]
    fn event_survives_a_round_trip_in_every_encoding(event in event()) {
        prop_assert_eq!(mqtt::read(&mqtt::write(&event)), Ok(event.clone()));
        prop_assert_eq!(grpc::read(grpc::write(&event)), Ok(event.clone()));
        prop_assert_eq!(json::read(json::write(&event).expect("writable").get()), Ok(event));
    }

    #[test]
    fn no_message_makes_a_decoder_panic(
        properties in prop::collection::vec(("(ce-)?(specversion|id|type|time|resourceversion|deletiontimestamp|metadata|[a-z]{0,6})", ".{0,20}"), 0..12),
        content_type in prop::option::of("(application/(json|cloudevents\\+json)|.{0,10})"),
        payload in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let message = mqtt::Message { content_type, user_properties: properties, payload: payload.into() };
        if let Ok(event) = mqtt::read(&message) {
            let _ = (event.payload::<aro_bundle::ManifestBundle>(), event.metadata_object(), json::write(&event));
        }
    }

    #[test]
    fn no_protobuf_makes_a_decoder_panic(
        names in prop::collection::vec("(ce-)?(time|resourceversion|deletiontimestamp|clustername|[a-z]{0,6})", 0..6),
        seconds in any::<i64>(), nanos in any::<i32>(), text in ".{0,20}", payload in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let values = [
            Value::Timestamp(prost_types::Timestamp::default()), Value::Integer(nanos), Value::String(text.clone()), Value::Boolean(true),
        ];
        let mut attributes: HashMap<String, AttributeValue> = names
            .into_iter()
            .enumerate()
            .map(|(at, name)| (name, AttributeValue { attr: Some(values[at % values.len()].clone()) }))
            .collect();
        let mut wild = grpc::write(&Event::new("a", "b", EventType::spec(Action::Delete), "c"));
        if let Some(AttributeValue { attr: Some(Value::Timestamp(time)) }) = attributes.values_mut().next() {
            time.seconds = seconds;
            time.nanos = nanos;
        }
        wild.attributes.extend(attributes);
        wild.data = Some(Data::Binary(payload.into()));
        let _ = grpc::read(wild);
        let _ = grpc::read(CloudEvent { r#type: text, ..CloudEvent::default() });
    }
}

#[test]
fn extension_names_exclude_the_data_and_what_cloudevents_forbids() {
    let mut event = Event::new("e", "s", EventType::spec(Action::Create), "c");
    event.data = r#"{"manifests":[]}"#.into();
    let mut message = mqtt::write(&event);
    for name in ["data", "data_base64", "datacontenttype", "", "a-b", "ä"] {
        message.user_properties.push((format!("ce-{name}"), "x".to_owned()));
    }
    let read = mqtt::read(&message).unwrap();
    assert_eq!(read, event);
    assert_eq!(json::read(json::write(&read).unwrap().get()).unwrap(), event);
}

#[test]
fn whitespace_around_the_data_is_removed() {
    let mut event = Event::new("e", "s", EventType::spec(Action::Create), "c");
    event.data = r#"{"manifests":[]}"#.into();
    let mut message = mqtt::write(&event);
    message.payload = bytes::Bytes::from_static(b" \r\n{\"manifests\":[]}\n");
    let read = mqtt::read(&message).unwrap();
    assert_eq!(read.data, event.data, "it is stored, published and hashed in this form");
}

#[test]
fn null_lists_are_empty() {
    for text in ["{}", r#"{"statusHashes":null,"resourceVersions":null}"#] {
        assert_eq!(serde_json::from_str::<StatusResync>(text).unwrap(), StatusResync::default());
        assert_eq!(serde_json::from_str::<SpecResync>(text).unwrap(), SpecResync::default());
    }
}

#[test]
fn version_is_decoded_from_a_string_or_fraction_within_its_range() {
    let read = |version: &str| {
        let mut message = mqtt::write(&Event::new("a", "b", EventType::spec(Action::Create), "c"));
        message.user_properties.push(("ce-resourceversion".to_owned(), version.to_owned()));
        mqtt::read(&message).map(|event| event.resource_version)
    };
    assert_eq!(read("1"), Ok(Some(1)));
    assert_eq!(read("12.7"), Ok(Some(12)));
    assert_eq!(read("2147483647"), Ok(Some(i32::MAX)));
    for wrong in ["2147483648", "x", "", "NaN", "inf"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
