//! The listener for operators and machines: `/metrics`, `/healthz`, `/readyz`.
//!
//! Alive means the process answers; ready means every component of the stack said so. It carries no secrets and
//! no identity check, so it stays on loopback or inside the pod network.

use std::fmt::Write as _;

use aro_runtime::{Listener, METRICS_CONTENT_TYPE, Metrics, Readiness, Scope};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;

use crate::{ServeOptions, Server, serve};

/// Serves the three endpoints, and those of the process, until the scope is closed.
pub fn serve_admin(
    listener: Listener,
    metrics: Metrics,
    readiness: Readiness,
    more: Router,
    scope: &Scope,
) -> Server {
    let options = ServeOptions { max_connections: 64, ..ServeOptions::named("admin") };
    serve(listener, router(metrics, readiness).merge(more), scope, options)
}

/// The endpoints as a router, for roles that serve them on a port of their own.
pub fn router(metrics: Metrics, readiness: Readiness) -> Router {
    Router::new()
        .route("/metrics", get(scrape))
        .with_state(metrics)
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready).with_state(readiness))
}

async fn scrape(State(metrics): State<Metrics>) -> Response {
    ([(CONTENT_TYPE, METRICS_CONTENT_TYPE)], metrics.encode()).into_response()
}

async fn ready(State(readiness): State<Readiness>) -> Response {
    let waiting = readiness.waiting();
    if waiting.is_empty() {
        return "ok\n".into_response();
    }
    let mut text = String::new();
    for (component, why) in waiting {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{component}: {why}");
    }
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}
