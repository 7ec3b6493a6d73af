//! How records lie in a segment: length, checksum, bytes. A length of zero ends the segment.

use crate::segment::SegmentId;

pub(crate) const HEADER: usize = 8;

/// The checksum covers the segment's number too: bytes of another segment never pass.
fn checksum(segment: SegmentId, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&segment.number().to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

/// Fills in the header of a frame: room for one, and the payload behind it.
pub(crate) fn seal(frame: &mut [u8], segment: SegmentId) {
    if let Some((header, payload)) = frame.split_first_chunk_mut::<HEADER>() {
        // Appending refuses records whose length does not fit.
        let (length, sum) = (payload.len() as u32, checksum(segment, payload));
        header[..4].copy_from_slice(&length.to_le_bytes());
        header[4..].copy_from_slice(&sum.to_le_bytes());
    }
}

/// What lies at the beginning of `bytes`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    Record(&'a [u8]),
    End,
    /// Cut off, or not what was written.
    Bad,
}

/// Reads one record.
pub(crate) fn read(bytes: &[u8], segment: SegmentId) -> Found<'_> {
    let Some((header, rest)) = bytes.split_at_checked(HEADER) else {
        return if bytes.iter().all(|byte| *byte == 0) { Found::End } else { Found::Bad };
    };
    let word = |at: usize| {
        header.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes)
    };
    let length = word(0) as usize;
    if length == 0 {
        return if word(4) == 0 { Found::End } else { Found::Bad };
    }
    match rest.get(..length) {
        Some(payload) if checksum(segment, payload) == word(4) => Found::Record(payload),
        _ => Found::Bad,
    }
}
