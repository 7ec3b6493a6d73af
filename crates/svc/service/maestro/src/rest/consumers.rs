//! Consumers over REST.

use std::collections::BTreeMap;

use aro_web::{BodyError, BodyLimits};
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse as _;
use http::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::bundles::projected;
use super::listing::{Listing, streamed};
use super::render::{self, CONSUMER_FIELDS};
use super::{Answer, Ctx, json_text};
use crate::fault::{Code, Fault};
use crate::rows::{Consumer, Row};
use crate::search::Table;

/// The size of a consumer in memory, approximately.
const CONSUMER_BYTES: usize = 1024;

#[derive(Deserialize)]
struct New {
    id: Option<String>,
    name: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Patch {
    labels: Option<BTreeMap<String, String>>,
}

pub(super) async fn list(State(shared): Ctx, RawQuery(query): RawQuery) -> Answer {
    let mut listing = Listing::read(query.as_deref(), Table::Consumers, &CONSUMER_FIELDS)?;
    let (rows, counted) = (shared.rows.clone(), listing.condition.clone());
    let count = async move { rows.count_consumers(counted).await };
    let (condition, fields) = (listing.condition.take(), listing.fields.take());
    let read = move |slice| {
        let (rows, condition) = (shared.rows.clone(), condition.clone());
        async move { rows.list_consumers(condition, slice).await }
    };
    let show = move |row: &Row<Consumer>, out: &mut Vec<u8>| match &fields {
        None => render::consumer(&row.value, out),
        Some(fields) => projected(fields, out, |out| render::consumer(&row.value, out)),
    };
    streamed("ConsumerList", count, &listing, read, |_| CONSUMER_BYTES, show).await
}

pub(super) async fn create(State(shared): Ctx, body: Body) -> Answer {
    let new: New = read(body, &shared.body).await?;
    if new.id.is_some_and(|id| !id.is_empty()) {
        return Err(Fault::new(Code::Validation, "id must be empty"));
    }
    let row = shared.rows.create_consumer(new.name.as_deref(), new.labels.unwrap_or_default()).await?;
    shown(StatusCode::CREATED, &row)
}

pub(super) async fn one(State(shared): Ctx, Path(id): Path<String>) -> Answer {
    shown(StatusCode::OK, &shared.rows.consumer_by_id(&id).await?)
}

pub(super) async fn patch(State(shared): Ctx, Path(id): Path<String>, body: Body) -> Answer {
    let patch: Patch = read(body, &shared.body).await?;
    let row = match patch.labels {
        Some(labels) => shared.rows.label_consumer(&id, &labels).await?,
        None => shared.rows.consumer_by_id(&id).await?,
    };
    shown(StatusCode::OK, &row)
}

pub(super) async fn delete(State(shared): Ctx, Path(id): Path<String>) -> Answer {
    shared.rows.delete_consumer(&id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn shown(status: StatusCode, row: &Row<Consumer>) -> Answer {
    let mut out = Vec::new();
    render::consumer(&row.value, &mut out)?;
    Ok(json_text(status, out))
}

async fn read<T: DeserializeOwned>(body: Body, limits: &BodyLimits) -> Result<T, Fault> {
    let malformed = |why: String| Fault::new(Code::Malformed, format!("Invalid request format: {why}"));
    let held = limits.read(body).await.map_err(|error| match error {
        BodyError::OverBudget => Fault::new(Code::Overloaded, "too many requests are in flight; retry later"),
        other => malformed(other.to_string()),
    })?;
    serde_json::from_slice(&held.bytes()).map_err(|error| malformed(error.to_string()))
}
