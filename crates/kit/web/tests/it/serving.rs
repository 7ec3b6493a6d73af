use aro_runtime::{Metrics, Readiness, Scope};
use aro_web::admin::router;
use aro_web::{CatchPanicLayer, Peer, RequestMetrics, ServeOptions};
use axum::extract::Extension;
use axum::response::IntoResponse as _;
use axum::routing::get as route;
use axum::{Router, body::Body};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::client::{PATIENCE, connect, get, start};

fn explode() -> &'static str {
    panic!("out of {}", "cheese")
}

fn options() -> ServeOptions {
    ServeOptions::named("test")
}

#[tokio::test]
async fn a_request_is_answered_and_knows_its_peer() {
    let scope = Scope::root("test");
    let app = Router::new()
        .route("/", route(|Extension(Peer(peer)): Extension<Peer>| async move { peer.ip().to_string() }));
    let addr = start(app, &scope, options()).await;
    let answer = get(addr, "/").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.ends_with("127.0.0.1"), "{answer}");
    scope.close(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn http2_with_prior_knowledge_works() {
    let scope = Scope::root("test");
    let addr = start(Router::new().route("/", route(|| async { "two" })), &scope, options()).await;
    let io = TokioIo::new(connect(addr).await);
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let driver = Scope::root("client");
    driver.spawn(aro_runtime::TaskKind::Helper, "connection", connection);
    let request = Request::get(format!("http://{addr}/")).body(Empty::<bytes::Bytes>::new()).unwrap();
    let answer = client.send_request(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "two");
    scope.close(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn a_panic_answers_500_without_its_text_and_the_next_request_works() {
    let scope = Scope::root("test");
    let app =
        Router::new().route("/boom", route(|| async { explode() })).route("/", route(|| async { "fine" }));
    let addr = start(app, &scope, options()).await;
    let answer = get(addr, "/boom").await;
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    assert!(!answer.contains("cheese"), "{answer}");
    assert!(get(addr, "/").await.ends_with("fine"));
    scope.close(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn a_panic_hook_answers_in_its_own_words() {
    let scope = Scope::root("test");
    let hook = CatchPanicLayer::new(|why: &str| {
        assert_eq!(why, "out of cheese");
        (StatusCode::INTERNAL_SERVER_ERROR, Body::from("{\"error\":{}}")).into_response()
    });
    let app = Router::new().route("/boom", route(|| async { explode() })).layer(hook);
    let addr = start(app, &scope, options()).await;
    assert!(get(addr, "/boom").await.ends_with("{\"error\":{}}"));
    scope.close(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn the_admin_endpoints_tell_health_readiness_and_numbers() {
    let scope = Scope::root("test");
    let (metrics, readiness) = (Metrics::new(), Readiness::new());
    let store = readiness.component("store");
    let requests = RequestMetrics::<Vec<(String, String)>>::register(&metrics, "frontend");
    requests.begin().end(&vec![("code".to_owned(), "200".to_owned())]);
    let addr = start(router(metrics, readiness), &scope, options()).await;

    assert!(get(addr, "/healthz").await.ends_with("ok\n"));
    let waiting = get(addr, "/readyz").await;
    assert!(waiting.starts_with("HTTP/1.1 503") && waiting.ends_with("store: starting\n"), "{waiting}");
    store.ready();
    assert!(get(addr, "/readyz").await.starts_with("HTTP/1.1 200"));

    let scrape = get(addr, "/metrics").await;
    for line in [
        "frontend_http_requests_total{code=\"200\"} 1",
        "frontend_http_requests_duration_seconds_count{code=\"200\"} 1",
        "frontend_http_requests_in_flight 0",
    ] {
        assert!(scrape.contains(line), "{line} in {scrape}");
    }
    scope.close(PATIENCE).await.unwrap();
}
