//! Which protocol a client wants to forward ports with. Decides, and does nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut as _, Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};

/// What both sides speak once the connection is taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Protocol {
    /// SPDY on the connection itself.
    Spdy,
    /// SPDY inside a WebSocket's binary messages.
    SpdyInWebSocket { accept: String },
    /// A WebSocket whose messages begin with the number of a channel.
    Channels { accept: String, chosen: &'static str, ports: Vec<u16>, codec: Codec },
}

/// Why there is none: a status code and a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Disagreement {
    pub(super) code: u16,
    pub(super) message: String,
}

pub(super) const SPDY: &str = "SPDY/3.1";
pub(super) const VERSION: &str = "x-stream-protocol-version";
pub(super) const ACCEPTED: &str = "x-accepted-stream-protocol-versions";
pub(super) const FORWARD: &str = "portforward.k8s.io";
pub(super) const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
const CHANNELS: &str = "v4.channel.k8s.io";
const BASE64_CHANNELS: &str = "v4.base64.channel.k8s.io";

/// All values of a header that is a list.
fn list<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|value| !value.is_empty()).collect()
}

/// Whether a client asks for another protocol at all.
pub(super) fn wants_upgrade(headers: &HeaderMap) -> bool {
    list(headers, CONNECTION.as_str()).iter().any(|value| value.eq_ignore_ascii_case("upgrade"))
}

fn refuse<T>(code: u16, message: impl Into<String>) -> Result<T, Disagreement> {
    Err(Disagreement { code, message: message.into() })
}

/// Agrees on a protocol. `ports`: what the query asks for; only channels need it.
pub(super) fn agree<'a>(
    headers: &HeaderMap,
    ports: impl Iterator<Item = &'a str>,
) -> Result<Protocol, Disagreement> {
    let wanted = list(headers, UPGRADE.as_str());
    let wants = |protocol: &str| wanted.iter().any(|known| known.eq_ignore_ascii_case(protocol));
    if wants("websocket") {
        let Some(key) = headers.get(SEC_WEBSOCKET_KEY) else {
            return refuse(400, "unable to upgrade: header Sec-WebSocket-Key does not exist in request");
        };
        let accept = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
        return of_websocket(&list(headers, SEC_WEBSOCKET_PROTOCOL.as_str()), accept, ports);
    }
    if !wants(SPDY) {
        let message =
            format!("unable to upgrade: this can be {SPDY} or websocket, not {}", wanted.join(", "));
        return refuse(400, message);
    }
    let versions = list(headers, VERSION);
    if versions.is_empty() {
        return refuse(400, "unable to upgrade: header X-Stream-Protocol-Version does not exist in request");
    }
    if versions.contains(&FORWARD) {
        return Ok(Protocol::Spdy);
    }
    refuse(
        403,
        format!(
            "unable to upgrade: unable to negotiate protocol: client supports [{}], server accepts [{FORWARD}]",
            versions.join(" ")
        ),
    )
}

fn of_websocket<'a>(
    wanted: &[&str],
    accept: String,
    ports: impl Iterator<Item = &'a str>,
) -> Result<Protocol, Disagreement> {
    if wanted.contains(&TUNNEL) {
        return Ok(Protocol::SpdyInWebSocket { accept });
    }
    let chosen = match wanted {
        [] => ("", Codec::Binary),
        wanted if wanted.contains(&CHANNELS) => (CHANNELS, Codec::Binary),
        wanted if wanted.contains(&BASE64_CHANNELS) => (BASE64_CHANNELS, Codec::Base64),
        other => {
            let message = format!(
                "requested protocol(s) are not supported: [{}]; supports [{TUNNEL} {CHANNELS} {BASE64_CHANNELS}]",
                other.join(" ")
            );
            return refuse(403, message);
        }
    };
    Ok(Protocol::Channels { accept, chosen: chosen.0, codec: chosen.1, ports: read_ports(ports)? })
}

/// Channels are numbered with one byte, two of them for each port.
const MOST_PORTS: usize = 127;

fn read_ports<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<u16>, Disagreement> {
    let mut ports = Vec::new();
    for text in texts.flat_map(|value| value.split(',')).map(str::trim).filter(|text| !text.is_empty()) {
        match text.parse::<u16>() {
            Ok(0) => return refuse(400, format!("port {text:?} must be > 0")),
            Ok(port) => ports.push(port),
            Err(error) => return refuse(400, format!("unable to parse {text:?} as a port: {error}")),
        }
    }
    match ports.len() {
        0 => {
            refuse(400, "query parameter \"ports\" is required: name the ports to forward, as in ?ports=8080")
        }
        1..=MOST_PORTS => Ok(ports),
        _ => refuse(400, format!("at most {MOST_PORTS} ports can be forwarded on one connection")),
    }
}

/// How the messages of channels are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    /// The number of the channel, then bytes.
    Binary,
    /// The number as a digit, then Base64.
    Base64,
}

