//! The change feed, read by one statement: rows, purge horizon and the oldest running transaction are of one snapshot.

use aro_base::Timestamp;
use aro_store::adapter::Place;
use aro_store::{ChangePage, Container, Cursor, StoreError};

use crate::error::corrupt;
use crate::pool::Connections;
use crate::read::change;

/// Reads the feed: what is behind the cursor and older than every running transaction.
pub(crate) async fn changes(
    connections: &Connections,
    container: Container,
    after: Option<&Cursor>,
    limit: usize,
    life: &str,
    now: Timestamp,
) -> Result<(ChangePage, bool), StoreError> {
    let asked = after.map(|cursor| Place::read(cursor, life, container)).transpose()?;
    let limit = limit.max(1);
    // Without a cursor the end of the feed is known only inside the statement; `s.ending` stands in for it.
    let rows = connections
        .read(
            CHANGES,
            &[
                &container.name(),
                &asked.map_or(0, |place| place.seq),
                &asked.map(|place| place.until),
                &now.as_microsecond(),
                &(limit as i64 + 1),
            ],
        )
        .await?;
    let Some(first) = rows.first() else { return Err(StoreError::CursorExpired) };
    let ending: i64 = first.try_get(10).map_err(corrupt)?;
    let purged: i64 = first.try_get(11).map_err(corrupt)?;
    let hidden: bool = first.try_get(12).map_err(corrupt)?;
    let newest: i64 = first.try_get(13).map_err(corrupt)?;
    let mut place = asked.unwrap_or(Place { seq: 0, until: ending });
    if place.expired(purged, newest) {
        return Err(StoreError::CursorExpired);
    }
    let mut changes = Vec::new();
    for row in rows.iter().take(limit) {
        // Nothing new gives one row without a document.
        if let Some(pos) = row.try_get::<_, Option<i64>>(9).map_err(corrupt)? {
            place.seq = pos;
            changes.push(change(row, container).map_err(corrupt)?);
        }
    }
    let more = rows.len() > limit;
    let next = match after {
        Some(cursor) if changes.is_empty() => cursor.clone(),
        _ => {
            if !more {
                place.seq = place.seq.max(ending);
            }
            place.write(life, container)
        }
    };
    Ok((ChangePage { changes, next, more }, hidden))
}

/// `ending` is the last place all transactions up to which are over; `newest` the last that can exist at all.
/// `hidden` is set when something is committed but has to wait for an older transaction; it is asked for in the feed's
/// order, so that no plan looks for it through the whole container.
pub(crate) const CHANGES: &str = "
    SELECT d.partition, d.id, d.kind_written, d.resource_id, d.version, d.modified, d.expires, d.deleted, d.body, d.pos,
        s.ending, coalesce(c.purged, 0), (SELECT h.pos FROM store_document h
            WHERE h.container = $1 AND h.pos > s.ending ORDER BY h.pos LIMIT 1) IS NOT NULL, s.newest
    FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint * 128 - 1 AS ending,
        pg_snapshot_xmax(pg_current_snapshot())::text::bigint * 128 AS newest) s
    LEFT JOIN store_container c ON c.name = $1
    LEFT JOIN LATERAL (
        SELECT * FROM store_document d
        WHERE d.container = $1 AND d.pos > $2 AND d.pos <= s.ending
            AND CASE WHEN d.deleted THEN d.pos > coalesce($3, s.ending) ELSE d.expires IS NULL OR d.expires > $4 END
        ORDER BY d.pos LIMIT $5) d ON true
    ORDER BY d.pos";

/// The end of the feed.
pub(crate) async fn latest(
    connections: &Connections,
    container: Container,
    life: &str,
) -> Result<Cursor, StoreError> {
    let sql = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint * 128 - 1";
    let rows = connections.read(sql, &[]).await?;
    let seq = rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(corrupt)?;
    Ok(Place { seq, until: 0 }.write(life, container))
}
