//! Removes expired documents and old tombstones, a bounded number at a time.

use std::collections::HashMap;

use aro_base::Timestamp;
use rusqlite::{Connection, params};

#[derive(Default)]
struct Gone {
    /// The greatest sequence of a tombstone: cursors before it can no longer be served.
    purged: i64,
    /// The greatest version: keys created from now on start above it.
    version: i64,
}

/// Sweeps inside the caller's transaction; returns how many rows went.
pub(crate) fn sweep(connection: &Connection, now: Timestamp, limit: usize) -> rusqlite::Result<usize> {
    let mut victims = Vec::new();
    let mut containers: HashMap<i64, Gone> = HashMap::new();
    {
        let mut statement = connection.prepare_cached(
            "SELECT k, container, seq, version, deleted FROM document
             WHERE expires IS NOT NULL AND expires <= ?1 ORDER BY expires LIMIT ?2",
        )?;
        let mut rows = statement.query(params![now.as_microsecond(), limit as i64])?;
        while let Some(row) = rows.next()? {
            victims.push(row.get::<_, i64>(0)?);
            let gone = containers.entry(row.get(1)?).or_default();
            gone.version = gone.version.max(row.get(3)?);
            // Expiry is not on the feed, so only lost tombstones matter to its readers.
            if row.get(4)? {
                gone.purged = gone.purged.max(row.get(2)?);
            }
        }
    }
    for k in &victims {
        connection.prepare_cached("DELETE FROM document WHERE k = ?1")?.execute([k])?;
    }
    for (container, gone) in containers {
        connection
            .prepare_cached(
                "UPDATE container SET purged = max(purged, ?2), version_floor = max(version_floor, ?3)
                 WHERE id = ?1",
            )?
            .execute(params![container, gone.purged, gone.version])?;
    }
    Ok(victims.len())
}
