//! Byte ranges.

use super::error::BlobError;
use crate::http::Head;

/// The part of a blob that a request asks for, as start and end; `None` for the whole.
pub(super) fn requested(head: &Head, size: u64) -> Result<Option<(u64, u64)>, BlobError> {
    let Some(text) = head.header("x-ms-range").or_else(|| head.header("range")) else { return Ok(None) };
    parse(text, size)
}

fn parse(text: &str, size: u64) -> Result<Option<(u64, u64)>, BlobError> {
    // Another unit, or several ranges: the whole, as HTTP allows.
    let Some(range) = text.trim().strip_prefix("bytes=").filter(|range| !range.contains(',')) else {
        return Ok(None);
    };
    let Some((start, end)) = range.split_once('-') else { return Ok(None) };
    if start.is_empty() {
        let Ok(last) = end.parse::<u64>() else { return Ok(None) };
        if last == 0 || size == 0 {
            return Err(BlobError::range());
        }
        return Ok(Some((size.saturating_sub(last), size)));
    }
    let Ok(start) = start.parse::<u64>() else { return Ok(None) };
    let end = match end {
        "" => size,
        end => match end.parse::<u64>() {
            Ok(end) if end >= start => end.saturating_add(1).min(size),
            _ => return Ok(None),
        },
    };
    if start >= size { Err(BlobError::range()) } else { Ok(Some((start, end))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_the_size() {
        for (text, expected) in [
            ("bytes=0-4", Ok(Some((0, 5)))),
            ("bytes=5-", Ok(Some((5, 10)))),
            ("bytes=5-100", Ok(Some((5, 10)))),
            ("bytes=-3", Ok(Some((7, 10)))),
            ("bytes=-30", Ok(Some((0, 10)))),
            ("bytes=10-", Err(BlobError::range())),
            ("bytes=4-2", Ok(None)),
            ("bytes=a-b", Ok(None)),
            ("items=1-2", Ok(None)),
            ("bytes=0-1,3-4", Ok(None)),
            ("bytes=0-18446744073709551615", Ok(Some((0, 10)))),
        ] {
            assert_eq!(parse(text, 10), expected, "{text}");
        }
        assert_eq!(parse("bytes=0-", 0), Err(BlobError::range()));
    }
}
