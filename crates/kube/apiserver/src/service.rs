//! A cluster as a tower service: for the listener, and for clients in this process.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use aro_kube_apimachinery::status::Status;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::time::Instant;
use tower::Service;

use crate::cluster::Cluster;
use crate::http::answer;
use crate::http::body::Body;
use crate::identity::user::User;
use crate::observe::{Observer, Watching};
use crate::server;

/// Answers for one cluster, to one peer.
#[derive(Clone, Debug)]
pub struct ClusterService {
    pub cluster: Arc<Cluster>,
    pub peer: Option<Arc<User>>,
    pub max_body: usize,
    /// Told about every answer.
    pub observer: Option<Observer>,
}

/// A cluster without a socket: what `kube::Client` is built on inside this process.
pub type InProcess = ClusterService;

impl ClusterService {
    /// The cluster for a user in this process.
    pub fn in_process(cluster: Arc<Cluster>, user: User) -> Self {
        Self { cluster, peer: Some(Arc::new(user)), max_body: 16 << 20, observer: None }
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
        let Self { cluster, peer, max_body, observer } = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = match Limited::new(body, max_body).collect().await {
                Ok(collected) => collected.to_bytes(),
                Err(error) if error.is::<LengthLimitError>() => {
                    let message = format!("Request entity too large: limit is {max_body}");
                    return Ok(answer::status(&Status::too_large(message)));
                }
                Err(_) => {
                    return Ok(answer::status(&Status::bad_request(
                        "the body of the request could not be read",
                    )));
                }
            };
            let Some(observer) = observer else {
                return Ok(server::answer(&cluster, peer.as_ref(), Request::from_parts(parts, body)).await);
            };
            let (method, uri) = (parts.method.clone(), parts.uri.clone());
            let asked = Instant::now();
            let mut answer = server::answer(&cluster, peer.as_ref(), Request::from_parts(parts, body)).await;
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
