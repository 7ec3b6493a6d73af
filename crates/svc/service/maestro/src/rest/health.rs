//! Liveness and readiness.

use std::time::Duration;

use aro_base::chain;
use aro_store::SharedStore;
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use http::StatusCode;

use super::json_text;

/// The deadline of the store's ping.
const PATIENCE: Duration = Duration::from_secs(2);

/// `/healthcheck` pings the store. `/livez` does not: a slow store must not get live processes killed (maestro#543).
pub fn health(store: SharedStore) -> Router {
    Router::new()
        .route("/healthcheck", get(move || ready(store.clone())))
        .route("/livez", get(|| async { json_text(StatusCode::OK, r#"{"status": "ok"}"#) }))
}

async fn ready(store: SharedStore) -> Response {
    match tokio::time::timeout(PATIENCE, store.ping()).await {
        Ok(Ok(())) => json_text(StatusCode::OK, r#"{"status": "ok"}"#),
        Ok(Err(error)) => {
            tracing::warn!(error = %chain(&error), "the store does not answer");
            json_text(StatusCode::INTERNAL_SERVER_ERROR, r#"{"status": "error"}"#)
        }
        Err(_) => json_text(StatusCode::SERVICE_UNAVAILABLE, r#"{"status": "not ready"}"#),
    }
}
