//! The properties and payload of a message as bytes of a packet.

use aro_bundle::mqtt::Message;
use bytes::{BufMut as _, Bytes, BytesMut};
use rumqttc::v5::mqttbytes::v5::PublishProperties;

use crate::wire::WireError;

/// The longest string MQTT carries: its length has two bytes.
const MAX_STRING: usize = u16::MAX as usize;

/// Encodes properties and payload as they are in a PUBLISH packet. `Err` names a string that MQTT cannot carry.
pub(crate) fn to_body(message: &Message) -> Result<Bytes, String> {
    let texts = message.user_properties.iter().flat_map(|(name, value)| [name, value]);
    if let Some(long) = texts.chain(&message.content_type).find(|text| text.len() > MAX_STRING) {
        // The codec would truncate the length to two bytes and produce a malformed packet.
        let owner = message.user_properties.iter().find(|(_, value)| value == long);
        let name = owner.map_or("a name or the content type", |(name, _)| name.as_str());
        return Err(format!("{name} has {} bytes, and MQTT carries at most {MAX_STRING}", long.len()));
    }
    let mut texts =
        message.user_properties.iter().flat_map(|(name, value)| [name, value]).chain(&message.content_type);
    if texts.any(|text| text.contains('\0')) {
        // MQTT forbids it, and brokers disconnect the client.
        return Err("a property contains NUL, which MQTT does not carry".to_owned());
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

/// Decodes what [`to_body`] encoded.
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
        fn message_survives_a_round_trip(
            content_type in proptest::option::of("[^\0]{0,40}"),
            user_properties in proptest::collection::vec(("[^\0]{0,20}", "[^\0]{0,300}"), 0..12),
            payload in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            let message = Message { content_type, user_properties, payload: payload.into() };
            prop_assert_eq!(from_body(to_body(&message).unwrap()).unwrap(), message);
        }

        #[test]
        fn no_bytes_make_decoding_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = from_body(body.into());
        }
    }

    #[test]
    fn string_with_a_nul_is_not_sent() {
        let message = Message {
            user_properties: vec![("ce-logtracing".to_owned(), "a\0b".to_owned())],
            ..Message::default()
        };
        assert!(to_body(&message).unwrap_err().contains("NUL"));
    }

    #[test]
    fn string_longer_than_mqtt_allows_is_named() {
        let message = Message {
            user_properties: vec![("ce-metadata".to_owned(), "x".repeat(65_536))],
            ..Message::default()
        };
        assert!(to_body(&message).unwrap_err().starts_with("ce-metadata has 65536 bytes"));
    }
}
