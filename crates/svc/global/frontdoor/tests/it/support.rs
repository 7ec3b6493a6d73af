//! An origin that a test can change, a Front Door before it, and a client.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use aro_base::{ManualClock, Timestamp};
use aro_frontdoor::{Frontdoor, FrontdoorConfig, FrontdoorPorts};
use aro_net::SystemResolve;
use aro_runtime::{Listener, Metrics, Readiness, Scope, Section as _, launch};
use aro_web::{ServeOptions, serve};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::Notify;

pub const DEADLINE: Duration = Duration::from_secs(10);
pub const CONFIGURATION: &str = "/33e01921-4d64-4f8c-a055-5bdaffd5e33d/2abc/.well-known/openid-configuration";
pub const KEYS: &str = "/33e01921-4d64-4f8c-a055-5bdaffd5e33d/2abc/openid/v1/jwks";

/// What the origin does with a request.
#[derive(Clone)]
pub enum Behaviour {
    Serve(Vec<u8>),
    Status(StatusCode),
    /// Waits for the notification, then serves.
    Held(Arc<Notify>, Vec<u8>),
    Never,
}

#[derive(Clone, Default)]
pub struct Origin {
    pub behaviours: Arc<Mutex<HashMap<String, Behaviour>>>,
    pub requests: Arc<AtomicUsize>,
    pub seen: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    pub fn set(&self, path: &str, behaviour: Behaviour) {
        self.behaviours.lock().insert(path.to_owned(), behaviour);
    }

    pub fn count(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    pub async fn until_asked(&self, times: usize) -> Result<()> {
        let wait = async {
            while self.count() < times {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, wait).await.context("the origin was not asked")
    }

    async fn answer(self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.seen.lock().push(format!(
            "{} {}",
            request.uri(),
            request.headers()["host"].to_str().unwrap_or_default()
        ));
        let behaviour = self.behaviours.lock().get(request.uri().path()).cloned();
        let respond = |status, body| {
            let mut response = Response::new(Full::from(body));
            *response.status_mut() = status;
            response
        };
        match behaviour {
            None => respond(StatusCode::NOT_FOUND, b"<html>".to_vec()),
            Some(Behaviour::Serve(body)) => respond(StatusCode::OK, body),
            Some(Behaviour::Status(status)) => respond(status, b"internal details".to_vec()),
            Some(Behaviour::Held(until, body)) => {
                until.notified().await;
                respond(StatusCode::OK, body)
            }
            Some(Behaviour::Never) => std::future::pending().await,
        }
    }
}

pub struct Fixture {
    pub address: SocketAddr,
    pub origin: Origin,
    pub metrics: Metrics,
    _scope: Scope,
}

impl Fixture {
    pub async fn start(change: impl FnOnce(FrontdoorConfig) -> FrontdoorConfig) -> Result<Self> {
        let (origin, scope, metrics) = (Origin::default(), Scope::root("frontdoor"), Metrics::new());
        let serving = origin.clone();
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), "origin").await?;
        let origin_address = listener.local_addr();
        let service = tower::service_fn(move |request| {
            let origin = serving.clone();
            async move { Ok::<_, Infallible>(origin.answer(request).await) }
        });
        let options = ServeOptions { drain: Duration::from_millis(100), ..ServeOptions::named("origin") };
        serve(listener, service, &scope, options);
        let config = FrontdoorConfig {
            origin: Some("http://account.example.com/$web".to_owned()),
            connect_to: Some(origin_address),
            ..FrontdoorConfig::default()
        };
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), "frontdoor.listen").await?;
        let (address, readiness) = (listener.local_addr(), Readiness::new());
        let ports = FrontdoorPorts {
            listener,
            resolve: Arc::new(SystemResolve),
            clock: ManualClock::at(Timestamp::from_second(1_800_000_000)?),
            metrics: metrics.clone(),
            readiness: readiness.clone(),
        };
        launch::<Frontdoor>(&scope, change(config).check()?, ports)?;
        tokio::time::timeout(DEADLINE, readiness.ready()).await.context("never ready")?;
        Ok(Self { address, origin, metrics, _scope: scope })
    }

    pub fn set(&self, path: &str, behaviour: Behaviour) {
        self.origin.set(&format!("/$web{path}"), behaviour);
    }

    pub async fn get(&self, path: &str) -> Result<Response<Bytes>> {
        self.request(Method::GET, path).await
    }

    pub async fn request(&self, method: Method, path: &str) -> Result<Response<Bytes>> {
        exchange(TcpStream::connect(self.address).await?, method, path).await
    }
}

pub async fn exchange<S>(stream: S, method: Method, path: &str) -> Result<Response<Bytes>>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let mut driver = tokio::task::JoinSet::new();
    driver.spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "oic.example.com")
        .body(Empty::<Bytes>::new())?;
    let exchange = async {
        let (parts, body) = sender.send_request(request).await?.into_parts();
        anyhow::Ok(Response::from_parts(parts, body.collect().await?.to_bytes()))
    };
    tokio::time::timeout(DEADLINE, exchange).await?
}
