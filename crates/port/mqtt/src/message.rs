//! A message as it stands in a packet.

use aro_bundle::mqtt::Message;
use bytes::{BufMut as _, Bytes, BytesMut};
use rumqttc::v5::mqttbytes::v5::PublishProperties;

use crate::wire::WireError;

/// The longest text MQTT can carry: its length is written in two bytes.
const LONGEST_TEXT: usize = u16::MAX as usize;

/// The properties and the payload as they stand in a PUBLISH packet. `Err` names a text that MQTT cannot carry.
pub(crate) fn to_body(message: &Message) -> Result<Bytes, String> {
    let texts = message.user_properties.iter().flat_map(|(name, value)| [name, value]);
    if let Some(long) = texts.chain(&message.content_type).find(|text| text.len() > LONGEST_TEXT) {
        // The codec would cut the length to two bytes and send nonsense.
        let owner = message.user_properties.iter().find(|(_, value)| value == long);
        let name = owner.map_or("a name or the content type", |(name, _)| name.as_str());
        return Err(format!("{name} has {} bytes, and MQTT carries at most {LONGEST_TEXT}", long.len()));
    }
    let mut texts =
        message.user_properties.iter().flat_map(|(name, value)| [name, value]).chain(&message.content_type);
    if texts.any(|text| text.contains('\0')) {
        // MQTT forbids it, and brokers end the connection over it.
        return Err("a property holds a NUL, which MQTT does not carry".to_owned());
    }
    let properties = PublishProperties {
        user_properties: message.user_properties.clone(),
        content_type: message.content_type.clone(),
        ..PublishProperties::default()
    };
    let mut body = BytesMut::with_capacity(512 + message.payload.len());
    properties.write(&mut body).map_err(|error| error.to_string())?;
    body.put_slice(&message.payload);
    Ok(body.freeze())
}

/// Reads what [`to_body`] wrote.
pub(crate) fn from_body(mut body: Bytes) -> Result<Message, WireError> {
    let properties = PublishProperties::read(&mut body).map_err(|_| WireError::Malformed)?;
    let properties = properties.unwrap_or_default();
    Ok(Message {
        content_type: properties.content_type,
        user_properties: properties.user_properties,
        payload: body,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_message_is_read_as_it_was_written(
            content_type in proptest::option::of("[^\0]{0,40}"),
            user_properties in proptest::collection::vec(("[^\0]{0,20}", "[^\0]{0,300}"), 0..12),
            payload in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            let message = Message { content_type, user_properties, payload: payload.into() };
            prop_assert_eq!(from_body(to_body(&message).unwrap()).unwrap(), message);
        }

        #[test]
        fn no_bytes_make_reading_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = from_body(body.into());
        }
    }

    #[test]
    fn a_text_that_brokers_end_connections_over_is_not_sent() {
        let message = Message {
            user_properties: vec![("ce-logtracing".to_owned(), "a\0b".to_owned())],
            ..Message::default()
        };
        assert!(to_body(&message).unwrap_err().contains("NUL"));
    }

    #[test]
    fn a_text_longer_than_mqtt_allows_is_named() {
        let message = Message {
            user_properties: vec![("ce-metadata".to_owned(), "x".repeat(65_536))],
            ..Message::default()
        };
        assert!(to_body(&message).unwrap_err().starts_with("ce-metadata has 65536 bytes"));
    }
}
