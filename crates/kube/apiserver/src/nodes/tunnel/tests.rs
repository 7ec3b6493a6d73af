use std::sync::Arc;

use aro_kube_node_api::{LogOptions, NodeApi, NodeError, Pipe, PodIdentity};
use async_trait::async_trait;
use futures::channel::mpsc as pipe;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::*;

/// A node whose connections end in the test's hands.
#[derive(Default)]
struct Hands {
    pods: Mutex<Vec<DuplexStream>>,
}

#[async_trait]
impl NodeApi for Hands {
    async fn logs(
        &self,
        _: &PodIdentity,
        _: &str,
        _: &LogOptions,
    ) -> Result<BoxStream<'static, Bytes>, NodeError> {
        Err(NodeError::NotFound("no logs".to_owned()))
    }

    async fn connect(&self, _: &PodIdentity, port: u16) -> Result<Box<dyn Pipe>, NodeError> {
        if port == 81 {
            return Err(NodeError::BadRequest("refused".to_owned()));
        }
        let (ours, theirs) = tokio::io::duplex(1000);
        self.pods.lock().push(theirs);
        Ok(Box::new(ours))
    }
}

/// A client, and everything between it and the pods.
struct World {
    hands: Arc<Hands>,
    client: Connection,
    to_server: pipe::Sender<io::Result<Bytes>>,
    from_server: pipe::Receiver<Bytes>,
    server: BoxFuture<'static, ()>,
    stop: CancellationToken,
    events: VecDeque<Event>,
    ended: bool,
}

impl World {
    fn new() -> Self {
        let hands = Arc::new(Hands::default());
        let pod = PodIdentity { namespace: "ns".into(), name: "p".into(), uid: "u".into() };
        let target = Target { node: hands.clone(), pod };
        let (to_server, from_client) = pipe::channel(0);
        let (to_client, from_server) = pipe::channel::<Bytes>(0);
        let stop = CancellationToken::new();
        let server = run(target, from_client, to_client.sink_map_err(io::Error::other), stop.clone());
        let client = Connection::new(Side::Client, Limits::default());
        let events = VecDeque::new();
        Self { hands, client, to_server, from_server, server: Box::pin(server), stop, events, ended: false }
    }

    fn open(&mut self, kind: &str, port: &str, request: Option<&str>) -> u32 {
        let mut headers = Headers::new().with("streamType", kind).with("port", port);
        if let Some(request) = request {
            headers = headers.with("requestID", request);
        }
        self.client.open(headers, kind == "error").unwrap()
    }

    /// Lets everybody run until nothing happens any more; takes what the client has to say if the server takes it.
    async fn settle(&mut self) {
        for _ in 0..200 {
            if self.client.output_len() > 0
                && futures::future::poll_fn(|cx| {
                    std::task::Poll::Ready(self.to_server.poll_ready(cx).is_ready())
                })
                .await
            {
                let bytes = self.client.take_output();
                let _ = self.to_server.start_send(Ok(bytes));
            }
            if !self.ended {
                self.ended = futures::poll!(self.server.as_mut()).is_ready();
            }
            while let Ok(bytes) = self.from_server.try_recv() {
                self.events.extend(self.client.receive(&bytes).unwrap());
            }
            tokio::task::yield_now().await;
        }
    }

    fn text(&self, wanted: u32) -> (String, bool) {
        let mut text = String::new();
        let mut ended = false;
        for event in &self.events {
            if let Event::Data { stream, bytes, fin } = event
                && *stream == wanted
            {
                text += std::str::from_utf8(bytes).unwrap();
                ended |= fin;
            }
        }
        (text, ended)
    }

    fn reset(&self, stream: u32) -> bool {
        self.events.contains(&Event::Reset { stream })
    }

    fn pod(&self) -> DuplexStream {
        self.hands.pods.lock().remove(0)
    }
}

#[tokio::test]
async fn a_connection_is_carried_and_each_half_ends_by_itself() {
    let mut world = World::new();
    let (error, data) = (world.open("error", "80", Some("0")), world.open("data", "80", Some("0")));
    world.client.send(data, b"question", true);
    world.settle().await;
    let mut pod = world.pod();
    let mut asked = String::new();
    pod.read_to_string(&mut asked).await.unwrap();
    assert_eq!(asked, "question");
    pod.write_all(b"answer").await.unwrap();
    world.settle().await;
    assert_eq!(world.text(data), ("answer".to_owned(), false));
    drop(pod);
    world.settle().await;
    assert_eq!(world.text(data), ("answer".to_owned(), true));
    assert_eq!(world.text(error), (String::new(), true));
    assert_eq!(world.client.open_streams(), 0);
}

#[tokio::test]
async fn old_clients_that_number_no_requests_are_served() {
    let mut world = World::new();
    world.open("error", "80", None);
    world.open("data", "80", None);
    world.settle().await;
    assert_eq!(world.hands.pods.lock().len(), 1);
}

