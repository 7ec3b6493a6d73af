//! The reads, as functions of a connection. Each main statement sees a single commit; the numbers of names that are
//! looked up before it never change.

use aro_base::Timestamp;
use aro_store::adapter::{Place, Position, etag_of, fold, position_of, prefix_end, token_for};
use aro_store::{
    Change, ChangePage, Container, Cursor, DocId, DocKey, Document, Page, Paged, PartitionKey, Query, Raw,
    StoreError,
};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};

use crate::apply::timestamp;
use crate::error::store_error;
use crate::sieve::Sieve;

/// The columns that make a document; the order is that of [`Columns`].
pub(crate) const COLUMNS: &str =
    "d.k, p.name, d.id, coalesce(d.kind_written, t.written), d.resource_folded, d.resource_id,
    d.version, d.modified, d.expires, d.deleted, d.seq, d.body";

/// Reads one document.
pub(crate) fn get(
    connection: &Connection,
    key: &DocKey,
    now: Timestamp,
) -> Result<Option<Document>, StoreError> {
    let found = connection
        .prepare_cached(
            "SELECT d.k, p.name, d.id, coalesce(d.kind_written, t.written), d.resource_folded, d.resource_id,
                d.version, d.modified, d.expires, d.deleted, d.seq, d.body
             FROM container c CROSS JOIN partition p CROSS JOIN document d CROSS JOIN kind t
             WHERE c.name = ?1 AND p.container = c.id AND p.name = ?2 AND d.partition = p.id AND d.id = ?3
                AND d.deleted = 0 AND (d.expires IS NULL OR d.expires > ?4) AND t.id = d.kind",
        )
        .and_then(|mut statement| {
            let key_params =
                params![key.container.name(), key.partition.as_str(), key.id.as_str(), now.as_microsecond()];
            statement.query_row(key_params, |row| columns(row, key.container)).optional()
        })
        .map_err(store_error)?;
    Ok(found.and_then(|columns| columns.document))
}

pub(crate) struct Columns {
    k: i64,
    resource_folded: String,
    seq: i64,
    key: DocKey,
    resource_type: String,
    resource_id: String,
    version: u64,
    /// `None` is a tombstone.
    pub(crate) document: Option<Document>,
}

pub(crate) fn columns(row: &Row<'_>, container: Container) -> rusqlite::Result<Columns> {
    let text = |at: usize| row.get_ref(at).and_then(|value| value.as_str().map_err(Into::into));
    let key = DocKey { container, partition: PartitionKey::new(text(1)?), id: DocId::new(text(2)?) };
    let resource_type: String = row.get(3)?;
    let resource_folded: String = row.get(4)?;
    let resource_id: String = row.get::<_, Option<String>>(5)?.unwrap_or_else(|| resource_folded.clone());
    let version = row.get::<_, i64>(6)? as u64;
    let modified = timestamp(row.get(7)?);
    let deleted: bool = row.get(9)?;
    let document = if deleted {
        None
    } else {
        Some(Document {
            key: key.clone(),
            resource_type: resource_type.clone(),
            resource_id: resource_id.clone(),
            etag: etag_of(version, modified),
            version,
            modified,
            expires: row.get::<_, Option<i64>>(8)?.map(timestamp),
            body: Raw::stored(text(11)?),
        })
    };
    Ok(Columns {
        k: row.get(0)?,
        resource_folded,
        seq: row.get(10)?,
        key,
        resource_type,
        resource_id,
        version,
        document,
    })
}

/// Runs a query.
///
/// The index is named in the statement: without statistics SQLite may prefer one that needs a sort, and with them
/// its choice could change under us.
pub(crate) fn query(
    connection: &Connection,
    query: &Query,
    page: &Page,
    now: Timestamp,
) -> Result<Paged, StoreError> {
    let after = page.after.as_ref().map(|token| position_of(query, token)).transpose()?;
    let Some((sql, values)) = statement(connection, query, after, now)? else {
        return Ok(Paged { items: Vec::new(), next: None });
    };
    let size = page.size.max(1);
    let sieve = Sieve::new(query);
    let mut items: Vec<Document> = Vec::new();
    let mut last = None;
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement.query(params_from_iter(values)).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        if !sieve.passes(body(row)?) {
            continue;
        }
        let found = columns(row, query.container).map_err(store_error)?;
        let Some(document) = found.document else { continue };
        if items.len() == size {
            return Ok(Paged { items, next: last.map(|position| token_for(query, &position)) });
        }
        last = Some(Position { resource_id: found.resource_folded, tie: found.k.to_string() });
        items.push(document);
    }
    Ok(Paged { items, next: None })
}

/// The body of a row of [`COLUMNS`].
pub(crate) fn body<'r>(row: &'r Row<'_>) -> Result<&'r str, StoreError> {
    row.get_ref(11).and_then(|value| Ok(value.as_str()?)).map_err(store_error)
}

