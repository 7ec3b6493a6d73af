use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use aro_runtime::{Listener, Scope};
use aro_web::{Handshake, ServeOptions, serve_after};
use axum::Router;
use axum::routing::get as route;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{PATIENCE, connect, get, read_until, send, start};

fn app() -> Router {
    Router::new().route("/", route(|| async { "ok" }))
}

#[tokio::test]
async fn clients_that_never_finish_a_head_are_cut_and_free_their_place() {
    // One per stage: nothing at all, a letter that could still become HTTP/2, half of an HTTP/1 head.
    for said in ["", "P", "GET / HTTP/1.1\r\nhost:"] {
        let scope = Scope::root("test");
        let options = ServeOptions {
            max_connections: 1,
            header_timeout: Duration::from_millis(500),
            ..ServeOptions::named("test")
        };
        let addr = start(app(), &scope, options).await;
        let mut slow = connect(addr).await;
        slow.write_all(said.as_bytes()).await.unwrap();
        let answer = read_until(&mut slow, "\u{0}").await;
        assert!(!answer.contains("200"), "{answer}");
        assert!(get(addr, "/").await.ends_with("ok"), "the place is free again after {said:?}");
        scope.close(PATIENCE).await.unwrap();
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_place() {
    let scope = Scope::root("test");
    let options = ServeOptions { max_connections: 1, ..ServeOptions::named("test") };
    let addr = start(app(), &scope, options).await;
    let mut first = connect(addr).await;
    send(&mut first, "/").await;
    read_until(&mut first, "ok").await;

    let mut second = connect(addr).await;
    send(&mut second, "/").await;
    let waited = tokio::time::timeout(Duration::from_millis(100), read_until(&mut second, "ok")).await;
    assert!(waited.is_err(), "the second connection is served before the first has left");
    drop(first);
    assert!(read_until(&mut second, "ok").await.ends_with("ok"));
    scope.close(PATIENCE).await.unwrap();
}

/// A handshake of one byte from the client.
#[derive(Clone)]
struct OneByte(Router);

impl Handshake for OneByte {
    type Stream = TcpStream;
    type Service = Router;

    async fn shake(&self, mut stream: TcpStream, _peer: SocketAddr) -> io::Result<(TcpStream, Router)> {
        stream.read_u8().await?;
        Ok((stream, self.0.clone()))
    }
}

#[tokio::test]
async fn stalled_handshakes_keep_neither_new_nor_established_clients_from_being_served() {
    let scope = Scope::root("test");
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), "test.listen").await.unwrap();
    let options = ServeOptions { max_connections: 2, max_handshakes: 4, ..ServeOptions::named("test") };
    let addr = serve_after(listener, OneByte(app()), &scope, options).local_addr();
    let mut established = connect(addr).await;
    established.write_all(b"!").await.unwrap();
    send(&mut established, "/").await;
    read_until(&mut established, "ok").await;

    let mut stalled = Vec::new();
    for _ in 0..50 {
        stalled.push(connect(addr).await);
    }
    let mut late = connect(addr).await;
    late.write_all(b"!").await.unwrap();
    send(&mut late, "/").await;
    assert!(read_until(&mut late, "ok").await.ends_with("ok"));
    send(&mut established, "/").await;
    assert!(read_until(&mut established, "ok").await.ends_with("ok"));
    let mut oldest = stalled.swap_remove(0);
    assert_eq!(oldest.read(&mut [0]).await.unwrap_or(0), 0, "the oldest handshake was ended");
    drop((established, late));
    scope.close(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn one_peer_cannot_have_more_connections_than_its_share() {
    let scope = Scope::root("test");
    let options = ServeOptions { max_loopback_connections: 2, ..ServeOptions::named("test") };
    let addr = start(app(), &scope, options).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = connect(addr).await;
        send(&mut stream, "/").await;
        read_until(&mut stream, "ok").await;
        held.push(stream);
    }
    assert_eq!(get_or_nothing(addr).await, "", "the third is closed");
    drop(held);
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !get_or_nothing(addr).await.ends_with("ok") {
        assert!(tokio::time::Instant::now() < deadline, "the share was not given back");
    }
    scope.close(PATIENCE).await.unwrap();
}

/// The answer, or nothing if the connection is closed or reset at once.
async fn get_or_nothing(addr: SocketAddr) -> String {
    let mut stream = connect(addr).await;
    let request = b"GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
    // It may be closed while the request is written.
    let _ = stream.write_all(request).await;
    read_until(&mut stream, "\u{0}").await
}
