//! With an exporter installed: the caller's trace goes on through us.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use aro_runtime::trace_context::{self, TRACEPARENT, TRACERESPONSE};
use aro_web::TraceLayer;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, Request};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use tower::{Layer as _, ServiceExt as _, service_fn};
use tracing_subscriber::layer::SubscriberExt as _;

#[derive(Debug, Clone, Default)]
struct Collector(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Collector {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}

#[tokio::test]
async fn the_server_span_continues_the_callers_trace_and_outgoing_calls_continue_ours() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const CALLER: &str = "00f067aa0ba902b7";
    let collector = Collector::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(collector.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));

    let outgoing = Arc::new(Mutex::new(HeaderMap::new()));
    let sent = outgoing.clone();
    let service = TraceLayer.layer(service_fn(move |_: Request<Body>| {
        let sent = sent.clone();
        async move {
            trace_context::inject(&mut sent.lock().unwrap());
            Ok::<_, Infallible>(Response::new(Body::empty()))
        }
    }));
    let request = Request::get("/subscriptions/s1").header(TRACEPARENT, format!("00-{TRACE}-{CALLER}-01"));
    let answer = service.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();

    let spans = collector.0.lock().unwrap();
    let [span] = spans.as_slice() else { panic!("one span, not {}", spans.len()) };
    assert_eq!(span.span_context.trace_id().to_string(), TRACE);
    assert_eq!(span.parent_span_id.to_string(), CALLER);
    assert_eq!(span.span_kind, opentelemetry::trace::SpanKind::Server);
    let ours = format!("00-{TRACE}-{}-01", span.span_context.span_id());
    assert_eq!(answer.headers()[TRACERESPONSE], ours.as_str());
    assert_eq!(outgoing.lock().unwrap()[TRACEPARENT], ours.as_str());
}
