use std::sync::Arc;

use aro_kube_node_api::{LogOptions, NodeApi, NodeError, Pipe, PodIdentity};
use async_trait::async_trait;
use futures::stream::BoxStream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// A node on which port 80 echoes everything twice and then ends; other ports are closed.
struct Doubling;

#[async_trait]
impl NodeApi for Doubling {
    async fn logs(
        &self,
        _: &PodIdentity,
        _: &str,
        _: &LogOptions,
    ) -> Result<BoxStream<'static, Bytes>, NodeError> {
        Err(NodeError::NotFound("no logs".to_owned()))
    }

    async fn connect(&self, _: &PodIdentity, port: u16) -> Result<Box<dyn Pipe>, NodeError> {
        if port != 80 {
            return Err(NodeError::BadRequest("refused".to_owned()));
        }
        let (ours, mut theirs) = tokio::io::duplex(1000);
        #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
        tokio::spawn(async move {
            let mut word = [0; 3];
            theirs.read_exact(&mut word).await.unwrap();
            theirs.write_all(&[word, word].concat()).await.unwrap();
        });
        Ok(Box::new(ours))
    }
}

fn target() -> Target {
    let pod = PodIdentity { namespace: "ns".into(), name: "p".into(), uid: "u".into() };
    Target { node: Arc::new(Doubling), pod }
}

/// What the client hears when it sends these messages and then waits.
async fn heard(codec: Codec, ports: Vec<u16>, messages: &[&[u8]]) -> Vec<String> {
    let sent: Vec<io::Result<Bytes>> =
        messages.iter().map(|message| Ok(Bytes::copy_from_slice(message))).collect();
    let from_client = futures::stream::iter(sent).chain(futures::stream::pending());
    let (to_client, heard) = futures::channel::mpsc::channel::<Bytes>(100);
    let to_client = to_client.sink_map_err(io::Error::other);
    run(target(), ports, codec, from_client, to_client, CancellationToken::new()).await;
    heard.map(|message| String::from_utf8_lossy(&message).into_owned()).collect().await
}

#[tokio::test]
async fn each_channel_begins_with_its_port_and_all_ends_when_every_connection_has() {
    let mut messages = heard(Codec::Binary, vec![80, 81], &[b"\x00one", b"\x01nobody", b"\x09nobody"]).await;
    assert_eq!(messages.drain(..4).collect::<Vec<_>>(), ["\u{0}P\0", "\u{1}P\0", "\u{2}Q\0", "\u{3}Q\0"]);
    messages.sort();
    assert_eq!(messages, ["\u{0}oneone", "\u{3}error forwarding port 81 to pod p, uid u: refused"]);
}

#[tokio::test]
async fn the_text_form_is_base64() {
    let messages = heard(Codec::Base64, vec![80], &[b"0b25l"]).await;
    assert_eq!(messages, ["0UAA=", "1UAA=", "0b25lb25l"]);
}

#[tokio::test]
async fn a_client_that_sends_nonsense_is_left() {
    let messages = heard(Codec::Base64, vec![80], &[b"0!"]).await;
    assert!(messages.len() <= 2, "{messages:?}");
}
