//! A panic in a request is that request's problem, never the process's.

use std::any::Any;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::response::Response;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::Full;
use tower::{Layer, Service};

/// Makes the answer to a request that panicked, from what the panic said. The text is for logs, not for callers.
type Hook = Arc<dyn Fn(&str) -> Response + Send + Sync>;

/// Catches panics of the inner service and answers with a hook.
///
/// Put it outermost to be sure, and innermost as well if traces and metrics are to see the answer.
#[derive(Clone)]
pub struct CatchPanicLayer(Hook);

impl CatchPanicLayer {
    /// Answers panics with `hook`.
    pub fn new(hook: impl Fn(&str) -> Response + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }
}

impl<S> Layer<S> for CatchPanicLayer {
    type Service = CatchPanic<S>;

    fn layer(&self, inner: S) -> CatchPanic<S> {
        CatchPanic { inner, hook: self.0.clone() }
    }
}

/// The service of [`CatchPanicLayer`].
#[derive(Clone)]
pub struct CatchPanic<S> {
    inner: S,
    hook: Hook,
}

impl<S, B> Service<Request<B>> for CatchPanic<S>
where
    S: Service<Request<B>, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let hook = self.hook.clone();
        // `call` itself may panic, too (a service written as a plain function).
        let called = std::panic::catch_unwind(AssertUnwindSafe(|| self.inner.call(request)));
        Box::pin(async move {
            let panic = match called {
                Ok(future) => match AssertUnwindSafe(future).catch_unwind().await {
                    Ok(answered) => return answered,
                    Err(panic) => panic,
                },
                Err(panic) => panic,
            };
            Ok(hook(text(&*panic)))
        })
    }
}

/// What a caught panic said.
pub(crate) fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// The answer of last resort.
pub(crate) fn plain_answer() -> http::Response<Full<Bytes>> {
    let mut answer = http::Response::new(Full::from("Internal Server Error\n"));
    *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}
