//! The traces of a request: metrics, one log line, one audit record. Never a body, never a query string.

use std::sync::Arc;
use std::time::Duration;

use aro_arm::subscription::State;
use aro_base::chain;
use aro_runtime::Metrics;
use http::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use crate::answer::Answer;
use crate::caller::Caller;

/// What the stages of the pipeline found out about one request.
#[derive(Debug)]
pub struct Exchange {
    method: Method,
    path: String,
    /// The pattern of its route in lower case.
    pub route: Option<Arc<str>>,
    pub api_version: Option<&'static str>,
    pub subscription_state: Option<State>,
}

impl Exchange {
    pub fn new(method: &Method, path: &str) -> Self {
        Self {
            method: method.clone(),
            path: path.to_owned(),
            route: None,
            api_version: None,
            subscription_state: None,
        }
    }

    /// Logs the cause of a 5xx, with the ids that the caller knows.
    pub fn failed(&self, caller: &Caller, cause: &(dyn std::error::Error + Send + Sync + 'static)) {
        tracing::error!(
            request_id = %caller.request_id,
            correlation_request_id = caller.correlation_id.as_deref().unwrap_or_default(),
            method = %self.method,
            path = %self.path,
            error = %chain(cause),
            "request failed",
        );
    }
}

/// Labels as the original service has them. All values come from closed sets, so that callers cannot make metrics grow.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    api_version: &'static str,
    code: u16,
    method: &'static str,
    route: Arc<str>,
    state: &'static str,
    user_agent: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PanicLabels {
    route: Arc<str>,
    method: &'static str,
}

/// Upper bounds of the duration buckets, in seconds.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0];

/// The metrics of one provider.
#[derive(Debug, Clone)]
pub struct Observer {
    requests: Family<RequestLabels, Counter>,
    durations: Family<RequestLabels, Histogram>,
    panics: Family<PanicLabels, Counter>,
    unmatched: Arc<str>,
}

impl Observer {
    /// Registers the metrics of a provider; their names begin with `prefix`.
    pub fn new(metrics: &Metrics, prefix: &str) -> Self {
        let observer = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            panics: Family::default(),
            unmatched: "unmatched".into(),
        };
        metrics.register(|registry| {
            registry.register(
                format!("{prefix}_http_requests"),
                "Requests answered",
                observer.requests.clone(),
            );
            registry.register(
                format!("{prefix}_http_requests_duration_seconds"),
                "Duration of requests, in seconds",
                observer.durations.clone(),
            );
            registry.register(
                format!("{prefix}_http_request_panics"),
                "Requests that panicked",
                observer.panics.clone(),
            );
        });
        observer
    }

    pub fn panicked(&self, exchange: &Exchange) {
        let labels =
            PanicLabels { route: self.route_label(exchange), method: method_label(&exchange.method) };
        self.panics.get_or_create(&labels).inc();
    }

    fn route_label(&self, exchange: &Exchange) -> Arc<str> {
        exchange.route.as_ref().unwrap_or(&self.unmatched).clone()
    }

    pub fn finished(&self, exchange: &Exchange, caller: &Caller, answer: &Answer, took: Duration) {
        let labels = RequestLabels {
            api_version: exchange.api_version.unwrap_or("unknown"),
            code: answer.status.as_u16(),
            method: method_label(&exchange.method),
            route: self.route_label(exchange),
            state: exchange.subscription_state.map_or("Unknown", State::as_str),
            user_agent: caller.user_agent.label(),
        };
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
        self.requests.get_or_create(&labels).inc();
        log(exchange, caller, answer, took);
        audit(exchange, caller, answer);
    }
}

/// Writes are logged by default; reads on the debug level.
fn log(exchange: &Exchange, caller: &Caller, answer: &Answer, took: Duration) {
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                request_id = %caller.request_id,
                client_request_id = caller.client_request_id.as_deref().unwrap_or_default(),
                correlation_request_id = caller.correlation_id.as_deref().unwrap_or_default(),
                method = %exchange.method,
                path = %exchange.path,
                api_version = exchange.api_version.unwrap_or_default(),
                status_code = answer.status.as_u16(),
                cloud_error_code = answer.error_code.unwrap_or_default(),
                body_bytes = answer.body_len(),
                duration_ms = took.as_secs_f64() * 1000.0,
                "{} {} {}", exchange.method, exchange.path, answer.status.as_u16(),
            )
        };
    }
    if exchange.method == Method::GET { line!(debug) } else { line!(info) }
}

/// One record per request for the audit trail; a collector picks them up by target.
fn audit(exchange: &Exchange, caller: &Caller, answer: &Answer) {
    let failed = answer.status.as_u16() >= 400;
    macro_rules! record {
        ($level:ident) => {
            tracing::$level!(
                target: "audit",
                operation = %exchange.method,
                category = "ResourceManagement",
                access_level = if exchange.method == Method::GET { "Read" } else { "Write" },
                caller_upn = caller.principal_name.as_deref().unwrap_or_default(),
                caller_object_id = caller.object_id.as_deref().unwrap_or_default(),
                caller_other = caller.client_request_id.as_deref().unwrap_or_default(),
                resource = %exchange.path,
                result = if failed { "Failure" } else { "Success" },
                result_code = answer.status.as_u16(),
                request_id = %caller.request_id,
                "audit"
            )
        };
    }
    if exchange.method == Method::GET { record!(debug) } else { record!(info) }
}

fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        _ => "other",
    }
}
