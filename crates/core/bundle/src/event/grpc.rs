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
/// The type of the event that only says: I am still here.
pub const HEARTBEAT: &str = "io.open-cluster-management.cloudevents.heartbeat";

/// An event.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CloudEvent {
    /// Names it.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Who says it.
    #[prost(string, tag = "2")]
    pub source: String,
    /// The version of CloudEvents.
    #[prost(string, tag = "3")]
    pub spec_version: String,
    /// Its type.
    #[prost(string, tag = "4")]
    pub r#type: String,
    /// Everything else of the envelope.
    #[prost(map = "string, message", tag = "5")]
    pub attributes: HashMap<String, AttributeValue>,
    /// What it carries.
    #[prost(oneof = "Data", tags = "6, 7, 8")]
    pub data: Option<Data>,
}

/// What an event carries.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Data {
    /// What everybody sends.
    #[prost(bytes = "bytes", tag = "6")]
    Binary(Bytes),
    /// Not read by anybody.
    #[prost(string, tag = "7")]
    Text(String),
    /// Not read by anybody.
    #[prost(message, tag = "8")]
    Proto(prost_types::Any),
}

/// A value of the envelope.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AttributeValue {
    /// The value.
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub attr: Option<Value>,
}

/// What a value of the envelope can be.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Value {
    /// Yes or no.
    #[prost(bool, tag = "1")]
    Boolean(bool),
    /// A whole number.
    #[prost(int32, tag = "2")]
    Integer(i32),
    /// A text.
    #[prost(string, tag = "3")]
    String(String),
    /// Bytes.
    #[prost(bytes = "bytes", tag = "4")]
    Bytes(Bytes),
    /// An address.
    #[prost(string, tag = "5")]
    Uri(String),
    /// An address, maybe relative.
    #[prost(string, tag = "6")]
    UriRef(String),
    /// A time.
    #[prost(message, tag = "7")]
    Timestamp(prost_types::Timestamp),
}

/// What `Publish` is called with.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PublishRequest {
    /// The event.
    #[prost(message, optional, tag = "1")]
    pub event: Option<CloudEvent>,
}

/// What `Subscribe` is called with.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SubscriptionRequest {
    /// Whose events; for sources.
    #[prost(string, tag = "1")]
    pub source: String,
    /// Events about which cluster; for agents.
    #[prost(string, tag = "2")]
    pub cluster_name: String,
    /// Events about what.
    #[prost(string, tag = "3")]
    pub data_type: String,
}

/// The event that only says: I am still here.
pub fn heartbeat(id: String) -> CloudEvent {
    CloudEvent {
        id,
        spec_version: SPEC_VERSION.to_owned(),
        r#type: HEARTBEAT.to_owned(),
        ..CloudEvent::default()
    }
}

/// Writes an event.
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

/// Reads an event.
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
        // The fixed fields are the fields, whatever else claims to be one.
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
        // What is no time is kept as a text, so that whoever needs a time there says what is wrong.
        Value::Timestamp(time) => {
            Some(Timestamp::new(time.seconds, time.nanos).map_or_else(
                |_| Attribute::Text(format!("{}s{}ns", time.seconds, time.nanos)),
                Attribute::Time,
            ))
        }
        Value::Bytes(_) => None,
    }
}
