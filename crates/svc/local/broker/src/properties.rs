//! The properties of a PUBLISH packet.

use aro_mqtt::wire::variable_length;

/// The reason to disconnect with, for properties that cannot be forwarded.
pub const MALFORMED: u8 = 0x81;
const PROTOCOL_ERROR: u8 = 0x82;
const ALIAS_INVALID: u8 = 0x94;

/// Checks a client's properties without decoding more than needed: they are forwarded as they are.
pub fn check(body: &[u8]) -> Result<(), u8> {
    let (used, length) = variable_length(body).ok().flatten().ok_or(MALFORMED)?;
    let mut rest = body.get(used..used + length).ok_or(MALFORMED)?;
    while let Some((&name, value)) = rest.split_first() {
        let size = match name {
            // Payload format.
            1 => 1,
            // Message expiry.
            2 => 4,
            // Content type, response topic.
            3 | 8 => text(value).ok_or(MALFORMED)?,
            // Correlation data.
            9 => data(value).ok_or(MALFORMED)?.len() + 2,
            // A user property is two strings.
            38 => {
                let first = text(value).ok_or(MALFORMED)?;
                first + text(value.get(first..).unwrap_or_default()).ok_or(MALFORMED)?
            }
            // The broker allows no topic aliases, and only brokers send subscription ids.
            35 => return Err(ALIAS_INVALID),
            11 => return Err(PROTOCOL_ERROR),
            _ => return Err(MALFORMED),
        };
        rest = value.get(size..).ok_or(MALFORMED)?;
    }
    Ok(())
}

/// The encoded length of a string, which must be valid: a subscriber disconnects over an invalid one, and a consumer that gets
/// such a message to a server would cut all consumers off from it.
fn text(bytes: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(data(bytes)?).ok()?;
    (!text.contains('\0')).then_some(2 + text.len())
}

/// Bytes with their length prefix.
fn data(bytes: &[u8]) -> Option<&[u8]> {
    let [high, low, rest @ ..] = bytes else { return None };
    rest.get(..usize::from(u16::from_be_bytes([*high, *low])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rumqttc::v5::mqttbytes::v5::PublishProperties;

    #[test]
    fn unsupported_property_is_rejected_with_its_reason() {
        assert_eq!(check(&[3, 35, 0, 1]), Err(ALIAS_INVALID));
        assert_eq!(check(&[2, 11, 1]), Err(PROTOCOL_ERROR));
        assert_eq!(check(&[2, 99, 1]), Err(MALFORMED));
        assert_eq!(check(&[]), Err(MALFORMED));
        assert_eq!(check(&[5, 38, 0, 1]), Err(MALFORMED));
        assert_eq!(check(&[0, 1, 2, 3]), Ok(()));
        // A content type and a user property with invalid strings; correlation data may be any bytes.
        assert_eq!(check(&[4, 3, 0, 1, 0xff]), Err(MALFORMED));
        assert_eq!(check(&[7, 38, 0, 1, b'a', 0, 1, 0xff]), Err(MALFORMED));
        assert_eq!(check(&[7, 38, 0, 1, 0, 0, 1, b'a']), Err(MALFORMED));
        assert_eq!(check(&[4, 9, 0, 1, 0xff]), Ok(()));
    }

    proptest! {
        #[test]
        fn properties_of_a_client_are_accepted(
            content_type in proptest::option::of("[^\0]{0,20}"),
            user_properties in proptest::collection::vec(("[^\0]{0,10}", "[^\0]{0,100}"), 0..9),
            payload in proptest::collection::vec(any::<u8>(), 0..50),
        ) {
            let mut body = bytes::BytesMut::new();
            let properties = PublishProperties { content_type, user_properties, ..Default::default() };
            properties.write(&mut body).unwrap();
            body.extend_from_slice(&payload);
            prop_assert_eq!(check(&body), Ok(()));
        }

        #[test]
        fn no_bytes_make_checking_panic(body in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = check(&body);
        }
    }
}
