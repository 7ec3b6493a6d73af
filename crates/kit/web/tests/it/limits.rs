use std::time::Duration;

use aro_runtime::Scope;
use aro_web::ServeOptions;
use axum::Router;
use axum::routing::get as route;
use tokio::io::AsyncWriteExt as _;

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
