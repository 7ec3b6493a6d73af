//! A cluster as a tower service: for the listener, and for clients in this process.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use aro_web::{BodyBudget, BodyLimits};
use bytes::Bytes;
use http::{Request, Response};
use tokio::time::Instant;
use tower::Service;

use crate::cluster::Cluster;
use crate::http::body::Body;
use crate::identity::user::User;
use crate::observe::{Observer, Watching};
use crate::server;

/// Answers for one cluster, to one peer.
#[derive(Clone, Debug)]
pub struct ClusterService {
    pub cluster: Arc<Cluster>,
    pub peer: Option<Arc<User>>,
    pub body: BodyLimits,
    /// Told about every answer.
    pub observer: Option<Observer>,
}

/// How long a body from this process may take.
const IN_PROCESS_TIMEOUT: Duration = Duration::from_secs(30);

/// A cluster without a socket: what `kube::Client` is built on inside this process.
pub type InProcess = ClusterService;

impl ClusterService {
    /// The cluster for a user in this process. Such callers hold their bodies in memory already: no budget applies.
    pub fn in_process(cluster: Arc<Cluster>, user: User) -> Self {
        let budget = BodyBudget::unlimited();
        let body = BodyLimits { max: 16 << 20, discard: 0, timeout: IN_PROCESS_TIMEOUT, budget };
        Self { cluster, peer: Some(Arc::new(user)), body, observer: None }
    }
}

impl<B> Service<Request<B>> for ClusterService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { cluster, peer, body: limits, observer } = self.clone();
        Box::pin(async move {
            let Some(observer) = observer else {
                return Ok(server::answer(&cluster, peer.as_ref(), request, &limits).await);
            };
            let (method, uri) = (request.method().clone(), request.uri().clone());
            let asked = Instant::now();
            let mut answer = server::answer(&cluster, peer.as_ref(), request, &limits).await;
            observer.answered(&cluster, &method, &uri, answer.status().as_u16(), asked.elapsed());
            if let Body::Stream(stream) = answer.body_mut() {
                // Counted until the client or the server has had enough.
                let watching = Watching::new(&observer);
                let lasting = std::mem::replace(stream, Box::pin(futures::stream::empty()));
                *stream = Box::pin(futures::StreamExt::map(lasting, move |bytes| {
                    let _ = &watching;
                    bytes
                }));
            }
            Ok(answer)
        })
    }
}
