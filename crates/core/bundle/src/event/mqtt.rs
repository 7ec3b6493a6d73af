//! An event as an MQTT v5 message: attributes are user properties, the payload is the data.

use bytes::Bytes;

use super::text::{Builder, ID, SOURCE, SPECVERSION, TYPE, attributes, canonical};
use super::{Attribute, CONTENT_TYPE, Event, EventError, SPEC_VERSION, STRUCTURED, json};

/// The prefix of attributes among the user properties.
const PREFIX: &str = "ce-";

/// A message without its topic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// The media type of the payload.
    pub content_type: Option<String>,
    /// In order; a name may occur twice.
    pub user_properties: Vec<(String, String)>,
    /// The payload.
    pub payload: Bytes,
}

/// Encodes an event.
pub fn write(event: &Event) -> Message {
    let property = |name: &str, value: String| (format!("{PREFIX}{name}"), value);
    let mut properties = vec![
        property(SPECVERSION, SPEC_VERSION.to_owned()),
        property(ID, event.id.clone()),
        property(SOURCE, event.source.clone()),
        property(TYPE, event.kind.to_string()),
    ];
    properties.extend(attributes(event).map(|(name, value)| property(name, canonical(&value))));
    Message {
        content_type: (!event.data.is_empty()).then(|| CONTENT_TYPE.to_owned()),
        user_properties: properties,
        payload: event.data.clone(),
    }
}

/// Decodes an event, in either of the two modes of CloudEvents.
pub fn read(message: &Message) -> Result<Event, EventError> {
    if message.content_type.as_deref().is_some_and(|kind| kind.starts_with(STRUCTURED)) {
        return json::read_slice(&message.payload);
    }
    let mut builder = Builder::default();
    let mut seen = false;
    for (name, value) in &message.user_properties {
        let Some(name) = name.strip_prefix(PREFIX) else { continue };
        seen |= name == SPECVERSION;
        builder.put(name, Attribute::Text(value.clone()))?;
    }
    if !seen {
        return Err(EventError::NoEvent("it has no property `ce-specversion`"));
    }
    builder.finish(message.payload.clone())
}
