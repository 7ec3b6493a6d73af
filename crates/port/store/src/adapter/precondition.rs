//! Whether an operation may happen, given what is stored. Pure, so that all adapters agree.

use aro_base::{ETag, Timestamp};

use crate::Op;

/// What the store has under a key: a live document, or the trace of a deleted or expired one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The version of the last write.
    pub version: u64,
    /// When that was.
    pub modified: Timestamp,
    /// Whether it counts as existing.
    pub live: bool,
}

/// The etag of a version. The time makes it differ from the etag of the same version in a database that was
/// restored from a copy and then went another way.
pub fn etag_of(version: u64, modified: Timestamp) -> ETag {
    ETag::new(format!("{version:x}-{:x}", modified.as_microsecond()))
}

/// The version and the time in microseconds that an etag of ours was made of; `None` for any other text.
pub fn etag_parts(etag: &ETag) -> Option<(u64, i64)> {
    let (version, micros) = etag.as_str().split_once('-')?;
    let parts = (u64::from_str_radix(version, 16).ok()?, i64::from_str_radix(micros, 16).ok()?);
    // Only the spelling we hand out counts: two texts that parse alike are still two etags.
    (format!("{:x}-{:x}", parts.0, parts.1) == etag.as_str()).then_some(parts)
}

/// Decides one operation. The error is the etag of the live document, if there is one.
pub fn precondition(op: &Op, seen: Option<&Seen>) -> Result<(), Option<ETag>> {
    let now = seen.filter(|seen| seen.live).map(|seen| etag_of(seen.version, seen.modified));
    let holds = match op {
        Op::Create(_) => now.is_none(),
        Op::Replace(_, expected) | Op::Delete(_, expected) | Op::Check(_, expected) => {
            now.as_ref() == Some(expected)
        }
    };
    if holds { Ok(()) } else { Err(now) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DocId;

    const SEEN: Seen = Seen { version: 3, modified: Timestamp::UNIX_EPOCH, live: true };

    #[test]
    fn only_the_etag_of_a_live_document_passes() {
        let delete = Op::Delete(DocId::new("a"), etag_of(3, Timestamp::UNIX_EPOCH));
        assert_eq!(precondition(&delete, Some(&SEEN)), Ok(()));
        assert_eq!(precondition(&delete, None), Err(None));
        assert_eq!(precondition(&delete, Some(&Seen { live: false, ..SEEN })), Err(None));
        let stale = Op::Delete(DocId::new("a"), ETag::new("2-0"));
        assert_eq!(precondition(&stale, Some(&SEEN)), Err(Some(ETag::new("3-0"))));
    }

    #[test]
    fn an_etag_can_be_taken_apart_only_if_it_is_ours() {
        assert_eq!(etag_parts(&ETag::new("1f-a0")), Some((31, 160)));
        assert_eq!(etag_parts(&ETag::new("1F-a0")), None);
        assert_eq!(etag_parts(&ETag::new("01-a0")), None);
        assert_eq!(etag_parts(&ETag::new("nonsense")), None);
    }
}
