//! Applies one batch inside the writer's transaction.
//!
//! First every precondition is looked at, then everything is written. A refused batch has therefore written
//! nothing and needs no savepoint; an error of SQLite itself fails the whole group, whose transaction is undone.

use aro_base::Timestamp;
use aro_store::adapter::{Seen, etag_of, fold, precondition};
use aro_store::{Batch, Change, DocKey, Document, NewDocument, Op, StoreError, Written};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::effects::Effects;
use crate::error::store_error;
use crate::names::{ContainerRow, Names};
use crate::tail::FeedChange;

/// When the transaction happens and what depends on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Timestamp,
    pub(crate) tombstones_until: Timestamp,
}

/// A row under a key: live, expired or a tombstone.
struct Row {
    k: i64,
    kind: i64,
    resource_folded: String,
    seen: Seen,
}

/// How a batch ended without failing the group.
pub(crate) type Outcome = Result<Vec<Written>, StoreError>;

/// Applies a batch. The outer error is SQLite's and fails the group.
pub(crate) fn apply(
    connection: &Connection,
    names: &mut Names,
    batch: Batch,
    moment: Moment,
    effects: &mut Effects,
) -> Result<Outcome, StoreError> {
    let mut run = |connection: &Connection| -> rusqlite::Result<Outcome> {
        let container = names.container(connection, batch.container())?;
        let partition = names.partition(connection, container.id, batch.partition())?;
        let mut rows = Vec::with_capacity(batch.len());
        for (index, op) in batch.ops().iter().enumerate() {
            let row = find(connection, partition, op.id().as_str(), moment.now)?;
            if let Err(now) = precondition(op, row.as_ref().map(|row| &row.seen)) {
                effects.conflicts += 1;
                return Ok(Err(StoreError::Conflict { index, key: key(&batch, op), now }));
            }
            rows.push(row);
        }
        let mut writer = BatchWriter { connection, names, container, partition, moment };
        let mut written = Vec::with_capacity(batch.len());
        for (op, row) in batch.ops().iter().zip(rows) {
            written.push(writer.write(&batch, op, row, effects)?);
        }
        let seq = writer.container.seq;
        names.advance(batch.container(), seq);
        effects.containers.insert(batch.container());
        effects.batches += 1;
        effects.ops += batch.len() as u64;
        Ok(Ok(written))
    };
    run(connection).map_err(store_error)
}

fn key(batch: &Batch, op: &Op) -> DocKey {
    DocKey { container: batch.container(), partition: batch.partition().clone(), id: op.id().clone() }
}

fn find(connection: &Connection, partition: i64, id: &str, now: Timestamp) -> rusqlite::Result<Option<Row>> {
    connection
        .prepare_cached(
            "SELECT k, kind, version, modified, expires, deleted, resource_folded
             FROM document WHERE partition = ?1 AND id = ?2",
        )?
        .query_row(params![partition, id], |row| {
            let version: i64 = row.get(2)?;
            let expires: Option<i64> = row.get(4)?;
            let deleted: bool = row.get(5)?;
            let live = !deleted && expires.is_none_or(|expires| expires > now.as_microsecond());
            let modified = timestamp(row.get(3)?);
            Ok(Row {
                k: row.get(0)?,
                kind: row.get(1)?,
                resource_folded: row.get(6)?,
                seen: Seen { version: version as u64, modified, live },
            })
        })
        .optional()
}

/// Microseconds since 1970, as stored.
pub(crate) fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}

/// A time as it will be read back.
pub(crate) fn truncate(time: Timestamp) -> Timestamp {
    timestamp(time.as_microsecond())
}

struct BatchWriter<'a> {
    connection: &'a Connection,
    names: &'a mut Names,
    container: ContainerRow,
    partition: i64,
    moment: Moment,
}

