//! Runs a search of clusters by its plan.

use aro_store::adapter::{compare_keys, holds, sort_keys};
use aro_store::{CollectionError, Condition, Document, Order, Page, Slice};

use super::plan::{Plan, plan};
use crate::records::{CONTAINER, Record as _, Records, cluster_key};

/// More candidates of an attribute than this are not read one by one.
const MAX_CANDIDATES: usize = 500;

/// A part of what a search found.
#[derive(Debug)]
pub struct Found {
    /// How many there are in all.
    pub total: u64,
    /// The documents of the part.
    pub documents: Vec<Document>,
}

/// Finds clusters: `size` of them after the first `skip`, by age unless ordered otherwise.
pub async fn run(
    records: &Records,
    condition: Option<Condition>,
    order: Vec<Order>,
    skip: usize,
    size: usize,
) -> Result<Found, CollectionError> {
    let prefix = match plan(condition.as_ref()) {
        Plan::Nothing => return Ok(Found { total: 0, documents: Vec::new() }),
        Plan::Id(id) => {
            let document = records.store().get(&cluster_key(&id)).await?;
            let documents: Vec<Document> = document.into_iter().collect();
            return Ok(select(documents, condition.as_ref(), &order, skip, size));
        }
        Plan::Attribute(attribute, prefix) => {
            if let Some(documents) = by_attribute(records, &attribute).await? {
                return Ok(select(documents, condition.as_ref(), &order, skip, size));
            }
            prefix
        }
        Plan::Prefix(prefix) => prefix,
    };
    let mut query = records.clusters.everywhere().under(prefix);
    query.condition = condition;
    let store = records.store();
    let slice = Slice { order, oldest_first: true, skip, size };
    let documents = store.slice(&query, &slice).await?;
    let ended = documents.len() < size && (skip == 0 || !documents.is_empty());
    let total = if ended { (skip + documents.len()) as u64 } else { store.count(&query).await? };
    Ok(Found { total, documents })
}

/// The clusters with an attribute, the oldest id first; `None` if there are too many.
async fn by_attribute(records: &Records, prefix: &str) -> Result<Option<Vec<Document>>, CollectionError> {
    let query = aro_store::Query::all(CONTAINER)
        .of_type(crate::records::AttributeRecord::KIND.resource_type())
        .under(prefix);
    let listed = records.attributes.page(&query, Page::first(MAX_CANDIDATES)).await?;
    if listed.next.is_some() || !listed.unreadable.is_empty() {
        return Ok(None);
    }
    let mut documents = Vec::with_capacity(listed.items.len());
    for attribute in listed.items {
        documents.extend(records.store().get(&cluster_key(&attribute.value.cluster_id)).await?);
    }
    Ok(Some(documents))
}

/// What the store does with a query, for documents that are at hand.
pub fn select(
    documents: Vec<Document>,
    condition: Option<&Condition>,
    order: &[Order],
    skip: usize,
    size: usize,
) -> Found {
    let meets = |document: &Document| condition.is_none_or(|condition| holds(condition, &document.body));
    let mut found: Vec<_> = documents
        .into_iter()
        .filter(meets)
        .map(|document| (sort_keys(order, &document.body), document))
        .collect();
    // The sort is stable: what is equal keeps its order.
    found.sort_by(|(left, _), (right, _)| compare_keys(order, left, right));
    let total = found.len() as u64;
    let documents = found.into_iter().skip(skip).take(size).map(|(_, document)| document).collect();
    Found { total, documents }
}
