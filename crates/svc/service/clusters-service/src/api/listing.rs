//! Lists: their parameters and their pages.

use aro_ocm::List;
use aro_store::{Collection, Condition, Order, Query, Slice};
use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::call::Call;
use super::reply::{Failure, Reply};
use crate::records::Record;
use crate::search::{self, Fields, Table};

/// The largest page.
const MAX_SIZE: usize = 65_500;
/// The default page.
const DEFAULT_SIZE: usize = 100;
/// A page with more items than this is large.
pub(super) const LARGE: usize = 1000;

/// Limits the large pages in memory at once.
#[derive(Debug)]
pub(super) struct LargeLists(Semaphore);

impl Default for LargeLists {
    fn default() -> Self {
        Self(Semaphore::new(2))
    }
}

impl LargeLists {
    /// Waits for a place if the page may be large.
    pub(super) async fn place(&self, size: usize) -> Option<tokio::sync::SemaphorePermit<'_>> {
        if size > LARGE { self.0.acquire().await.ok() } else { None }
    }
}

/// The parameters of a list.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) page: u64,
    pub(super) size: usize,
    pub(super) condition: Option<Condition>,
    pub(super) order: Vec<Order>,
    fields: Option<Fields>,
}

impl Listing {
    /// Reads the parameters; all problems at once.
    pub(super) fn parse(call: &Call<'_>, table: Table) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        let mut number =
            |name: &str, otherwise: i64| match call.query(name).map(|text| text.trim().parse::<i64>()) {
                None => otherwise,
                Some(Ok(number)) => number,
                Some(Err(_)) => {
                    let reason = format!("'{name}' must be an integer");
                    problems.push(aro_ocm::Problem::new(aro_ocm::Code::InvalidValue, name, reason));
                    otherwise
                }
            };
        let (page, size) = (number("page", 1), number("size", DEFAULT_SIZE as i64));
        let text = |name: &str| call.query(name).unwrap_or_default();
        let mut take = |problem| problems.push(problem);
        let condition = search::condition(table, text("search")).map_err(&mut take).ok().flatten();
        let order = search::order(table, text("order")).map_err(&mut take).unwrap_or_default();
        let fields = Fields::parse(text("fields")).map_err(&mut take).ok().flatten();
        if !problems.is_empty() {
            return Err(Failure::bad_request(problems));
        }
        Ok(Self {
            page: u64::try_from(page).unwrap_or(1).max(1),
            size: usize::try_from(size).unwrap_or(MAX_SIZE).min(MAX_SIZE),
            condition,
            order,
            fields,
        })
    }

    /// How many items come before the page.
    pub(super) fn skip(&self) -> usize {
        let before = usize::try_from(self.page.saturating_sub(1)).unwrap_or(usize::MAX);
        before.saturating_mul(self.size)
    }

    /// The selected members of an object.
    pub(super) fn pruned(&self, mut object: Map<String, Value>) -> Map<String, Value> {
        if let Some(fields) = &self.fields {
            fields.prune(&mut object);
        }
        object
    }

    /// The answer with a page of objects.
    pub(super) fn reply<T: Serialize>(&self, kind: &str, total: u64, items: &[T]) -> Result<Reply, Failure> {
        if self.fields.is_none() {
            return Reply::json(StatusCode::OK, &List::new(kind, self.page, total, items.iter().collect()));
        }
        let mut pruned = Vec::with_capacity(items.len());
        for item in items {
            let value = serde_json::to_value(item)
                .map_err(|error| Failure::caused("an object cannot be shown", error))?;
            if let Value::Object(members) = value {
                pruned.push(self.pruned(members));
            }
        }
        Reply::ok(&List::new(kind, self.page, total, pruned))
    }
}

/// A page of what a query finds, by age unless ordered otherwise, and how many there are in all.
pub(super) async fn page<T: Record>(
    collection: &Collection<T>,
    mut query: Query,
    listing: &Listing,
) -> Result<(u64, Vec<T>), Failure> {
    query.condition.clone_from(&listing.condition);
    let store = collection.store();
    let slice =
        Slice { order: listing.order.clone(), oldest_first: true, skip: listing.skip(), size: listing.size };
    let documents = store.slice(&query, &slice).await?;
    let ended = documents.len() < listing.size && (slice.skip == 0 || !documents.is_empty());
    let total = if ended { (slice.skip + documents.len()) as u64 } else { store.count(&query).await? };
    // One record that cannot be read is counted and logged; it must not hide the others.
    let records = documents.into_iter().filter_map(|document| collection.decode(document).ok());
    Ok((total, records.map(|record| record.value).collect()))
}
