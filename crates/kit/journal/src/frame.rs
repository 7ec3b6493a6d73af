//! How records lie in a segment: length, checksum, bytes. Zeros end the segment.
//!
//! The highest bit of the length marks the first record of a flush. Everything before such a record was on disk before the
//! record was written, which tells a write that a crash has torn from damage to records that were acknowledged: pages of
//! one flush reach the disk in any order, so records behind a torn one may be whole, but none of a later flush can be.

use crate::segment::SegmentId;

pub(crate) const HEADER: usize = 8;

/// The longest record.
pub(crate) const LONGEST: usize = (FIRST_OF_FLUSH - 1) as usize;

const FIRST_OF_FLUSH: u32 = 1 << 31;

/// How many bytes a search for records may look at. It is enough unless the bytes look like nothing but headers.
const SEARCH: usize = 1 << 30;

/// The checksum covers the segment's number too: bytes of another segment never pass. Records that are not the first of a
/// flush have the checksum that all records had before flushes were marked.
fn checksum(segment: SegmentId, first_of_flush: bool, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&segment.number().to_le_bytes());
    if first_of_flush {
        hasher.update(b"flush");
    }
    hasher.update(payload);
    hasher.finalize()
}

/// Fills in the header of a frame: room for one, and the payload behind it.
pub(crate) fn seal(frame: &mut [u8], segment: SegmentId, first_of_flush: bool) {
    if let Some((header, payload)) = frame.split_first_chunk_mut::<HEADER>() {
        let mark = if first_of_flush { FIRST_OF_FLUSH } else { 0 };
        // Appending refuses records whose length does not fit.
        let (length, sum) = (payload.len() as u32 | mark, checksum(segment, first_of_flush, payload));
        header[..4].copy_from_slice(&length.to_le_bytes());
        header[4..].copy_from_slice(&sum.to_le_bytes());
    }
}

/// What lies at the beginning of `bytes`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    Record(&'a [u8]),
    /// Zeros where a header would be.
    End,
    /// Cut off, or not what was written.
    Bad,
}

/// Reads one record.
pub(crate) fn read(bytes: &[u8], segment: SegmentId) -> Found<'_> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
        return if bytes.iter().all(|byte| *byte == 0) { Found::End } else { Found::Bad };
    };
    // The length is in the lower half, the checksum in the upper.
    let header = u64::from_le_bytes(*header);
    let (word, sum) = (header as u32, (header >> 32) as u32);
    if word == 0 && sum == 0 {
        return Found::End;
    }
    let length = (word & !FIRST_OF_FLUSH) as usize;
    match rest.get(..length) {
        Some(payload) if checksum(segment, word & FIRST_OF_FLUSH != 0, payload) == sum => {
            Found::Record(payload)
        }
        _ => Found::Bad,
    }
}

/// Whether a whole record of a later flush lies behind the beginning of `bytes`, where no record is. Then the bytes before
/// it were on disk once. Undecided after a long search counts as yes.
pub(crate) fn later_flush_follows(bytes: &[u8], segment: SegmentId) -> bool {
    let mut budget = SEARCH;
    for at in 1..bytes.len() {
        // The mark is in the last byte of the length; zeros and text have none.
        if bytes.get(at + 3).is_none_or(|byte| byte & 0x80 == 0) {
            continue;
        }
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(header) = rest.first_chunk::<4>() else { return false };
        let length = (u32::from_le_bytes(*header) & !FIRST_OF_FLUSH) as usize;
        if length + HEADER > rest.len() {
            continue;
        }
        if matches!(read(rest, segment), Found::Record(_)) {
            return true;
        }
        match budget.checked_sub(length) {
            Some(left) => budget = left,
            None => return true,
        }
    }
    false
}
