//! What one client can take from the others: bodies, handshakes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use aro_fixtures::wait;
use aro_kube_apiserver::ClusterService;
use aro_web::{BodyBudget, BodyLimits, ServeOptions};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tower::ServiceExt as _;

use crate::server::{Server, ServerLimits};
use crate::support::{Caller, World, body_limits};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn service(world: &World, caller: &Caller, body: BodyLimits) -> ClusterService {
    let peer = caller.user.clone().map(Arc::new);
    ClusterService { cluster: world.cluster.clone(), peer, body, observer: None }
}

/// A body that sends this and then nothing more, but does not end.
fn stalled(first: usize) -> impl http_body::Body<Data = Bytes, Error = Infallible> + Send + 'static {
    let first = (first > 0).then(|| Ok(Frame::data(Bytes::from(vec![b' '; first]))));
    StreamBody::new(stream::iter(first).chain(stream::pending()).boxed())
}

fn post<B>(caller: &Caller, body: B) -> Request<B> {
    let mut request = Request::post(MAPS).header("content-type", "application/json");
    for (name, value) in &caller.headers {
        request = request.header(name, value);
    }
    request.body(body).unwrap()
}

async fn read<B>(answer: Response<B>) -> (u16, Option<String>, Value)
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let retry = answer.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (code, retry, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn caller_without_permission_is_answered_before_its_body_is_read() {
    let world = World::new().await;
    for (caller, expected) in
        [(Caller::with_token("forged"), 401), (Caller::default(), 403), (Caller::named("eve", &[]), 403)]
    {
        let service = service(&world, &caller, body_limits(1 << 20));
        let answered = tokio::time::timeout(wait::DEADLINE, service.oneshot(post(&caller, stalled(0)))).await;
        let (code, _, status) = read(answered.expect("an answer without the body").unwrap()).await;
        assert_eq!(code, expected, "{status}");
    }
    world.end().await;
}

#[tokio::test]
async fn body_that_does_not_arrive_in_time_is_answered_408() {
    let world = World::new().await;
    let limits = BodyLimits { timeout: Duration::from_millis(50), ..body_limits(1 << 20) };
    let service = service(&world, &Caller::admin(), limits.clone());
    let answered =
        tokio::time::timeout(wait::DEADLINE, service.oneshot(post(&Caller::admin(), stalled(1000)))).await;
    let (code, _, status) = read(answered.expect("an answer").unwrap()).await;
    assert_eq!((code, status["reason"].as_str()), (408, Some("Timeout")), "{status}");
    assert_eq!(limits.budget.available(), 64 << 20, "its bytes are free again");
    world.end().await;
}

#[tokio::test]
async fn bodies_beyond_the_budget_get_429_until_others_are_done() {
    let world = World::new().await;
    let admin = Caller::admin();
    let budget = BodyBudget::of_bytes(4096);
    let limits = BodyLimits { budget: budget.clone(), ..body_limits(4096) };
    let mut slow = Box::pin(service(&world, &admin, limits.clone()).oneshot(post(&admin, stalled(4000))));
    assert!(futures::poll!(&mut slow).is_pending());
    assert_eq!(budget.available(), 96, "what has arrived of the slow body is counted");

    let map = json!({"metadata": {"name": "a"}, "data": {"x": "y".repeat(200)}}).to_string();
    let send = || service(&world, &admin, limits.clone()).oneshot(post(&admin, Full::from(map.clone())));
    let (code, retry, status) = read(send().await.unwrap()).await;
    assert_eq!((code, retry.as_deref()), (429, Some("1")), "{status}");
    assert_eq!(status["reason"], "TooManyRequests");
    // Reading needs no body, and is never refused for it.
    world.done(&admin, "GET", MAPS, &Value::Null).await;

    drop(slow);
    assert_eq!(read(send().await.unwrap()).await.0, 201);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshake_flood_does_not_stop_other_clients() -> Result<()> {
    let serve = ServeOptions { max_connections: 8, max_handshakes: 8, ..ServeOptions::named("kube") };
    let server = Server::start_with(ServerLimits { serve, ..ServerLimits::default() }).await?;
    let mut stalled = Vec::new();
    for _ in 0..100 {
        stalled.push(TcpStream::connect(server.address).await?);
    }
    let version = tokio::time::timeout(wait::DEADLINE, async {
        Ok::<_, anyhow::Error>(server.client().await?.apiserver_version().await?)
    });
    assert!(!version.await??.major.is_empty());
    drop(stalled);
    server.end().await
}

#[tokio::test]
async fn one_cluster_cannot_use_up_the_body_budget_of_the_others() {
    let world = World::new().await;
    let whole = BodyBudget::of_bytes(8192);
    let share = |bytes| BodyLimits { budget: whole.share(bytes), ..body_limits(8192) };
    let greedy = share(4096);
    let user = Caller::admin();
    let mut slow = Box::pin(service(&world, &user, greedy.clone()).oneshot(post(&user, stalled(4000))));
    assert!(futures::poll!(&mut slow).is_pending());
    assert_eq!(greedy.budget.available(), 96);
    let map = json!({"metadata": {"name": "b"}, "data": {"x": "y".repeat(1000)}}).to_string();
    let refused = service(&world, &user, greedy).oneshot(post(&user, Full::from(map.clone()))).await.unwrap();
    assert_eq!(read(refused).await.0, 429);
    let other = service(&world, &user, share(4096)).oneshot(post(&user, Full::from(map))).await.unwrap();
    assert_eq!(read(other).await.0, 201);
    drop(slow);
    world.end().await;
}
