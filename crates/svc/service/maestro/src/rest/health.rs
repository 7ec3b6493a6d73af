//! Whether the server lives, and whether it can answer.

use std::time::Duration;

use aro_base::chain;
use aro_store::SharedStore;
use axum::Router;
use axum::response::Response;
use axum::routing::get;
use http::StatusCode;

use super::json_text;

/// How long the store may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

/// `/healthcheck` asks the store, `/livez` nobody: a slow store must not get living processes killed (maestro#543).
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