/// Builds the statement; `None` when a name in the query has never been written.
pub(crate) fn statement(
    connection: &Connection,
    query: &Query,
    after: Option<Position>,
    now: Timestamp,
) -> Result<Option<(String, Vec<Value>)>, StoreError> {
    let number = |sql: &str, container: i64, name: &str| -> Result<Option<i64>, StoreError> {
        connection
            .prepare_cached(sql)
            .and_then(|mut statement| {
                statement.query_row(params![container, name], |row| row.get(0)).optional()
            })
            .map_err(store_error)
    };
    let Some(container) = container_row(connection, query.container)? else { return Ok(None) };
    let mut values: Vec<Value> = vec![now.as_microsecond().into()];
    let mut sql = format!("SELECT {COLUMNS} FROM document d");
    match &query.partition {
        Some(_) => sql.push_str(" INDEXED BY document_in_partition"),
        None => sql.push_str(" INDEXED BY document_everywhere"),
    }
    sql.push_str(
        " CROSS JOIN partition p ON p.id = d.partition CROSS JOIN kind t ON t.id = d.kind
         WHERE d.deleted = 0 AND d.resource_folded <> '' AND (d.expires IS NULL OR d.expires > ?)",
    );
    if let Some(partition) = &query.partition {
        let find = "SELECT id FROM partition WHERE container = ?1 AND name = ?2";
        let Some(id) = number(find, container.id, partition.as_str())? else { return Ok(None) };
        sql.push_str(" AND d.partition = ?");
        values.push(id.into());
    } else {
        sql.push_str(" AND d.container = ?");
        values.push(container.id.into());
    }
    if let Some(resource_type) = &query.resource_type {
        let find = "SELECT id FROM kind WHERE container = ?1 AND folded = ?2";
        let Some(id) = number(find, container.id, &fold(resource_type))? else { return Ok(None) };
        sql.push_str(" AND d.kind = ?");
        values.push(id.into());
    }
    let prefix = query.id_prefix.as_deref().map(fold);
    if let Some(end) = prefix.as_deref().and_then(prefix_end) {
        sql.push_str(" AND d.resource_folded < ?");
        values.push(end.into());
    }
    // One lower bound only, so that the index is entered where this page begins.
    match (after, prefix) {
        (Some(position), _) => {
            let tie: i64 = position.tie.parse().map_err(|_| StoreError::BadToken)?;
            sql.push_str(" AND (d.resource_folded, d.k) > (?, ?)");
            values.extend([position.resource_id.into(), tie.into()]);
        }
        (None, Some(prefix)) => {
            sql.push_str(" AND d.resource_folded >= ?");
            values.push(prefix.into());
        }
        (None, None) => {}
    }
    sql.push_str(" ORDER BY d.resource_folded, d.k");
    Ok(Some((sql, values)))
}

struct FeedState {
    id: i64,
    latest: i64,
    purged: i64,
}

fn container_row(connection: &Connection, container: Container) -> Result<Option<FeedState>, StoreError> {
    connection
        .prepare_cached("SELECT id, seq, purged FROM container WHERE name = ?1")
        .and_then(|mut statement| {
            statement
                .query_row([container.name()], |row| {
                    Ok(FeedState { id: row.get(0)?, latest: row.get(1)?, purged: row.get(2)? })
                })
                .optional()
        })
        .map_err(store_error)
}

/// Reads the feed, in one read transaction: its state and its rows must belong together.
pub(crate) fn changes(
    connection: &mut Connection,
    container: Container,
    after: Option<&Cursor>,
    limit: usize,
    life: &str,
    now: Timestamp,
) -> Result<ChangePage, StoreError> {
    let connection = &connection.transaction().map_err(store_error)?;
    let feed = container_row(connection, container)?.unwrap_or(FeedState { id: 0, latest: 0, purged: 0 });
    let mut place = match after {
        Some(cursor) => Place::read(cursor, life, container)?,
        None => Place { seq: 0, until: feed.latest },
    };
    if place.expired(feed.purged, feed.latest) {
        return Err(StoreError::CursorExpired);
    }
    let limit = limit.max(1);
    let mut changes = Vec::new();
    let mut more = false;
    let sql = format!(
        "SELECT {COLUMNS} FROM document d INDEXED BY document_feed
            CROSS JOIN partition p ON p.id = d.partition CROSS JOIN kind t ON t.id = d.kind
         WHERE d.container = ?1 AND d.seq > ?2
            AND CASE WHEN d.deleted = 1 THEN d.seq > ?3 ELSE d.expires IS NULL OR d.expires > ?4 END
         ORDER BY d.seq LIMIT ?5"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let bounds = params![feed.id, place.seq, place.until, now.as_microsecond(), limit as i64 + 1];
    let mut rows = statement.query(bounds).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        if changes.len() == limit {
            more = true;
            break;
        }
        let found = columns(row, container).map_err(store_error)?;
        place.seq = found.seq;
        changes.push(match found.document {
            Some(document) => Change::Upsert(document),
            None => Change::Delete {
                key: found.key,
                resource_type: found.resource_type,
                resource_id: found.resource_id,
                version: found.version,
            },
        });
    }
    let next = match after {
        Some(cursor) if changes.is_empty() => cursor.clone(),
        _ => {
            // Nothing is left before the end of this snapshot, so the end itself is as good and lives longer.
            if !more {
                place.seq = feed.latest;
            }
            place.write(life, container)
        }
    };
    Ok(ChangePage { changes, next, more })
}

/// The end of the feed.
pub(crate) fn latest(
    connection: &Connection,
    container: Container,
    life: &str,
) -> Result<Cursor, StoreError> {
    let latest = container_row(connection, container)?.map_or(0, |feed| feed.latest);
    Ok(Place { seq: latest, until: 0 }.write(life, container))
}
