//! `GET` and `POST pods/x/portforward`: takes over the connection, and forwards on it.

use std::io;

use aro_kube_apimachinery::status::Status;
use aro_web::{Upgrade, UpgradedIo};
use bytes::{Bytes, BytesMut};
use futures::{Sink, SinkExt as _, Stream, StreamExt as _, TryStreamExt as _, future};
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_util::codec::{BytesCodec, Framed};
use tokio_util::sync::CancellationToken;

use super::forward::{PIECE, Target};
use super::protocol::{self, Codec, Disagreement, Protocol};
use super::{channels, identity, node_name, node_of, pod_of, tunnel};
use crate::http::answer::{self, Answer};
use crate::http::body::Body;
use crate::identity::authorize::{Attributes, authorize};
use crate::rest::Call;

/// Switches protocols, if the client asks for one that we speak.
pub fn portforward(call: &Call) -> Result<Answer, Status> {
    may_create(call)?;
    let pod = pod_of(call)?;
    if node_name(&pod).is_empty() {
        return Err(Status::bad_request(format!("pod {} does not have a host assigned", call.name)));
    }
    let node = node_of(call, &pod, "its ports cannot be forwarded")?;
    if !call.upgradable || !protocol::wants_upgrade(&call.headers) {
        return Err(Status::bad_request("Upgrade request required"));
    }
    let agreed = match protocol::agree(&call.headers, call.query.all("ports")) {
        Ok(agreed) => agreed,
        Err(problem) => return Ok(disagree(problem)),
    };
    let mut answer = Response::new(Body::Full(Bytes::new()));
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    for (name, value) in greeting(&agreed) {
        // Made of constants and Base64.
        headers.insert(name, HeaderValue::from_str(value).map_err(Status::internal)?);
    }
    let target = Target { node, pod: identity(&pod) };
    let closing = call.cluster.closing.clone();
    answer.extensions_mut().insert(Upgrade::new(move |io, stop| async move {
        let end = CancellationToken::new();
        let forwarding = run(agreed, target, io, end.clone());
        tokio::pin!(forwarding);
        tokio::select! {
            () = forwarding.as_mut() => return,
            () = stop.cancelled() => {}
            () = closing.cancelled() => {}
        }
        end.cancel();
        forwarding.await;
    }));
    Ok(answer)
}

/// To look is not enough: forwarding does something in the pod, whatever the method.
fn may_create(call: &Call) -> Result<(), Status> {
    if call.verb == "create" {
        return Ok(());
    }
    let asked = Attributes {
        verb: "create",
        version: "v1",
        resource: "pods",
        subresource: "portforward",
        namespace: &call.namespace,
        name: &call.name,
        ..Attributes::default()
    };
    let decision = authorize(&call.cluster, &call.user, &asked);
    if decision.allowed {
        Ok(())
    } else {
        Err(crate::server::forbidden(&call.user, &asked, &decision.reason))
    }
}

fn disagree(problem: Disagreement) -> Answer {
    let mut answer = answer::text(problem.code, "text/plain; charset=utf-8", problem.message + "\n");
    if problem.code == 403 {
        let accepted = HeaderValue::from_static(protocol::FORWARD);
        answer.headers_mut().insert(HeaderName::from_static(protocol::ACCEPTED), accepted);
    }
    answer
}

fn greeting(agreed: &Protocol) -> Vec<(HeaderName, &str)> {
    fn websocket<'a>(accept: &'a str, chosen: &'a str) -> Vec<(HeaderName, &'a str)> {
        let mut headers = vec![(UPGRADE, "websocket"), (SEC_WEBSOCKET_ACCEPT, accept)];
        // A client that names no protocol gets none in the answer.
        headers.extend((!chosen.is_empty()).then_some((SEC_WEBSOCKET_PROTOCOL, chosen)));
        headers
    }
    match agreed {
        Protocol::Spdy => {
            vec![(UPGRADE, protocol::SPDY), (HeaderName::from_static(protocol::VERSION), protocol::FORWARD)]
        }
        Protocol::SpdyInWebSocket { accept } => websocket(accept, protocol::TUNNEL),
        Protocol::Channels { accept, chosen, .. } => websocket(accept, chosen),
    }
}

/// Forwards until the client goes away or `end` is cancelled.
async fn run(agreed: Protocol, target: Target, io: UpgradedIo, end: CancellationToken) {
    match agreed {
        Protocol::Spdy => {
            let (sink, stream) = Framed::with_capacity(io, BytesCodec::new(), PIECE).split();
            tunnel::run(target, stream.map_ok(BytesMut::freeze), sink, end).await;
        }
        Protocol::SpdyInWebSocket { .. } => {
            let (stream, sink) = websocket(io, Codec::Binary).await;
            tunnel::run(target, stream, sink, end).await;
        }
        Protocol::Channels { ports, codec, .. } => {
            let (stream, sink) = websocket(io, codec).await;
            channels::run(target, ports, codec, stream, sink, end).await;
        }
    }
}

/// Most bytes of one message; clients in Python send what they read at once, a mebibyte.
const LONGEST_MESSAGE: usize = 2 << 20;

/// The messages of a WebSocket, both ways.
async fn websocket(
    io: UpgradedIo,
    codec: Codec,
) -> (impl Stream<Item = io::Result<Bytes>> + Send + Unpin, impl Sink<Bytes, Error = io::Error> + Send + Unpin)
{
    let config = WebSocketConfig::default()
        .max_message_size(Some(LONGEST_MESSAGE))
        .max_frame_size(Some(LONGEST_MESSAGE))
        .read_buffer_size(PIECE)
        .write_buffer_size(0);
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let (sink, stream) = socket.split();
    let stream = stream.map_err(io::Error::other).try_filter_map(|message| {
        future::ready(Ok(match message {
            Message::Binary(bytes) => Some(bytes),
            Message::Text(text) => Some(text.into()),
            _ => None,
        }))
    });
    let wrap = move |bytes: Bytes| {
        let message = match codec {
            Codec::Binary => Ok(Message::Binary(bytes)),
            Codec::Base64 => bytes.try_into().map(Message::Text).map_err(io::Error::other),
        };
        future::ready(message)
    };
    (stream, sink.sink_map_err(io::Error::other).with(wrap))
}
