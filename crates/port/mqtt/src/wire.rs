//! Decodes packets from a stream of bytes, and encodes the frequent ones.
//!
//! The codec of `rumqttc` decodes most packets. This corrects its errors: it rejects a DISCONNECT without a body, and waits
//! for ever for one with only a reason and for any packet that is truncated inside. PUBLISH is decoded here, so that a
//! broker forwards properties and payload as the bytes it received.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use rumqttc::v5::mqttbytes::Error as CodecError;
use rumqttc::v5::mqttbytes::v5::Packet;

/// The largest variable-length integer.
const MAX_LENGTH: usize = 268_435_455;

const PUBLISH: u8 = 3;
const PUBACK: u8 = 4;
const DISCONNECT: u8 = 14;

/// A packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    Publish(PublishFrame),
    /// PUBACK with packet id and reason: the most frequent response.
    Ack(u16, u8),
    /// DISCONNECT with its reason.
    Disconnect(u8),
    Other(Box<Packet>),
}

/// A PUBLISH with properties and payload as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishFrame {
    /// 0, 1 or 2.
    pub qos: u8,
    pub retain: bool,
    /// Valid UTF-8.
    pub topic: Bytes,
    /// 0 for QoS 0.
    pub packet_id: u16,
    /// The properties with their length before them, then the payload.
    pub body: Bytes,
}

impl PublishFrame {
    /// The topic as a string.
    pub fn topic(&self) -> &str {
        std::str::from_utf8(&self.topic).unwrap_or_default()
    }
}

/// Why bytes are not a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("a packet that is not MQTT v5")]
    Malformed,
    #[error("a packet larger than agreed")]
    TooLarge,
    #[error("another version of MQTT than 5")]
    Version,
}

impl From<CodecError> for WireError {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::InvalidProtocolLevel(_) => Self::Version,
            _ => Self::Malformed,
        }
    }
}

/// Takes the next packet from the buffer, if it is complete.
pub fn take_frame(buffer: &mut BytesMut, largest: usize) -> Result<Option<Frame>, WireError> {
    let Some((&first, rest)) = buffer.split_first() else { return Ok(None) };
    let Some((used, length)) = variable_length(rest)? else { return Ok(None) };
    let (head, whole) = (1 + used, 1 + used + length);
    if whole > largest {
        return Err(WireError::TooLarge);
    }
    if buffer.len() < whole {
        buffer.reserve(whole - buffer.len());
        return Ok(None);
    }
    let mut frame = buffer.split_to(whole);
    match first >> 4 {
        PUBLISH => {
            publish(first, frame.split_off(head).freeze()).map(|publish| Some(Frame::Publish(publish)))
        }
        PUBACK => {
            // The codec knows only today's reasons; a PUBACK has two or more bytes, and the third is the reason.
            let Some([high, low, rest @ ..]) = frame.get(head..) else { return Err(WireError::Malformed) };
            Ok(Some(Frame::Ack(u16::from_be_bytes([*high, *low]), rest.first().copied().unwrap_or(0))))
        }
        DISCONNECT => Ok(Some(Frame::Disconnect(frame.get(head).copied().unwrap_or(0)))),
        _ => Ok(Some(Frame::Other(Box::new(Packet::read(&mut frame, None)?)))),
    }
}

fn publish(first: u8, mut inside: Bytes) -> Result<PublishFrame, WireError> {
    let qos = (first >> 1) & 3;
    let topic = take_string(&mut inside)?;
    let valid = std::str::from_utf8(&topic).is_ok_and(|topic| !topic.is_empty() && !topic.contains('\0'));
    let packet_id = match qos {
        0 => 0,
        1 | 2 if inside.len() >= 2 => inside.get_u16(),
        _ => return Err(WireError::Malformed),
    };
    if !valid || (qos > 0 && packet_id == 0) {
        return Err(WireError::Malformed);
    }
    Ok(PublishFrame { qos, retain: first & 1 == 1, topic, packet_id, body: inside })
}

fn take_string(inside: &mut Bytes) -> Result<Bytes, WireError> {
    if inside.len() < 2 {
        return Err(WireError::Malformed);
    }
    let length = usize::from(inside.get_u16());
    if inside.len() < length { Err(WireError::Malformed) } else { Ok(inside.split_to(length)) }
}

/// The integer and its encoded length; `None` if bytes are missing.
pub fn variable_length(bytes: &[u8]) -> Result<Option<(usize, usize)>, WireError> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(4).enumerate() {
        number |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((index + 1, number)));
        }
    }
    if bytes.len() < 4 { Ok(None) } else { Err(WireError::Malformed) }
}

/// The encoded size of a PUBLISH.
pub fn publish_size(qos: u8, topic: &str, body: &[u8]) -> usize {
    let length = 2 + topic.len() + usize::from(qos.min(1)) * 2 + body.len();
    let header = match length {
        0..0x80 => 2,
        0x80..0x4000 => 3,
        0x4000..0x20_0000 => 4,
        _ => 5,
    };
    header + length
}

/// Encodes a PUBLISH; `packet_id` 0 means QoS 0. The caller has checked the size ([`publish_size`]) and that the topic is
/// at most 65 535 bytes long.
pub fn put_publish(out: &mut BytesMut, packet_id: u16, topic: &str, body: &[u8]) {
    let qos = u8::from(packet_id != 0);
    let length = (2 + topic.len() + usize::from(qos) * 2 + body.len()).min(MAX_LENGTH);
    out.reserve(5 + length);
    out.put_u8((PUBLISH << 4) | (qos << 1));
    let mut left = length;
    loop {
        let byte = (left & 0x7f) as u8;
        left >>= 7;
        if left == 0 {
            out.put_u8(byte);
            break;
        }
        out.put_u8(byte | 0x80);
    }
    out.put_u16(topic.len() as u16);
    out.put_slice(topic.as_bytes());
    if packet_id != 0 {
        out.put_u16(packet_id);
    }
    out.put_slice(body);
}

/// Encodes a PUBACK without a reason: success.
pub fn put_ack(out: &mut BytesMut, packet_id: u16) {
    out.put_slice(&[0x40, 2]);
    out.put_u16(packet_id);
}

/// Encodes a DISCONNECT.
pub fn put_disconnect(out: &mut BytesMut, reason: u8) {
    match reason {
        0 => out.put_slice(&[0xe0, 0]),
        _ => out.put_slice(&[0xe0, 1, reason]),
    }
}

#[cfg(test)]
mod tests;
