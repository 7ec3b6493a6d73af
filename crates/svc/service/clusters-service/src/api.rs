//! The REST API, on both of its roots.
//!
//! The flow of a request: `Api::serve` finds the route, reads the body within its limits, compares it with the route's type
//! table, and calls the handler; a `Failure` becomes the error body. Requests are counted, logged and traced around that.
//!
//! Invariants:
//! * Every answer but a 204 has JSON as its content type, and every answer from 400 on has a body: the client of this API
//!   takes anything else for a success or cannot read it.
//! * A request that was stored is not answered with an error.
//! * Liveness does not depend on the store.

mod call;
mod checks;
mod clusters;
mod credentials;
mod dispatch;
mod external_auths;
mod listing;
mod metrics;
mod node_pools;
mod openapi;
mod policies;
mod present;
mod reply;
mod requirements;
mod routes;
mod shards;
#[cfg(test)]
mod tests;
mod validate;
mod versions;

use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_ocm::{ErrorBody, Root, event};
use aro_runtime::Metrics;
use aro_web::{BodyBudget, BodyLimits, CatchPanicLayer, RequestHead, TraceLayer};
use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::header::{CONTENT_TYPE, ETAG, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, StatusCode};

use crate::events::EventHub;
use crate::shared::Shared;
use call::{Call, Traced};
#[allow(unused_imports, reason = "the delete pipeline repeats it")]
pub(crate) use clusters::mark_children;
use metrics::ApiMetrics;
pub(crate) use present::{View, shard as shown_shard};
pub(crate) use reply::{Failure, Reply};
use routes::{Route, Routed};

/// The largest request body.
const MAX_BODY: usize = 4 * 1024 * 1024;
/// Request bodies in memory at once.
const BODY_BUDGET: u64 = 64 * 1024 * 1024;
/// How long a request body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The header with the id of the operation in this service's log.
const OPERATION_ID: HeaderName = HeaderName::from_static("x-operation-id");

/// The REST API.
pub struct Api {
    shared: Arc<Shared>,
    events: Arc<EventHub>,
    metrics: ApiMetrics,
    body: BodyLimits,
    lists: listing::LargeLists,
}

/// The API as a router.
pub fn router(shared: Arc<Shared>, events: Arc<EventHub>, metrics: &Metrics) -> Router {
    let budget = BodyBudget::of_bytes(BODY_BUDGET);
    let api = Arc::new(Api {
        shared,
        events,
        metrics: ApiMetrics::register(metrics),
        body: BodyLimits { max: MAX_BODY, discard: MAX_BODY, timeout: BODY_TIMEOUT, budget },
        lists: listing::LargeLists::default(),
    });
    let panicked = |text: &str| {
        tracing::error!(panic = text, "request handler panicked");
        rendered(
            Failure::internal("the request failed").into_body(Root::ClustersMgmt),
            StatusCode::INTERNAL_SERVER_ERROR,
        )
    };
    Router::new()
        .fallback(move |request: Request| {
            let api = api.clone();
            async move { api.serve(request).await }
        })
        .layer(TraceLayer::new())
        .layer(CatchPanicLayer::new(panicked))
}

impl Api {
    async fn serve(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let head = RequestHead::new(parts);
        let traced = Traced::of(&head);
        let segments = head.segments();
        let routed = routes::find(&head.method, segments.as_deref().unwrap_or_default());
        let counted = self.metrics.begin(&head.method, routed.template());
        let method = head.method.clone();
        let root = routed.root();
        let cluster = routed.cluster().map(str::to_owned);
        let result = match &routed {
            Routed::Route { route, params, root } => {
                self.call(route, *root, params, &head, &traced, body).await
            }
            Routed::Events => self.follow(&head).await,
            Routed::Apis => Ok(versions::apis()),
            Routed::NoMethod { path } => Err(Failure::new(
                StatusCode::METHOD_NOT_ALLOWED,
                aro_ocm::Code::NotSupported,
                format!("Method '{method}' is not supported for '{path}'"),
            )),
            Routed::Unknown => Err(Failure::new(
                StatusCode::NOT_FOUND,
                aro_ocm::Code::NotFound,
                format!(
                    "The requested resource '{}' doesn't exist",
                    aro_ocm::shape::shortened(&head.raw_path)
                ),
            )),
        };
        let mut response = match result {
            Ok(reply) => reply_response(reply),
            Err(failure) => self.error_response(failure, root, &traced),
        };
        if let Ok(value) = HeaderValue::from_str(&traced.operation_id) {
            response.headers_mut().insert(OPERATION_ID, value);
        }
        let seconds = counted.end(response.status());
        log(&method, routed.template(), response.status(), seconds, cluster.as_deref(), &traced);
        response
    }

    async fn call(
        &self,
        route: &'static Route,
        root: Root,
        params: &[String],
        head: &RequestHead,
        traced: &Traced,
        body: axum::body::Body,
    ) -> Result<Reply, Failure> {
        let body = match route.body {
            Some(shape) => Some(call::read_body(&self.body, body, shape).await?),
            None => None,
        };
        let call =
            Call { root, params, head, body, trace: traced.context(), now: self.shared.clock.now().into() };
        dispatch::run(self, route.action, call).await
    }

    async fn follow(&self, head: &RequestHead) -> Result<Reply, Failure> {
        if head.method != Method::GET {
            let reason = format!("only GET is supported for '{}'", event::PATH);
            return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, aro_ocm::Code::NotSupported, reason));
        }
        self.events.answer(head).await
    }

    fn error_response(&self, failure: Failure, root: Root, traced: &Traced) -> Response {
        let status = failure.status;
        if let Some(source) = &failure.source {
            tracing::error!(opid = traced.operation_id, error = %chain(&**source), "{}", failure.reason);
        }
        let retry = failure.retry_after;
        let mut body = failure.into_body(root);
        body.operation_id = Some(traced.operation_id.clone());
        body.timestamp = Some(self.shared.clock.now().into());
        let mut response = rendered(body, status);
        if retry {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

fn rendered(body: ErrorBody, status: StatusCode) -> Response {
    // An error body has texts only; it cannot fail.
    let text = serde_json::to_vec(&body).unwrap_or_default();
    (status, [(CONTENT_TYPE, JSON)], text).into_response()
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

fn reply_response(reply: Reply) -> Response {
    let mut response = (reply.status, reply.body).into_response();
    let headers = response.headers_mut();
    headers.remove(CONTENT_TYPE);
    if reply.status != StatusCode::NO_CONTENT {
        headers.insert(CONTENT_TYPE, JSON);
    }
    if let Some(etag) = reply.etag.and_then(|etag| HeaderValue::from_str(&format!("\"{etag}\"")).ok()) {
        headers.insert(ETAG, etag);
    }
    response
}

/// The access log: one line for each request. Bodies and query strings are not logged.
fn log(
    method: &Method,
    path: &str,
    status: StatusCode,
    seconds: f64,
    cluster: Option<&str>,
    traced: &Traced,
) {
    let status = status.as_u16();
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                %method, path, status, seconds, cid = cluster, opid = traced.operation_id, caller = traced.caller,
                correlation_id = traced.correlation_id, client_request_id = traced.client_request_id,
                "request answered"
            )
        };
    }
    if *method == Method::GET && status < 500 {
        line!(debug);
    } else {
        line!(info);
    }
}