#[tokio::test]
async fn a_port_that_is_refused_ends_its_own_streams_only() {
    let mut world = World::new();
    world.open("error", "80", Some("0"));
    let alive = world.open("data", "80", Some("0"));
    let (error, data) = (world.open("error", "81", Some("1")), world.open("data", "81", Some("1")));
    world.settle().await;
    assert_eq!(world.text(error), ("error forwarding port 81 to pod p, uid u: refused".to_owned(), true));
    assert!(world.text(data).1);
    let mut pod = world.pod();
    pod.write_all(b"still here").await.unwrap();
    world.settle().await;
    assert_eq!(world.text(alive), ("still here".to_owned(), false));
}

#[tokio::test]
async fn streams_without_their_headers_are_refused() {
    let mut world = World::new();
    let streams = [
        world.open("data", "0", Some("0")),
        world.open("data", "x", Some("0")),
        world.open("other", "80", Some("0")),
        world.open("data", "80", Some(&"9".repeat(65))),
    ];
    let first = world.open("data", "80", Some("1"));
    let (twice, differs) = (world.open("data", "80", Some("1")), world.open("error", "82", Some("1")));
    world.settle().await;
    for stream in streams.into_iter().chain([twice, differs]) {
        assert!(world.reset(stream), "{stream}");
    }
    assert!(!world.reset(first));
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_partner_does_not_come_is_given_up() {
    let mut world = World::new();
    let (error, data) = (world.open("error", "80", Some("0")), world.open("data", "80", Some("1")));
    world.settle().await;
    tokio::time::advance(PAIRING).await;
    world.settle().await;
    assert_eq!(world.text(error), ("timed out waiting for streams".to_owned(), true));
    assert!(world.reset(data));
}

#[tokio::test]
async fn a_client_that_gives_up_a_connection_lets_the_pod_go() {
    let mut world = World::new();
    world.open("error", "80", Some("0"));
    let data = world.open("data", "80", Some("0"));
    world.settle().await;
    let mut pod = world.pod();
    world.client.reset(data, ResetCode::Cancel);
    world.settle().await;
    assert_eq!(pod.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_pod_that_does_not_read_stops_the_client_and_nothing_is_lost() {
    let mut world = World::new();
    world.open("error", "80", Some("0"));
    let data = world.open("data", "80", Some("0"));
    world.settle().await;
    let mut pod = world.pod();
    let piece = vec![b'x'; 10_000];
    let mut sent = 0;
    for _ in 0..100 {
        world.client.send(data, &piece, false);
        world.settle().await;
        if world.client.output_len() > 0 {
            break;
        }
        sent += piece.len();
    }
    assert!(sent < 200_000, "{sent} bytes were taken for a pod that reads nothing");
    world.client.send(data, b"", true);
    let mut got = vec![0; 500];
    let mut read = 0;
    loop {
        world.settle().await;
        match pod.read(&mut got).await.unwrap() {
            0 => break,
            count => read += count,
        }
    }
    assert_eq!(read, sent + piece.len());
}

#[tokio::test]
async fn windows_that_the_client_moves_are_kept() {
    let mut world = World::new();
    world.open("error", "80", Some("0"));
    let data = world.open("data", "80", Some("0"));
    world.settle().await;
    let mut pod = world.pod();
    // Says that it moves windows, and then does so no more.
    world.client.consumed(data, 32 << 10);
    world.settle().await;
    let mut written = 0;
    while futures::poll!(Box::pin(pod.write_all(&[b'y'; 500]))).is_ready() {
        written += 500;
        world.settle().await;
    }
    let room = (64 << 10) + (32 << 10);
    assert_eq!(world.text(data).0.len(), room);
    assert!(written < room + 40_000, "{written}");
    world.client.consumed(data, 64 << 10);
    world.settle().await;
    assert!(world.text(data).0.len() > room);
}

#[tokio::test]
async fn everything_ends_with_the_client_and_when_told_to_stop() {
    let mut world = World::new();
    world.open("error", "80", Some("0"));
    world.open("data", "80", Some("0"));
    world.settle().await;
    let mut pod = world.pod();
    world.stop.cancel();
    world.settle().await;
    assert!(world.ended && world.events.contains(&Event::GoAway));
    assert_eq!(pod.read(&mut [0]).await.unwrap(), 0);

    let mut world = World::new();
    world.open("error", "80", Some("0"));
    world.open("data", "80", Some("0"));
    world.settle().await;
    let mut pod = world.pod();
    world.to_server.close_channel();
    world.settle().await;
    assert!(world.ended);
    assert_eq!(pod.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn nonsense_is_answered_with_a_goodbye() {
    let mut world = World::new();
    let _ = world.to_server.try_send(Ok(Bytes::from_static(&[0x80, 9, 0, 1, 0, 0, 0, 0])));
    world.settle().await;
    assert!(world.ended && world.events.contains(&Event::GoAway));
}
