use std::sync::Arc;
use std::time::Duration;

use aro_runtime::{Fault, Scope, TaskKind};
use aro_web::ServeOptions;
use axum::Router;
use axum::routing::get as route;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::client::{PATIENCE, connect, get, read_until, send, start};

/// A route that reports its start and answers on a signal.
fn held(begun: &Arc<Notify>, go: &Arc<Notify>) -> Router {
    let (begun, go) = (begun.clone(), go.clone());
    Router::new().route(
        "/held",
        route(move || async move {
            begun.notify_one();
            go.notified().await;
            "done"
        }),
    )
}

#[tokio::test]
async fn a_request_in_flight_is_finished_while_new_connections_are_refused() {
    let scope = Scope::root("test");
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let addr = start(held(&begun, &go), &scope, ServeOptions::named("test")).await;
    let mut stream = connect(addr).await;
    send(&mut stream, "/held").await;
    begun.notified().await;

    let closing = scope.clone();
    let closer = Scope::root("closer");
    let (closed, mut heard) = tokio::sync::oneshot::channel();
    closer.spawn(TaskKind::Job, "close", async move {
        let _ = closed.send(closing.close(PATIENCE).await);
        Ok::<_, Fault>(())
    });
    // The listener goes first: wait until the port is refused, with the request still open.
    let refused = async {
        while TcpStream::connect(addr).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.expect("the listener stops");
    assert!(heard.try_recv().is_err(), "the scope waits for the request");

    go.notify_one();
    let answer = read_until(&mut stream, "\u{0}").await;
    assert!(answer.ends_with("done"), "{answer}");
    heard.await.unwrap().unwrap();
}

#[tokio::test]
async fn idle_connections_do_not_hold_up_the_stop() {
    let scope = Scope::root("test");
    let addr =
        start(Router::new().route("/", route(|| async { "ok" })), &scope, ServeOptions::named("test")).await;
    let mut kept_alive = connect(addr).await;
    send(&mut kept_alive, "/").await;
    read_until(&mut kept_alive, "ok").await;
    let _silent = connect(addr).await;
    assert!(get(addr, "/").await.ends_with("ok"));
    scope.close(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn a_request_that_never_ends_is_cut_at_the_drain_deadline() {
    let scope = Scope::root("test");
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let options = ServeOptions { drain: Duration::from_millis(50), ..ServeOptions::named("test") };
    let addr = start(held(&begun, &go), &scope, options).await;
    let mut stream = connect(addr).await;
    send(&mut stream, "/held").await;
    begun.notified().await;
    scope.close(PATIENCE).await.unwrap();
    assert_eq!(read_until(&mut stream, "\u{0}").await, "");
}
