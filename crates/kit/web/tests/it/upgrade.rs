use std::time::Duration;

use aro_runtime::Scope;
use aro_web::{ServeOptions, Upgradable, Upgrade};
use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::get as route;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::client::{PATIENCE, connect, get, read_until, start};

/// Echoes until it is cancelled, and reports that; or, if `stubborn`, never stops.
fn echo(stubborn: bool) -> Router {
    let answer = move |request: Request| async move {
        let mut response: Response = Response::default();
        if request.extensions().get::<Upgradable>().is_none() {
            return response;
        }
        *response.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert("connection", "upgrade".parse().unwrap());
        response.headers_mut().insert("upgrade", "echo".parse().unwrap());
        response.extensions_mut().insert(Upgrade::new(move |mut io, stop| async move {
            if stubborn {
                return std::future::pending().await;
            }
            let mut buffer = [0; 100];
            loop {
                let read = tokio::select! {
                    read = io.read(&mut buffer) => read.unwrap_or(0),
                    () = stop.cancelled() => {
                        io.write_all(b"bye").await.unwrap();
                        return;
                    }
                };
                if read == 0 {
                    return;
                }
                io.write_all(&buffer[..read]).await.unwrap();
            }
        }));
        response
    };
    Router::new().route("/", route(answer))
}

const REQUEST: &str = "GET / HTTP/1.1\r\nhost: test\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";

#[tokio::test]
async fn a_connection_that_switched_protocols_goes_on_until_the_scope_is_closed() {
    let scope = Scope::root("test");
    let addr = start(echo(false), &scope, ServeOptions::named("test")).await;
    let mut stream = connect(addr).await;
    // What comes right behind the request belongs to the new protocol.
    stream.write_all(format!("{REQUEST}early").as_bytes()).await.unwrap();
    let head = read_until(&mut stream, "early").await;
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    stream.write_all(b"later").await.unwrap();
    assert_eq!(read_until(&mut stream, "later").await, "later");
    scope.close(PATIENCE).await.unwrap();
    assert_eq!(read_until(&mut stream, "\u{0}").await, "bye");
}

#[tokio::test]
async fn one_that_does_not_stop_is_cut() {
    let scope = Scope::root("test");
    let options = ServeOptions { drain: Duration::from_millis(10), ..ServeOptions::named("test") };
    let addr = start(echo(true), &scope, options).await;
    let mut stream = connect(addr).await;
    stream.write_all(REQUEST.as_bytes()).await.unwrap();
    read_until(&mut stream, "\r\n\r\n").await;
    scope.close(PATIENCE).await.unwrap();
    assert_eq!(read_until(&mut stream, "\u{0}").await, "");
}

#[tokio::test]
async fn a_request_that_asks_for_no_other_protocol_cannot_switch() {
    let scope = Scope::root("test");
    let addr = start(echo(false), &scope, ServeOptions::named("test")).await;
    assert!(get(addr, "/").await.starts_with("HTTP/1.1 200"));
    scope.close(PATIENCE).await.unwrap();
}