impl BatchWriter<'_> {
    fn write(
        &mut self,
        batch: &Batch,
        op: &Op,
        row: Option<Row>,
        effects: &mut Effects,
    ) -> rusqlite::Result<Written> {
        match op {
            Op::Create(new) | Op::Replace(new, _) => {
                let document = self.upsert(key(batch, op), new, row)?;
                let written = Written { etag: document.etag.clone(), version: document.version };
                effects.changes.push(self.change_of(batch, Change::Upsert(document.clone())));
                effects.documents.push((document.key.clone(), Some(document)));
                Ok(written)
            }
            Op::Delete(..) => {
                let version = self.next_version(row.as_ref());
                let key = key(batch, op);
                if let Some(row) = row {
                    let (resource_type, resource_id) = self.names_of(row.k)?;
                    self.bury(row.k, version)?;
                    let key = key.clone();
                    let change = Change::Delete { key, resource_type, resource_id, version };
                    effects.changes.push(self.change_of(batch, change));
                }
                effects.documents.push((key, None));
                Ok(Written { etag: etag_of(version, self.moment.now), version })
            }
            Op::Check(_, etag) => {
                let version = row.map_or(0, |row| row.seen.version);
                Ok(Written { etag: etag.clone(), version })
            }
        }
    }

    /// What was just written, under the number it got.
    fn change_of(&self, batch: &Batch, change: Change) -> FeedChange {
        FeedChange { container: batch.container(), seq: self.container.seq, change }
    }

    /// The type and the resource id of a row, as written.
    fn names_of(&self, k: i64) -> rusqlite::Result<(String, String)> {
        self.connection
            .prepare_cached(
                "SELECT coalesce(d.kind_written, t.written), coalesce(d.resource_id, d.resource_folded)
                 FROM document d CROSS JOIN kind t ON t.id = d.kind WHERE d.k = ?1",
            )?
            .query_row([k], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn next_version(&self, row: Option<&Row>) -> u64 {
        row.map_or(self.container.version_floor, |row| row.seen.version) + 1
    }

    fn upsert(&mut self, key: DocKey, new: &NewDocument, row: Option<Row>) -> rusqlite::Result<Document> {
        self.container.seq += 1;
        let version = self.next_version(row.as_ref());
        let now = self.moment.now;
        let expires = new.ttl.map(|ttl| truncate(now.saturating_add(ttl).unwrap_or(Timestamp::MAX)));
        let kind = self.names.kind(self.connection, self.container.id, &new.resource_type)?;
        let folded = fold(&new.resource_id);
        let kind_written = (new.resource_type != kind.written).then_some(new.resource_type.as_str());
        let resource_id = (new.resource_id != folded).then_some(new.resource_id.as_str());
        let times = (now.as_microsecond(), expires.map(Timestamp::as_microsecond));
        match row {
            None => {
                self.connection
                    .prepare_cached(
                        "INSERT INTO document (container, partition, id, kind, version, modified, expires,
                            deleted, seq, kind_written, resource_folded, resource_id, body)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, ?10, ?11, ?12)",
                    )?
                    .execute(params![
                        self.container.id,
                        self.partition,
                        key.id.as_str(),
                        kind.id,
                        version as i64,
                        times.0,
                        times.1,
                        self.container.seq,
                        kind_written,
                        folded,
                        resource_id,
                        new.body.get(),
                    ])?;
            }
            // SQLite rewrites the entries of every index whose columns a statement names, so the usual replace
            // names none of the query indexes'.
            Some(row) if row.seen.live && row.kind == kind.id && row.resource_folded == folded => {
                self.connection
                    .prepare_cached(
                        "UPDATE document SET version = ?2, modified = ?3, expires = ?4, seq = ?5,
                            kind_written = ?6, resource_id = ?7, body = ?8 WHERE k = ?1",
                    )?
                    .execute(params![
                        row.k,
                        version as i64,
                        times.0,
                        times.1,
                        self.container.seq,
                        kind_written,
                        resource_id,
                        new.body.get(),
                    ])?;
            }
            Some(row) => {
                self.connection
                    .prepare_cached(
                        "UPDATE document SET version = ?2, modified = ?3, expires = ?4, seq = ?5,
                            kind_written = ?6, resource_id = ?7, body = ?8, deleted = 0, kind = ?9,
                            resource_folded = ?10 WHERE k = ?1",
                    )?
                    .execute(params![
                        row.k,
                        version as i64,
                        times.0,
                        times.1,
                        self.container.seq,
                        kind_written,
                        resource_id,
                        new.body.get(),
                        kind.id,
                        folded,
                    ])?;
            }
        }
        Ok(Document {
            key,
            resource_type: new.resource_type.clone(),
            resource_id: new.resource_id.clone(),
            etag: etag_of(version, now),
            version,
            modified: now,
            expires,
            body: new.body.clone(),
        })
    }

    /// Leaves a tombstone: the feed has yet to deliver the deletion, and the version must not start over.
    fn bury(&mut self, k: i64, version: u64) -> rusqlite::Result<()> {
        self.container.seq += 1;
        self.connection
            .prepare_cached(
                "UPDATE document SET version = ?2, modified = ?3, expires = ?4, seq = ?5, deleted = 1, body = NULL
                 WHERE k = ?1",
            )?
            .execute(params![
                k,
                version as i64,
                self.moment.now.as_microsecond(),
                self.moment.tombstones_until.as_microsecond(),
                self.container.seq,
            ])?;
        Ok(())
    }
}
