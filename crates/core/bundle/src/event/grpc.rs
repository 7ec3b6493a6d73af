//! An event as a protobuf message of `io.cloudevents.v1`.
//!
//! The messages are CloudEvents' own, the mapping is not: attributes other than the first four are keyed with the prefix
//! `ce-`, the content type is keyed `contenttype`, and data is always bytes. That is what the clients in the field do.

use std::collections::HashMap;

use aro_base::Timestamp;
use bytes::Bytes;

use super::text::{Builder, ID, SOURCE, SPECVERSION, TYPE, attributes};
use super::{Attribute, CONTENT_TYPE, Event, EventError, SPEC_VERSION, STRUCTURED, json};

const PREFIX: &str = "ce-";
const CONTENT_TYPE_KEY: &str = "contenttype";
/// The type of a heartbeat event.
pub const HEARTBEAT: &str = "io.open-cluster-management.cloudevents.heartbeat";

/// An event.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CloudEvent {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Its source.
    #[prost(string, tag = "2")]
    pub source: String,
    /// The version of CloudEvents.
    #[prost(string, tag = "3")]
    pub spec_version: String,
    /// Its type.
    #[prost(string, tag = "4")]
    pub r#type: String,
    /// All other attributes and extensions.
    #[prost(map = "string, message", tag = "5")]
    pub attributes: HashMap<String, AttributeValue>,
    /// The payload.
    #[prost(oneof = "Data", tags = "6, 7, 8")]
    pub data: Option<Data>,
}

/// The payload of an event.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Data {
    /// The variant all clients use.
    #[prost(bytes = "bytes", tag = "6")]
    Binary(Bytes),
    /// Ignored.
    #[prost(string, tag = "7")]
    Text(String),
    /// Ignored.
    #[prost(message, tag = "8")]
    Proto(prost_types::Any),
}

/// The value of an attribute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AttributeValue {
    /// The value.
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub attr: Option<Value>,
}

/// The types an attribute can have.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Value {
    /// A boolean.
    #[prost(bool, tag = "1")]
    Boolean(bool),
    /// An integer.
    #[prost(int32, tag = "2")]
    Integer(i32),
    /// A string.
    #[prost(string, tag = "3")]
    String(String),
    /// Bytes.
    #[prost(bytes = "bytes", tag = "4")]
    Bytes(Bytes),
    /// A URI.
    #[prost(string, tag = "5")]
    Uri(String),
    /// A URI reference.
    #[prost(string, tag = "6")]
    UriRef(String),
    /// A time.
    #[prost(message, tag = "7")]
    Timestamp(prost_types::Timestamp),
}

/// The request of `Publish`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PublishRequest {
    /// The event.
    #[prost(message, optional, tag = "1")]
    pub event: Option<CloudEvent>,
}

/// The request of `Subscribe`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SubscriptionRequest {
    /// The source whose events are requested; for sources.
    #[prost(string, tag = "1")]
    pub source: String,
    /// The cluster whose events are requested; for agents.
    #[prost(string, tag = "2")]
    pub cluster_name: String,
    /// The data type of the requested events.
    #[prost(string, tag = "3")]
    pub data_type: String,
}

/// A heartbeat event.
pub fn heartbeat(id: String) -> CloudEvent {
    CloudEvent {
        id,
        spec_version: SPEC_VERSION.to_owned(),
        r#type: HEARTBEAT.to_owned(),
        ..CloudEvent::default()
    }
}

/// Encodes an event.
pub fn write(event: &Event) -> CloudEvent {
    let value = |value| AttributeValue { attr: Some(value) };
    let mut all: HashMap<String, AttributeValue> = attributes(event)
        .map(|(name, attribute)| {
            let attribute = match attribute {
                Attribute::Boolean(yes) => Value::Boolean(yes),
                Attribute::Integer(number) => Value::Integer(number),
                Attribute::Text(text) => Value::String(text),
                Attribute::Time(time) => Value::Timestamp(prost_types::Timestamp {
                    seconds: time.as_second(),
                    nanos: time.subsec_nanosecond(),
                }),
            };
            (format!("{PREFIX}{name}"), value(attribute))
        })
        .collect();
    let data = (!event.data.is_empty()).then(|| {
        all.insert(CONTENT_TYPE_KEY.to_owned(), value(Value::String(CONTENT_TYPE.to_owned())));
        Data::Binary(event.data.clone())
    });
    CloudEvent {
        id: event.id.clone(),
        source: event.source.clone(),
        spec_version: SPEC_VERSION.to_owned(),
        r#type: event.kind.to_string(),
        attributes: all,
        data,
    }
}

/// Decodes an event.
pub fn read(message: CloudEvent) -> Result<Event, EventError> {
    if message.attributes.is_empty() {
        return Err(EventError::NoEvent("it has no attributes"));
    }
    let data = match message.data {
        Some(Data::Binary(bytes)) => bytes,
        _ => Bytes::new(),
    };
    let content_type = message.attributes.get(CONTENT_TYPE_KEY).and_then(|value| value.attr.as_ref());
    if matches!(content_type, Some(Value::String(kind)) if kind.starts_with(STRUCTURED)) {
        return json::read_slice(&data);
    }
    let mut builder = Builder::default();
    let text = Attribute::Text;
    builder.put(SPECVERSION, text(message.spec_version))?;
    builder.put(ID, text(message.id))?;
    builder.put(SOURCE, text(message.source))?;
    builder.put(TYPE, text(message.r#type))?;
    for (name, value) in message.attributes {
        let (Some(name), Some(value)) = (name.strip_prefix(PREFIX), value.attr) else { continue };
        // The fixed fields win over attributes of the same name.
        if [ID, SOURCE, SPECVERSION, TYPE].contains(&name) {
            continue;
        }
        if let Some(value) = attribute(value) {
            builder.put(name, value)?;
        }
    }
    builder.finish(data)
}

fn attribute(value: Value) -> Option<Attribute> {
    match value {
        Value::Boolean(yes) => Some(Attribute::Boolean(yes)),
        Value::Integer(number) => Some(Attribute::Integer(number)),
        Value::String(text) | Value::Uri(text) | Value::UriRef(text) => Some(Attribute::Text(text)),
        // A timestamp out of range is kept as a string, so that an error names its value.
        Value::Timestamp(time) => {
            Some(Timestamp::new(time.seconds, time.nanos).map_or_else(
                |_| Attribute::Text(format!("{}s{}ns", time.seconds, time.nanos)),
                Attribute::Time,
            ))
        }
        Value::Bytes(_) => None,
    }
}
