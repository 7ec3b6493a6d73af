//! The REST API: bundles are read and deleted, consumers are created, labelled and removed. Bundles are written over gRPC only.
//!
//! The flow of a request: an outer handler strips a trailing slash, determines the operation id and counts; the inner router
//! finds the handler; a handler's [`Fault`] becomes the error body.
//!
//! Invariants:
//! * No key beyond the published ones appears in a list, a bundle or a consumer: strict clients reject unknown ones.
//! * A list is streamed: memory holds a slice of its documents, never the whole body.
//! * Liveness does not depend on the store.

mod bundles;
mod catalogue;
mod consumers;
mod deliveries;
mod fields;
mod health;
mod listing;
mod metrics;
mod operation;
mod render;

use std::sync::Arc;
use std::time::Duration;

use aro_base::chain;
use aro_runtime::Metrics;
use aro_web::{BodyBudget, BodyLimits};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::header::{CONTENT_TYPE, RETRY_AFTER, VARY};
use http::{HeaderValue, StatusCode, Uri};
use serde_json::{Value, json};
use tower::ServiceExt as _;

pub use health::health;

use crate::fault::{Code, Fault};
use crate::rows::{Bundle, Rows};
use metrics::RestMetrics;
use operation::OperationId;

/// The root of Maestro's paths.
const ROOT: &str = "/api/maestro";
/// The root of this implementation's additional paths.
const OWN: &str = "/api/aro/maestro/v1";

/// The parts of the server that the REST API uses.
pub trait Ledger: Send + Sync + 'static {
    /// The ledger entry of a bundle.
    fn entry(&self, bundle: &Bundle) -> Value;

    /// The deletion of a bundle was stored and has to be published.
    fn deletion_stored(&self, bundle: Bundle);
}

/// The state of the handlers.
#[derive(Clone)]
struct Shared {
    rows: Rows,
    ledger: Arc<dyn Ledger>,
    body: BodyLimits,
}

/// The largest request body.
const MAX_BODY: usize = 1024 * 1024;
/// Request bodies in memory at once.
const BODY_BUDGET: u64 = 32 * 1024 * 1024;
/// How long a request body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The API as a router.
pub fn router(rows: Rows, ledger: Arc<dyn Ledger>, metrics: &Metrics) -> Router {
    let budget = BodyBudget::of_bytes(BODY_BUDGET);
    let body = BodyLimits { max: MAX_BODY, discard: MAX_BODY, timeout: BODY_TIMEOUT, budget };
    let inner = routes(Shared { rows, ledger, body });
    let metrics = RestMetrics::register(metrics);
    Router::new().fallback(move |request: Request| outer(inner.clone(), metrics.clone(), request))
}

fn routes(shared: Shared) -> Router {
    let known = Router::new()
        .route("/", get(catalogue::api))
        .route("/v1", get(catalogue::version))
        .route("/v1/openapi", get(catalogue::openapi))
        .route("/v1/errors", get(catalogue::errors))
        .route("/v1/errors/{id}", get(catalogue::error))
        .route("/v1/resource-bundles", get(bundles::list))
        .route("/v1/resource-bundles/{id}", get(bundles::one).delete(bundles::delete))
        .route("/v1/consumers", get(consumers::list).post(consumers::create))
        .route("/v1/consumers/{id}", get(consumers::one).patch(consumers::patch).delete(consumers::delete));
    let own = Router::new()
        .route("/deliveries", get(deliveries::list))
        .route("/deliveries/{id}", get(deliveries::one))
        .route("/consumers/{id}/abandon", post(deliveries::abandon))
        .route("/consumers/{id}/trust", post(deliveries::trust));
    Router::new()
        .nest(ROOT, known)
        .nest(OWN, own)
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .with_state(shared)
}

async fn outer(inner: Router, metrics: RestMetrics, mut request: Request) -> Response {
    let operation = OperationId::of(request.headers());
    strip_slash(request.uri_mut());
    let counted = metrics.begin(request.method(), request.uri().path());
    request.extensions_mut().insert(operation.clone());
    let Ok(mut response) = inner.oneshot(request).await;
    if let Some(Failed(fault)) = response.extensions_mut().remove() {
        response = error_response(&fault, &operation);
    } else if response.status().is_client_error() && !is_json(&response) {
        // From an extractor, before any handler.
        let fault = Fault::new(Code::BadRequest, "the path or a parameter of the request cannot be parsed");
        response = error_response(&fault, &operation);
    }
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Authorization"));
    headers.insert(OperationId::HEADER, operation.header());
    counted.end(response.status());
    response
}

fn is_json(response: &Response) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json")
}

fn strip_slash(uri: &mut Uri) {
    let path = uri.path();
    let stripped = path.trim_end_matches('/');
    if stripped.len() == path.len() || stripped.is_empty() {
        return;
    }
    let text = uri.query().map_or_else(|| stripped.to_owned(), |query| format!("{stripped}?{query}"));
    if let Ok(stripped) = text.parse() {
        *uri = stripped;
    }
}

/// A fault for the outer handler, which knows the operation id.
#[derive(Clone)]
struct Failed(Arc<Fault>);

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        response.extensions_mut().insert(Failed(Arc::new(self)));
        response
    }
}

fn error_response(fault: &Fault, operation: &OperationId) -> Response {
    if let Some(source) = &fault.source {
        tracing::error!(operation_id = operation.as_str(), error = %chain(&**source), "{}", fault.reason);
    }
    let number = fault.code.number();
    let body = json!({
        "id": number.to_string(),
        "kind": "Error",
        "href": format!("{ROOT}/v1/errors/{number}"),
        "code": format!("maestro-{number}"),
        "reason": fault.reason,
        "operation_id": operation.as_str(),
    });
    let mut response = (fault.code.status(), Json(body)).into_response();
    if fault.code == Code::Overloaded {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// The key is `type` here and not `kind`, as in the original.
async fn no_such_path(uri: Uri) -> Response {
    let body = json!({
        "type": "Error",
        "id": "404",
        "href": format!("{ROOT}/v1/errors/404"),
        "code": "maestro-404",
        "reason": format!("The requested resource '{}' doesn't exist", uri.path()),
    });
    (StatusCode::NOT_FOUND, Json(body)).into_response()
}

async fn no_such_method() -> Fault {
    Fault::new(Code::NotImplemented, "this path does not support that method")
}

/// A response whose body is JSON already.
fn json_text(status: StatusCode, text: impl Into<axum::body::Body>) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], text.into()).into_response()
}

type Answer = Result<Response, Fault>;
type Ctx = State<Shared>;
