//! Our own paths: how far bundles were delivered, and giving up on a cluster that is gone.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse as _;
use serde::Deserialize;
use serde_json::json;

use aro_store::{Page, PageToken};

use super::{Answer, Ctx};
use crate::fault::{Code, Fault};

/// How many lines there are on a page when nobody says, and at most.
const DEFAULT_SIZE: usize = 100;
const MAX_SIZE: usize = 1000;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    state: Option<String>,
    consumer: Option<String>,
    size: Option<usize>,
    after: Option<String>,
}

/// `state=undelivered` or everything of a consumer; pages go on with `after`.
pub(super) async fn list(State(shared): Ctx, Query(asked): Query<Asked>) -> Answer {
    let page = Page {
        size: asked.size.unwrap_or(DEFAULT_SIZE).clamp(1, MAX_SIZE),
        after: asked.after.filter(|token| !token.is_empty()).map(PageToken::new),
    };
    let consumer = asked.consumer.as_deref().filter(|name| !name.is_empty());
    if let Some(name) = consumer
        && shared.rows.consumer_by_name(name).await?.is_none()
    {
        // An empty list would say that everything is delivered there.
        return Err(Fault::new(Code::NotFound, format!("there is no consumer `{name}`")));
    }
    let (rows, next) = match asked.state.as_deref() {
        Some("undelivered") => shared.rows.waiting(consumer, page).await?,
        None | Some("" | "all") => shared.rows.bundles(consumer, page).await?,
        Some(_) => return Err(Fault::new(Code::BadRequest, "state is undelivered or all")),
    };
    let items: Vec<_> = rows.iter().map(|row| shared.ledger.line(&row.value)).collect();
    let next = next.map(|token| token.as_str().to_owned());
    Ok(Json(json!({ "items": items, "next": next })).into_response())
}

pub(super) async fn one(State(shared): Ctx, Path(id): Path<String>) -> Answer {
    let row = shared.rows.bundle(&id).await?;
    Ok(Json(shared.ledger.line(&row.value)).into_response())
}

/// The store is right: what it does not know may be taken away from the consumer's agent.
pub(super) async fn trust(State(shared): Ctx, Path(id): Path<String>) -> Answer {
    let consumer = shared.rows.trust(&id).await?;
    tracing::warn!(
        consumer = consumer.value.name,
        "an operator says that the store is right about a consumer"
    );
    Ok(Json(json!({ "consumer": consumer.value.name })).into_response())
}

/// The consumer's cluster is gone and will never answer: its bundles that are to go are removed.
pub(super) async fn abandon(State(shared): Ctx, Path(id): Path<String>) -> Answer {
    let consumer = shared.rows.consumer_by_id(&id).await?;
    let removed = shared.rows.abandon(&consumer.value.name).await?;
    tracing::warn!(consumer = consumer.value.name, removed, "a consumer was abandoned by an operator");
    Ok(Json(json!({ "consumer": consumer.value.name, "removed": removed })).into_response())
}
