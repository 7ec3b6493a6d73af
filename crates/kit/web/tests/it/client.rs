//! Just enough of an HTTP client, on the bare socket, so that tests can also misbehave.

use std::net::SocketAddr;
use std::time::Duration;

use aro_runtime::{Listener, Scope};
use aro_web::{ServeOptions, serve};
use axum::Router;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longer than anything here takes, shorter than a person's patience.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub async fn start(router: Router, scope: &Scope, options: ServeOptions) -> SocketAddr {
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), "test.listen").await.unwrap();
    serve(listener, router, scope, options).local_addr()
}

pub async fn connect(addr: SocketAddr) -> TcpStream {
    TcpStream::connect(addr).await.unwrap()
}

pub async fn send(stream: &mut TcpStream, path: &str) {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n").as_bytes()).await.unwrap();
}

/// Reads until the text contains `end`, or the peer closes.
pub async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 1024];
    let reading = async {
        while !String::from_utf8_lossy(&text).contains(end) {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(count) => text.extend_from_slice(&buffer[..count]),
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("an answer in time");
    String::from_utf8(text).unwrap()
}

pub async fn get(addr: SocketAddr, path: &str) -> String {
    let mut stream = connect(addr).await;
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    read_until(&mut stream, "\u{0}").await
}
