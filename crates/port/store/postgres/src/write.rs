//! One batch as one call of `store_write`.

use aro_base::Timestamp;
use aro_store::adapter::{etag_of, etag_parts, fold, marks};
use aro_store::{Batch, DocKey, NewDocument, Op, StoreError, Written};

use crate::error::corrupt;
use crate::pool::Connections;
use crate::read::timestamp;

const WRITE: &str = "SELECT at, conflict, version, modified
    FROM store_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";

/// The operations as parallel arrays.
#[derive(Default)]
struct Columns<'a> {
    op: Vec<i16>,
    id: Vec<&'a str>,
    version: Vec<Option<i64>>,
    modified: Vec<Option<i64>>,
    kind: Vec<Option<String>>,
    kind_written: Vec<Option<&'a str>>,
    resource_folded: Vec<Option<String>>,
    resource_id: Vec<Option<&'a str>>,
    expires: Vec<Option<i64>>,
    body: Vec<Option<&'a str>>,
    marks: Vec<Option<Vec<u8>>>,
}

impl<'a> Columns<'a> {
    fn push(&mut self, op: &'a Op, now: Timestamp) {
        let (code, new, etag) = match op {
            Op::Create(new) => (0, Some(new), None),
            Op::Replace(new, etag) => (1, Some(new), Some(etag)),
            Op::Delete(_, etag) => (2, None, Some(etag)),
            Op::Check(_, etag) => (3, None, Some(etag)),
        };
        // What is not an etag of ours names no version there ever was.
        let expected =
            etag.map(|etag| etag_parts(etag).map_or((-1, -1), |(version, at)| (version as i64, at)));
        self.op.push(code);
        self.id.push(op.id().as_str());
        self.version.push(expected.map(|expected| expected.0));
        self.modified.push(expected.map(|expected| expected.1));
        self.kind.push(new.map(|new| fold(&new.resource_type)));
        self.kind_written.push(new.map(|new| new.resource_type.as_str()));
        self.resource_folded.push(new.map(|new| fold(&new.resource_id)));
        self.resource_id.push(new.map(|new| new.resource_id.as_str()));
        self.expires.push(new.and_then(|new| expiry(new, now)));
        self.body.push(new.map(|new| new.body.get()));
        // What no query finds needs none.
        let queried = new.filter(|new| !new.resource_id.is_empty());
        self.marks.push(queried.and_then(|new| marks(new.body.get())));
    }
}

fn expiry(new: &NewDocument, now: Timestamp) -> Option<i64> {
    new.ttl.map(|ttl| now.saturating_add(ttl).unwrap_or(Timestamp::MAX).as_microsecond())
}

/// Writes a batch that was already checked.
pub(crate) async fn write(
    connections: &Connections,
    batch: &Batch,
    now: Timestamp,
    tombstones_until: Timestamp,
) -> Result<Vec<Written>, StoreError> {
    let mut columns = Columns::default();
    for op in batch.ops() {
        columns.push(op, now);
    }
    let rows = connections
        .query(
            WRITE,
            &[
                &batch.container().name(),
                &batch.partition().as_str(),
                &now.as_microsecond(),
                &tombstones_until.as_microsecond(),
                &columns.op,
                &columns.id,
                &columns.version,
                &columns.modified,
                &columns.kind,
                &columns.kind_written,
                &columns.resource_folded,
                &columns.resource_id,
                &columns.expires,
                &columns.body,
                &columns.marks,
            ],
        )
        .await?;
    let mut written = Vec::with_capacity(rows.len());
    for row in rows {
        let at: i32 = row.try_get(0).map_err(corrupt)?;
        let version: Option<i64> = row.try_get(2).map_err(corrupt)?;
        let modified: Option<i64> = row.try_get(3).map_err(corrupt)?;
        let etag = version.zip(modified).map(|(version, at)| etag_of(version as u64, timestamp(at)));
        if row.try_get(1).map_err(corrupt)? {
            let index = at as usize - 1;
            let id = batch.ops().get(index).map_or_else(|| batch.ops()[0].id(), Op::id).clone();
            let key = DocKey { container: batch.container(), partition: batch.partition().clone(), id };
            return Err(StoreError::Conflict { index, key, now: etag });
        }
        let (Some(etag), Some(version)) = (etag, version) else { continue };
        written.push(Written { etag, version: version as u64 });
    }
    Ok(written)
}