impl Codec {
    pub(super) fn encode(self, channel: u8, bytes: &[u8]) -> Bytes {
        let mut message = BytesMut::with_capacity(bytes.len() + 1);
        match self {
            Self::Binary => {
                message.put_u8(channel);
                message.put_slice(bytes);
            }
            Self::Base64 => {
                message.put_u8(b'0'.wrapping_add(channel));
                message.put_slice(STANDARD.encode(bytes).as_bytes());
            }
        }
        message.freeze()
    }

    /// The channel and what was sent on it; `None`: that is no message of this kind.
    pub(super) fn decode(self, mut message: Bytes) -> Option<(u8, Bytes)> {
        let channel = *message.first()?;
        let bytes = message.split_off(1);
        match self {
            Self::Binary => Some((channel, bytes)),
            Self::Base64 => Some((channel.checked_sub(b'0')?, STANDARD.decode(&bytes).ok()?.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs =
            all.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        pairs.collect()
    }

    const KEY: (&str, &str) = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");

    fn accept() -> String {
        "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_owned()
    }

    #[test]
    fn each_kind_of_client_gets_its_protocol() {
        let ports = vec![8080, 9090];
        for (sent, expected) in [
            (
                &[("upgrade", "SPDY/3.1"), ("x-stream-protocol-version", "portforward.k8s.io")][..],
                Protocol::Spdy,
            ),
            (
                &[("upgrade", "websocket"), KEY, ("sec-websocket-protocol", "SPDY/3.1+portforward.k8s.io")],
                Protocol::SpdyInWebSocket { accept: accept() },
            ),
            (
                &[
                    ("upgrade", "WebSocket"),
                    KEY,
                    ("sec-websocket-protocol", "v5.channel.k8s.io, v4.channel.k8s.io"),
                ],
                Protocol::Channels {
                    accept: accept(),
                    chosen: CHANNELS,
                    ports: ports.clone(),
                    codec: Codec::Binary,
                },
            ),
            (
                &[("upgrade", "websocket"), KEY, ("sec-websocket-protocol", "v4.base64.channel.k8s.io")],
                Protocol::Channels {
                    accept: accept(),
                    chosen: BASE64_CHANNELS,
                    ports: ports.clone(),
                    codec: Codec::Base64,
                },
            ),
            (
                &[("upgrade", "websocket"), KEY],
                Protocol::Channels { accept: accept(), chosen: "", ports, codec: Codec::Binary },
            ),
        ] {
            assert_eq!(agree(&headers(sent), ["8080,9090"].into_iter()), Ok(expected), "{sent:?}");
        }
    }

    #[test]
    fn what_cannot_be_agreed_upon_is_said() {
        for (sent, ports, code, text) in [
            (&[("upgrade", "h2c")][..], "", 400, "this can be SPDY/3.1 or websocket, not h2c"),
            (&[("upgrade", "SPDY/3.1")], "", 400, "X-Stream-Protocol-Version does not exist"),
            (
                &[("upgrade", "SPDY/3.1"), ("x-stream-protocol-version", "v4.channel.k8s.io,x")],
                "",
                403,
                "unable to negotiate protocol: client supports [v4.channel.k8s.io x], server accepts [portforward.k8s.io]",
            ),
            (&[("upgrade", "websocket")], "1", 400, "Sec-WebSocket-Key"),
            (
                &[("upgrade", "websocket"), KEY, ("sec-websocket-protocol", "x")],
                "1",
                403,
                "are not supported: [x]",
            ),
            (&[("upgrade", "websocket"), KEY], "", 400, "\"ports\" is required"),
            (&[("upgrade", "websocket"), KEY], "0", 400, "must be > 0"),
            (&[("upgrade", "websocket"), KEY], "70000", 400, "unable to parse \"70000\" as a port"),
        ] {
            let problem = agree(&headers(sent), std::iter::once(ports)).unwrap_err();
            assert_eq!(problem.code, code, "{sent:?}");
            assert!(problem.message.contains(text), "{}", problem.message);
        }
    }

    #[test]
    fn only_a_connection_that_says_so_wants_an_upgrade() {
        assert!(wants_upgrade(&headers(&[("connection", "keep-alive, Upgrade")])));
        assert!(!wants_upgrade(&headers(&[("connection", "close"), ("upgrade", "SPDY/3.1")])));
    }

    proptest! {
        #[test]
        fn messages_of_channels_are_read_back(channel in 0_u8..200, bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            for codec in [Codec::Binary, Codec::Base64] {
                let read = codec.decode(codec.encode(channel, &bytes));
                prop_assert_eq!(read, Some((channel, Bytes::from(bytes.clone()))));
            }
        }

        #[test]
        fn no_message_is_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            Codec::Base64.decode(bytes.clone().into());
            Codec::Binary.decode(bytes.into());
        }
    }
}
