use super::*;
use proptest::prelude::*;

fn all(bytes: &[u8]) -> Result<Vec<Frame>, WireError> {
    let mut buffer = BytesMut::from(bytes);
    let mut found = Vec::new();
    while let Some(frame) = take_frame(&mut buffer, 1 << 20)? {
        found.push(frame);
    }
    Ok(found)
}

#[test]
fn disconnect_is_decoded_with_and_without_reason_and_properties() {
    for (bytes, reason) in [
        (&[0xe0, 0][..], 0),
        (&[0xe0, 1, 0x8b], 0x8b),
        (&[0xe0, 2, 0x97, 0], 0x97),
        (&[0xe0, 5, 0x97, 3, 31, 0, 0], 0x97),
    ] {
        assert_eq!(all(bytes), Ok(vec![Frame::Disconnect(reason)]));
    }
}

#[test]
fn incomplete_packet_is_awaited_and_an_oversized_one_rejected() {
    let mut out = BytesMut::new();
    put_publish(&mut out, 7, "a/b", b"\0hello");
    for length in 0..out.len() {
        assert_eq!(take_frame(&mut BytesMut::from(&out[..length]), 100), Ok(None));
    }
    assert_eq!(take_frame(&mut out.clone(), out.len() - 1), Err(WireError::TooLarge));
    assert!(matches!(take_frame(&mut out.clone(), out.len()), Ok(Some(Frame::Publish(_)))));
}

#[test]
fn truncated_packet_is_malformed() {
    // A SUBACK whose properties claim more than there is; the codec alone calls it incomplete.
    assert_eq!(all(&[0x90, 3, 0, 1, 0x80]), Err(WireError::Malformed));
    assert_eq!(all(&[0x32, 4, 0, 9, b'a', 0]), Err(WireError::Malformed));
    assert_eq!(all(&[0xff, 0xff, 0xff, 0xff, 0xff]), Err(WireError::Malformed));
}

proptest! {
    #[test]
    fn publish_survives_a_round_trip(
        topic in "[a-z/]{1,60}",
        packet_id in 0_u16..,
        body in proptest::collection::vec(any::<u8>(), 0..20_000),
    ) {
        let mut out = BytesMut::new();
        put_publish(&mut out, packet_id, &topic, &body);
        prop_assert_eq!(out.len(), publish_size(u8::from(packet_id != 0), &topic, &body));
        let frames = all(&out).unwrap();
        let qos = u8::from(packet_id != 0);
        let topic = Bytes::from(topic);
        prop_assert_eq!(
            frames,
            vec![Frame::Publish(PublishFrame { qos, retain: false, topic, packet_id, body: body.into() })]
        );
    }

    #[test]
    fn no_bytes_make_decoding_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = all(&bytes);
    }

    #[test]
    fn no_packet_body_makes_decoding_panic(
        first in any::<u8>(),
        inside in proptest::collection::vec(prop_oneof![Just(0_u8), 0_u8..5, any::<u8>()], 0..120),
    ) {
        let mut bytes = vec![first, inside.len() as u8];
        bytes.extend(inside);
        let _ = all(&bytes);
    }
}
