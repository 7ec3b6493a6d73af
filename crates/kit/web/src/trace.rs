//! The server span of a request, as a child of the caller's.

use std::convert::Infallible;
use std::task::{Context, Poll};

use aro_runtime::trace_context;
use axum::response::Response;
use futures::future::{BoxFuture, Either};
use http::Request;
use opentelemetry::trace::TraceContextExt as _;
use tower::{Layer, Service};
use tracing::{Instrument as _, Level, Span, field};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Opens a span per request with the attributes OpenTelemetry asks for: method, path (never the query), status.
///
/// The span is named `request`; handlers that know more add to it with `Span::current().record(…)` for the declared
/// fields, or open their own span below. When no subscriber wants it the request passes straight through.
#[derive(Debug, Clone, Copy, Default)]
pub struct TraceLayer;

impl TraceLayer {
    /// The layer; it has no settings.
    pub fn new() -> Self {
        Self
    }
}

impl<S> Layer<S> for TraceLayer {
    type Service = Trace<S>;

    fn layer(&self, inner: S) -> Trace<S> {
        Trace(inner)
    }
}

/// The service of [`TraceLayer`].
#[derive(Debug, Clone)]
pub struct Trace<S>(S);

impl<S, B> Service<Request<B>> for Trace<S>
where
    S: Service<Request<B>, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Either<S::Future, BoxFuture<'static, Result<Response, Infallible>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if !tracing::enabled!(Level::INFO) {
            return Either::Left(self.0.call(request));
        }
        let span = open(&request);
        let future = span.in_scope(|| self.0.call(request)).instrument(span.clone());
        Either::Right(Box::pin(async move {
            let mut response = future.await?;
            close(&span, &mut response);
            Ok(response)
        }))
    }
}

fn open<B>(request: &Request<B>) -> Span {
    let span = tracing::info_span!(
        "request",
        otel.kind = "server",
        otel.name = field::Empty,
        otel.status_code = field::Empty,
        http.request.method = request.method().as_str(),
        url.path = request.uri().path(),
        http.route = field::Empty,
        http.response.status_code = field::Empty,
    );
    if let Some(parent) = trace_context::extract(request.headers()) {
        trace_context::set_parent(&span, parent);
    }
    span
}

fn close(span: &Span, response: &mut Response) {
    span.record("http.response.status_code", response.status().as_u16());
    if response.status().is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    let context = span.context();
    if let Some(value) = trace_context::header_value(context.span().span_context()) {
        response.headers_mut().insert(trace_context::TRACERESPONSE, value);
    }
}
