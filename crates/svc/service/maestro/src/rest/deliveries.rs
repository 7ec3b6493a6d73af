//! Operators' paths of this implementation: deliveries, and operations on consumers.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse as _;
use serde::Deserialize;
use serde_json::json;

use aro_store::{Page, PageToken};

use super::{Answer, Ctx};
use crate::fault::{Code, Fault};

/// The default and the largest page.
const DEFAULT_SIZE: usize = 100;
const MAX_SIZE: usize = 1000;

#[derive(Debug, Deserialize)]
pub(super) struct ListQuery {
    state: Option<String>,
    consumer: Option<String>,
    size: Option<usize>,
    after: Option<String>,
}

/// `state=undelivered` or all bundles of a consumer; `after` continues with the next page.
pub(super) async fn list(State(shared): Ctx, Query(query): Query<ListQuery>) -> Answer {
    let page = Page {
        size: query.size.unwrap_or(DEFAULT_SIZE).clamp(1, MAX_SIZE),
        after: query.after.filter(|token| !token.is_empty()).map(PageToken::new),
    };
    let consumer = query.consumer.as_deref().filter(|name| !name.is_empty());
    if let Some(name) = consumer
        && shared.rows.consumer_by_name(name).await?.is_none()
    {
        // An empty list would mean that everything is delivered.
        return Err(Fault::new(Code::NotFound, format!("there is no consumer `{name}`")));
    }
    let (rows, next) = match query.state.as_deref() {
        Some("undelivered") => shared.rows.undelivered_bundles(consumer, page).await?,
        None | Some("" | "all") => shared.rows.bundles(consumer, page).await?,
        Some(_) => return Err(Fault::new(Code::BadRequest, "`state` must be `undelivered` or `all`")),
    };
    let items: Vec<_> = rows.iter().map(|row| shared.ledger.entry(&row.value)).collect();
    let next = next.map(|token| token.as_str().to_owned());
    Ok(Json(json!({ "items": items, "next": next })).into_response())
}

pub(super) async fn one(State(shared): Ctx, Path(id): Path<String>) -> Answer {
    let row = shared.rows.bundle(&id).await?;
    Ok(Json(shared.ledger.entry(&row.value)).into_response())
}

/// Allows the deletion of orphans on a consumer's cluster.
pub(super) async fn trust(State(shared): Ctx, Path(id): Path<String>) -> Answer {
    let consumer = shared.rows.allow_orphan_deletion(&id).await?;
    tracing::warn!(consumer = consumer.value.name, "orphan deletion allowed by an operator");
    Ok(Json(json!({ "consumer": consumer.value.name })).into_response())
}

/// Removes the bundles being deleted of a consumer whose cluster is lost.
pub(super) async fn abandon(State(shared): Ctx, Path(id): Path<String>) -> Answer {
    let consumer = shared.rows.consumer_by_id(&id).await?;
    let removed = shared.rows.abandon(&consumer.value.name).await?;
    tracing::warn!(consumer = consumer.value.name, removed, "consumer abandoned by an operator");
    Ok(Json(json!({ "consumer": consumer.value.name, "removed": removed })).into_response())
}
