//! Several batches as one call of `store_write_group`: what is sent, and what the answer means for each.

use aro_base::Timestamp;
use aro_store::adapter::{etag_of, etag_parts, fold, marks};
use aro_store::{Batch, DocKey, NewDocument, Op, StoreError, Written};
use tokio_postgres::Row;

use crate::error::{Unanswered, corrupt};
use crate::pool::Connections;
use crate::queue::Waiting;
use crate::read::timestamp;

const WRITE: &str =
    "SELECT n, outcome, version, modified FROM store_write_group($1, $2, $3, $4, $5, $6, $7, $8, $9,
    $10, $11, $12, $13, $14, $15, $16, $17)";

/// What became of one batch of a transaction that was committed.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It was written, or refused.
    Done(Result<Vec<Written>, StoreError>),
    /// Another process is writing to its partition; nothing was tried.
    Busy,
}

/// The operations as parallel arrays.
#[derive(Default)]
struct Columns<'a> {
    batch: Vec<i32>,
    container: Vec<&'a str>,
    partition: Vec<&'a str>,
    op: Vec<i16>,
    id: Vec<&'a str>,
    version: Vec<Option<i64>>,
    modified: Vec<Option<i64>>,
    kind: Vec<String>,
    kind_written: Vec<&'a str>,
    resource_folded: Vec<String>,
    resource_id: Vec<&'a str>,
    expires: Vec<Option<i64>>,
    body: Vec<Option<&'a str>>,
    marks: Vec<Option<&'a [u8]>>,
}

impl<'a> Columns<'a> {
    fn push(&mut self, number: usize, batch: &'a Batch, op: &'a Op, now: Timestamp) {
        let (code, new, etag) = match op {
            Op::Create(new) => (0, Some(new), None),
            Op::Replace(new, etag) => (1, Some(new), Some(etag)),
            Op::Delete(_, etag) => (2, None, Some(etag)),
            Op::Check(_, etag) => (3, None, Some(etag)),
        };
        // What is not an etag of ours names no version there ever was.
        let expected =
            etag.map(|etag| etag_parts(etag).map_or((-1, -1), |(version, at)| (version as i64, at)));
        let (kind, resource) =
            new.map_or(("", ""), |new| (new.resource_type.as_str(), new.resource_id.as_str()));
        self.batch.push(number as i32);
        self.container.push(batch.container().name());
        self.partition.push(batch.partition().as_str());
        self.op.push(code);
        self.id.push(op.id().as_str());
        self.version.push(expected.map(|expected| expected.0));
        self.modified.push(expected.map(|expected| expected.1));
        self.kind.push(fold(kind));
        self.kind_written.push(kind);
        self.resource_folded.push(fold(resource));
        self.resource_id.push(resource);
        self.expires.push(new.and_then(|new| expiry(new, now)));
        self.body.push(new.map(|new| new.body.get()));
    }
}

fn expiry(new: &NewDocument, now: Timestamp) -> Option<i64> {
    new.ttl.map(|ttl| now.saturating_add(ttl).unwrap_or(Timestamp::MAX).as_microsecond())
}

/// The digest of each operation's body. What no query finds needs none.
pub(crate) fn digests(batch: &Batch) -> Vec<Option<Vec<u8>>> {
    let digest = |op: &Op| match op {
        Op::Create(new) | Op::Replace(new, _) if !new.resource_id.is_empty() => marks(new.body.get()),
        _ => None,
    };
    batch.ops().iter().map(digest).collect()
}

/// Writes batches that were already checked. An error is about all of them; otherwise there is one outcome for each.
pub(crate) async fn write(
    connections: &Connections,
    group: &[Waiting],
    wait: bool,
    now: Timestamp,
    tombstones_until: Timestamp,
) -> Result<Vec<Outcome>, StoreError> {
    let mut columns = Columns::default();
    for (number, waiting) in group.iter().enumerate() {
        for op in waiting.batch.ops() {
            columns.push(number, &waiting.batch, op, now);
        }
        columns.marks.extend(waiting.marks.iter().map(Option::as_deref));
    }
    let rows = connections
        .query(
            WRITE,
            &[
                &wait,
                &now.as_microsecond(),
                &tombstones_until.as_microsecond(),
                &columns.batch,
                &columns.container,
                &columns.partition,
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
    let mut answers = vec![None; columns.op.len()];
    for row in rows {
        let (at, answer) = answer(&row).map_err(corrupt)?;
        if let Some(place) = usize::try_from(at - 1).ok().and_then(|at| answers.get_mut(at)) {
            *place = Some(answer);
        }
    }
    let mut rest = answers.as_slice();
    let outcome = |waiting: &Waiting| {
        let (own, others) = rest.split_at(waiting.batch.len());
        rest = others;
        outcome(&waiting.batch, own)
    };
    Ok(group.iter().map(outcome).collect())
}

/// The server's reply to an operation.
#[derive(Debug, Clone)]
struct Answer {
    outcome: i16,
    version: Option<i64>,
    modified: Option<i64>,
}

fn answer(row: &Row) -> Result<(i32, Answer), tokio_postgres::Error> {
    let answer = Answer { outcome: row.try_get(1)?, version: row.try_get(2)?, modified: row.try_get(3)? };
    Ok((row.try_get(0)?, answer))
}

/// What the answers about its operations mean for a batch. A check that holds gets none.
fn outcome(batch: &Batch, answers: &[Option<Answer>]) -> Outcome {
    let mut written = Vec::with_capacity(batch.len());
    let mut unanswered = false;
    for (index, (op, answer)) in batch.ops().iter().zip(answers).enumerate() {
        let Some(Answer { outcome, version, modified }) = answer else {
            match op {
                Op::Check(_, etag) => written
                    .extend(etag_parts(etag).map(|(version, _)| Written { etag: etag.clone(), version })),
                _ => unanswered = true,
            }
            continue;
        };
        let found = version.zip(*modified);
        let etag = found.map(|(version, at)| etag_of(version as u64, timestamp(at)));
        match (outcome, etag, version) {
            (0, Some(etag), Some(version)) => written.push(Written { etag, version: *version as u64 }),
            (1, now, _) => {
                let (container, partition) = (batch.container(), batch.partition().clone());
                let key = DocKey { container, partition, id: op.id().clone() };
                return Outcome::Done(Err(StoreError::Conflict { index, key, now }));
            }
            (2, ..) => return Outcome::Busy,
            _ => unanswered = true,
        }
    }
    if unanswered {
        return Outcome::Done(Err(StoreError::Corrupt(Box::new(Unanswered))));
    }
    Outcome::Done(Ok(written))
}
