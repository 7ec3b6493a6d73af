//! An event as one JSON object: the form in rows and in structured messages.
//!
//! Rows hold `metadata` as an object, so that searches reach into it; on the wire it is a string. Both forms are decoded.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;
use serde::ser::SerializeMap as _;
use serde_json::value::RawValue;

use super::text::{
    Builder, DATA, DATA_BASE64, DATA_CONTENT_TYPE, ID, METADATA, SOURCE, SPECVERSION, TYPE, attributes,
};
use super::{Attribute, CONTENT_TYPE, Event, EventError, SPEC_VERSION};

/// Decodes an event from bytes.
pub fn read_slice(bytes: &[u8]) -> Result<Event, EventError> {
    let text = std::str::from_utf8(bytes).map_err(|_| EventError::NoEvent("it is not UTF-8"))?;
    read(text)
}

/// Decodes an event.
pub fn read(text: &str) -> Result<Event, EventError> {
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_str(text).map_err(|_| EventError::NoEvent("it is not a JSON object"))?;
    let mut builder = Builder::default();
    let mut data = Bytes::new();
    for (name, raw) in members {
        match name.as_str() {
            DATA if raw.get() == "null" => {}
            DATA => data = Bytes::copy_from_slice(raw.get().as_bytes()),
            DATA_CONTENT_TYPE => {}
            DATA_BASE64 => return Err(EventError::Data("it is not JSON".to_owned())),
            METADATA if raw.get().starts_with('{') => {
                builder.put(METADATA, Attribute::Text(raw.get().to_owned()))?;
            }
            name => {
                if let Some(value) = attribute(raw) {
                    builder.put(name, value)?;
                }
            }
        }
    }
    builder.finish(data)
}

/// The value of an extension; `null`, objects and arrays are none.
fn attribute(raw: &RawValue) -> Option<Attribute> {
    match serde_json::from_str(raw.get()).ok()? {
        serde_json::Value::Bool(value) => Some(Attribute::Boolean(value)),
        serde_json::Value::String(value) => Some(Attribute::Text(value)),
        serde_json::Value::Number(number) => {
            let whole = number.as_i64().and_then(|number| i32::try_from(number).ok());
            Some(whole.map_or_else(|| Attribute::Text(number.to_string()), Attribute::Integer))
        }
        _ => None,
    }
}

/// Encodes an event in the form of rows.
pub fn write(event: &Event) -> Result<Box<RawValue>, EventError> {
    serde_json::value::to_raw_value(&Stored(event)).map_err(|error| EventError::Data(error.to_string()))
}

struct Stored<'a>(&'a Event);

impl Serialize for Stored<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error as _;
        let event = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(SPECVERSION, SPEC_VERSION)?;
        map.serialize_entry(ID, &event.id)?;
        map.serialize_entry(SOURCE, &event.source)?;
        map.serialize_entry(TYPE, &event.kind.to_string())?;
        for (name, value) in attributes(event) {
            match value {
                Attribute::Text(text) if name == METADATA => {
                    let text = if text.is_empty() { "{}" } else { &text };
                    let object: &RawValue = serde_json::from_str(text).map_err(S::Error::custom)?;
                    map.serialize_entry(name, object)?;
                }
                Attribute::Text(text) => map.serialize_entry(name, &text)?,
                Attribute::Integer(number) => map.serialize_entry(name, &number)?,
                Attribute::Boolean(value) => map.serialize_entry(name, &value)?,
                Attribute::Time(time) => map.serialize_entry(name, &time)?,
            }
        }
        if !event.data.is_empty() {
            let data: &RawValue = serde_json::from_slice(&event.data).map_err(S::Error::custom)?;
            map.serialize_entry(DATA_CONTENT_TYPE, CONTENT_TYPE)?;
            map.serialize_entry(DATA, data)?;
        }
        map.end()
    }
}
