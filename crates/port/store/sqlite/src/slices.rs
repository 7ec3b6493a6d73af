//! Parts of results counted from the start, and how many results there are.

use aro_base::Timestamp;
use aro_store::adapter::{compare_keys, sort_keys};
use aro_store::{Document, Query, Raw, Slice, StoreError};
use rusqlite::{Connection, params_from_iter};

use crate::error::store_error;
use crate::read::{COLUMNS, body, columns, statement};
use crate::sieve::Sieve;

/// Runs a query and returns a part of it, sorted. First the keys of all that is found, then the documents of the part,
/// in one read transaction: memory holds the part and no more.
pub(crate) fn slice(
    connection: &mut Connection,
    query: &Query,
    slice: &Slice,
    now: Timestamp,
) -> Result<Vec<Document>, StoreError> {
    let connection = &connection.transaction().map_err(store_error)?;
    let Some((sql, values)) = statement(connection, query, None, now)? else { return Ok(Vec::new()) };
    let sieve = Sieve::new(query);
    let unread = sieve.is_open() && slice.order.is_empty();
    let mut found = Vec::new();
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement.query(params_from_iter(values)).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        let keys = if unread {
            Vec::new()
        } else {
            let body = body(row)?;
            if !sieve.passes(body) {
                continue;
            }
            if slice.order.is_empty() { Vec::new() } else { sort_keys(&slice.order, &Raw::stored(body)) }
        };
        found.push((keys, row.get::<_, i64>(0).map_err(store_error)?));
    }
    if slice.oldest_first {
        found.sort_by_key(|(_, k)| *k);
    }
    // The sort is stable, and rows come in the order of their resource ids if not of age.
    found.sort_by(|(left, _), (right, _)| compare_keys(&slice.order, left, right));
    let by_row = format!(
        "SELECT {COLUMNS} FROM document d CROSS JOIN partition p ON p.id = d.partition
            CROSS JOIN kind t ON t.id = d.kind WHERE d.k = ?1"
    );
    let mut statement = connection.prepare_cached(&by_row).map_err(store_error)?;
    let mut documents = Vec::new();
    for (_, k) in found.into_iter().skip(slice.skip).take(slice.size) {
        let row = statement.query_row([k], |row| columns(row, query.container)).map_err(store_error)?;
        documents.extend(row.document);
    }
    Ok(documents)
}

/// Counts what a query finds.
pub(crate) fn count(connection: &Connection, query: &Query, now: Timestamp) -> Result<u64, StoreError> {
    let Some((sql, values)) = statement(connection, query, None, now)? else { return Ok(0) };
    if query.filters.is_empty() && query.condition.is_none() {
        let sql = format!("SELECT count(*) FROM ({sql})");
        let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
        return statement
            .query_row(params_from_iter(values), |row| row.get::<_, i64>(0))
            .map(|count| count as u64)
            .map_err(store_error);
    }
    let sieve = Sieve::new(query);
    let mut count = 0;
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement.query(params_from_iter(values)).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        count += u64::from(sieve.passes(body(row)?));
    }
    Ok(count)
}
