//! Bundles over REST: read and deleted.

use aro_store::Document;
use axum::extract::{Path, RawQuery, State};
use axum::response::IntoResponse as _;
use http::StatusCode;

use super::fields::Fields;
use super::listing::{Listing, streamed};
use super::render::{self, BUNDLE_FIELDS};
use super::{Answer, Ctx, json_text};
use crate::fault::Fault;
use crate::rows::Deletion;
use crate::search::Table;

pub(super) async fn list(State(shared): Ctx, RawQuery(query): RawQuery) -> Answer {
    let mut listing = Listing::read(query.as_deref(), Table::Bundles, &BUNDLE_FIELDS)?;
    let (rows, counted) = (shared.rows.clone(), listing.condition.clone());
    let count = async move { rows.count_bundles(counted).await };
    let (condition, fields) = (listing.condition.take(), listing.fields.take());
    let read = move |slice| {
        let (rows, condition) = (shared.rows.clone(), condition.clone());
        async move { rows.list_bundles(condition, slice).await }
    };
    let show = move |document: &Document, out: &mut Vec<u8>| match &fields {
        None => render::bundle(document.body.get(), out),
        Some(fields) => projected(fields, out, |out| render::bundle(document.body.get(), out)),
    };
    streamed("ResourceBundleList", count, &listing, read, weigh, show).await
}

/// The size of a document in memory.
pub(super) fn weigh(document: &Document) -> usize {
    document.body.get().len()
}

/// Renders an item, and then removes the fields that are not selected.
pub(super) fn projected(
    fields: &Fields,
    out: &mut Vec<u8>,
    show: impl FnOnce(&mut Vec<u8>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let failed = |error| Fault::caused("an item cannot be shown", error);
    let mut whole = Vec::new();
    show(&mut whole)?;
    let value = serde_json::from_slice(&whole).map_err(failed)?;
    serde_json::to_writer(out, &fields.project(value)).map_err(failed)
}

pub(super) async fn one(State(shared): Ctx, Path(id): Path<String>) -> Answer {
    let document = shared.rows.bundle_document(&id).await?;
    let mut out = Vec::new();
    render::bundle(document.body.get(), &mut out)?;
    Ok(json_text(StatusCode::OK, out))
}

/// A missing bundle, and one being deleted already, are not errors.
pub(super) async fn delete(State(shared): Ctx, Path(id): Path<String>) -> Answer {
    if let Deletion::Marked(row) = shared.rows.delete(&id, None).await? {
        shared.ledger.deletion_stored(row.value);
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}
